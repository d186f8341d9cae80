package pypi

import (
	"slices"
	"strings"
	"testing"

	"builder/test/kit/must"
)

func TestBest(t *testing.T) {
	for _, c := range []struct {
		name             string
		python, platform string
		files            string // the expected file is first
	}{
		{"own ABI before stable ABI before none", "3.11", "x86_64-manylinux_2_28", "a-1-cp311-cp311-manylinux_2_17_x86_64 a-1-cp311-abi3-manylinux_2_28_x86_64 a-1-py3-none-any"},
		{"the newer glibc", "3.11", "x86_64-manylinux_2_28", "a-1-cp311-cp311-manylinux_2_28_x86_64 a-1-cp311-cp311-manylinux2014_x86_64 a-1-cp311-cp311-manylinux_2_34_x86_64"},
		{"the newer stable ABI", "3.11", "x86_64-manylinux_2_28", "a-1-cp310-abi3-manylinux2014_x86_64 a-1-cp37-abi3-manylinux_2_28_x86_64 a-1-cp312-abi3-manylinux2014_x86_64"},
		{"any of the names", "3.11", "x86_64-manylinux2014", "a-1-cp311-cp311-manylinux_2_28_x86_64.manylinux2014_x86_64 a-1-cp311-cp311-manylinux1_x86_64"},
		{"this architecture", "3.11", "aarch64-manylinux_2_28", "a-1-cp311-cp311-manylinux_2_17_aarch64 a-1-cp311-cp311-manylinux_2_17_x86_64 a-1-py3-none-any"},
		{"a platform without a Python before any", "3.11", "x86_64-manylinux_2_28", "a-1-py2.py3-none-manylinux2010_x86_64 a-1-py311-none-any a-1-py3-none-any"},
		{"a plain linux before any", "3.11", "x86_64-manylinux_2_28", "a-1-py3-none-linux_x86_64 a-1-py3-none-any"},
		{"manylinux before plain linux", "3.11", "x86_64-manylinux_2_28", "a-1-cp311-cp311-manylinux1_x86_64 a-1-cp311-cp311-linux_x86_64"},
		{"cp before py", "3.11", "x86_64-manylinux_2_28", "a-1-cp311-none-any a-1-py311-none-any a-1-py3-none-any"},
		{"the greater build", "3.11", "x86_64-manylinux_2_28", "a-1-10x-py3-none-any a-1-9-py3-none-any a-1-py3-none-any"},
		{"no free-threaded wheel", "3.13", "x86_64-manylinux_2_28", "a-1-cp313-cp313-manylinux2014_x86_64 a-1-cp313-cp313t-manylinux2014_x86_64"},
		{"no wheel of another system", "3.11", "x86_64-manylinux_2_28", "a-1-py3-none-any a-1-cp311-cp311-musllinux_1_2_x86_64 a-1-cp311-cp311-win_amd64 a-1-cp311-cp311-macosx_11_0_arm64 a-1-pp311-pypy311_pp73-manylinux2014_x86_64"},
		{"no wheel of a newer Python", "3.9", "x86_64-manylinux_2_28", "a-1-py3-none-any a-1-py310-none-any a-1-cp310-none-any a-1-cp38-cp38-manylinux2014_x86_64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fits, err := newTarget(c.python, c.platform)
			must.Succeed(t, err)
			names := strings.Fields(c.files)
			for range names { // in any order
				names = append(names[1:], names[0])
				p := release{project: "a", version: "1", files: []found{{File: File{Filename: "a-1.tar.gz"}}}}
				for _, name := range names {
					p.files = append(p.files, found{File: File{Filename: name + ".whl"}})
				}
				got, err := fits.best(p)
				if want := strings.Fields(c.files)[0] + ".whl"; err != nil || got.Filename != want {
					t.Errorf("got %s, %v; want %s", got.Filename, err, want)
				}
			}
		})
	}
}

func TestBestFindsNone(t *testing.T) {
	fits, err := newTarget("3.11", "x86_64-manylinux_2_17")
	must.Succeed(t, err)
	p := release{project: "a", version: "1"}
	for _, name := range []string{"a-1.tar.gz", "nonsense.whl", "a-1-cp311-cp311-manylinux_2_28_x86_64.whl", "a-1-cp3-cp3-any.whl"} {
		p.files = append(p.files, found{File: File{Filename: name}})
	}
	if got, err := fits.best(p); err == nil || !strings.Contains(err.Error(), "a 1 has no wheel for CPython 3.11 on x86_64 with glibc 2.17") {
		t.Errorf("got %v, %v", got, err)
	}
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
				if bad || len(file.SHA256) != 64 || file.source == "" || file.Size < 0 {
					t.Errorf("took %+v", file)
				}
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
		if got, err := parsePylock([]byte(c.text), "/d"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	got, err := parsePylock([]byte(file("path='f/a.whl', size=3, hashes={sha256='"+sum+"'}")), "/d")
	if err != nil || !slices.Equal(got[0].files, []found{{File{"a", "1", "a.whl", 3, sum}, "/d/f/a.whl"}}) {
		t.Errorf("a path: %+v, %v", got, err)
	}
}
