package pypi

import (
	"slices"
	"strings"
	"testing"

	"builder/test/kit/check"
)

// uv lists only wheels that fit the request: these cases hold such wheels.
func TestBest(t *testing.T) {
	for name, files := range map[string]string{ // the expected file is first
		"own ABI before stable ABI before none":  "a-1-cp311-cp311-manylinux_2_17_x86_64 a-1-cp311-abi3-manylinux_2_28_x86_64 a-1-py3-none-any",
		"the newer glibc":                        "a-1-cp311-cp311-manylinux_2_28_x86_64 a-1-cp311-cp311-manylinux2014_x86_64",
		"the newer stable ABI":                   "a-1-cp310-abi3-manylinux2014_x86_64 a-1-cp37-abi3-manylinux_2_28_x86_64",
		"any of the names":                       "a-1-cp311-cp311-manylinux_2_28_x86_64.manylinux2014_x86_64 a-1-cp311-cp311-manylinux1_x86_64",
		"a platform without a Python before any": "a-1-py2.py3-none-manylinux2010_x86_64 a-1-py311-none-any a-1-py3-none-any",
		"a plain linux before any":               "a-1-py3-none-linux_x86_64 a-1-py3-none-any",
		"manylinux before plain linux":           "a-1-cp311-cp311-manylinux1_x86_64 a-1-cp311-cp311-linux_x86_64",
		"the greater build":                      "a-1-10x-py3-none-any a-1-9-py3-none-any a-1-py3-none-any",
		"no free-threaded wheel":                 "a-1-cp313-cp313-manylinux2014_x86_64 a-1-cp313-cp313t-manylinux2014_x86_64",
		"no other implementation":                "a-1-py3-none-any a-1-pp311-pypy311_pp73-manylinux2014_x86_64",
	} {
		names := strings.Fields(files)
		for range names { // in any order
			names = append(names[1:], names[0])
			p := release{project: "a", version: "1", files: []found{{File: File{Filename: "a-1.tar.gz"}}}}
			for _, name := range names {
				p.files = append(p.files, found{File: File{Filename: name + ".whl"}})
			}
			got, err := best(p)
			want := strings.Fields(files)[0] + ".whl"
			check.That(t, err == nil && got.Filename == want, "%s: got %s, %v; want %s", name, got.Filename, err, want)
		}
	}
	p := release{project: "a", version: "1"}
	for _, name := range []string{"a-1.tar.gz", "nonsense.whl", "a-1-cp313-cp313t-any.whl"} {
		p.files = append(p.files, found{File: File{Filename: name}})
	}
	got, err := best(p)
	check.That(t, err != nil && strings.Contains(err.Error(), "a 1 has no wheel for this Python and platform"), "got %v, %v", got, err)
}

func FuzzParsePylock(f *testing.F) {
	// The seeds are small: with a whole lock the fuzzer spends its time minimizing.
	for _, file := range []string{
		"wheels=[{url='https://x.invalid/a-1-py3-none-any.whl',upload-time=2026-09-30T04:35:14Z,hashes={sha256='" + strings.Repeat("a", 64) + "'}}]",
		"sdist={url='https://u:p@x.invalid/f?q#g',name='a.tar.gz',size=1,hashes={sha256='" + strings.Repeat("0", 64) + "'}}",
		"wheels=[{path='../../etc/passwd',hashes={sha256='x'}}]", "marker=\"os_name < 'x'\"",
	} {
		f.Add([]byte("[[packages]]\nname='a'\nversion='1'\n" + file))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		releases, err := parsePylock(data, "/scratch")
		if err != nil {
			return
		}
		for _, r := range releases {
			for _, file := range r.files {
				bad := strings.ContainsAny(file.Filename, "/\\\x00\n") || file.Filename == "" || file.Filename[0] == '.' || file.Filename[0] == '-'
				check.That(t, !bad && len(file.SHA256) == 64 && file.source != "" && file.Size >= 0, "took %+v", file)
			}
		}
	})
}

func TestParsePylockRefuses(t *testing.T) {
	sum := strings.Repeat("a", 64)
	file := func(text string) string { return "[[packages]]\nname='a'\nversion='1'\nwheels=[{" + text + "}]\n" }
	for name, c := range map[string]struct{ text, want string }{
		"no TOML":       {"[[", "reading pylock.toml"},
		"no digest":     {file("url='https://x.invalid/a.whl', hashes={md5='x'}"), "has no sha256"},
		"a bad digest":  {file("url='https://x.invalid/a.whl', hashes={sha256='X'}"), "is not a sha256"},
		"no place":      {file("hashes={sha256='" + sum + "'}"), "no url and no path"},
		"a path out":    {file("url='https://x.invalid/', name='../x', hashes={sha256='" + sum + "'}"), "not the name of a file"},
		"hidden":        {file("url='https://x.invalid/.x', hashes={sha256='" + sum + "'}"), "not the name of a file"},
		"an escape":     {file("url='https://x.invalid/a%2f..%2fb%5cc', hashes={sha256='" + sum + "'}"), "not the name of a file"},
		"negative size": {file("url='https://x.invalid/a.whl', size=-1, hashes={sha256='" + sum + "'}"), "size"},
		"a bad project": {"[[packages]]\nname='a b'\nversion='1'\n", "not the name and version"},
	} {
		got, err := parsePylock([]byte(c.text), "/d")
		check.That(t, err != nil && strings.Contains(err.Error(), c.want), "%s: got %v, %v", name, got, err)
	}
	got, err := parsePylock([]byte(file("path='f/a.whl', size=3, hashes={sha256='"+sum+"'}")), "/d")
	check.That(t, err == nil && slices.Equal(got[0].files, []found{{File{Project: "a", Version: "1", Filename: "a.whl", Size: 3, SHA256: sum}, "/d/f/a.whl"}}),
		"a path: %+v, %v", got, err)
}
