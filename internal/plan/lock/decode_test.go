package lock_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/plan/image"
	"builder/internal/plan/lock"
	"builder/test/kit/check"
	"builder/test/kit/golden"
	"builder/test/kit/must"
)

func TestEncode(t *testing.T) {
	f := tinyLock()
	text := f.Encode()
	golden.Check(t, "tiny.lock.json", text)
	check.That(t, !bytes.Contains(text, []byte("://")), "a lock names no address")
	slices.Reverse(f.Sources)
	slices.Reverse(f.Images)
	slices.Reverse(f.Python)
	check.Same(t, "the order of pins makes a difference", string(text), string(f.Encode()))
	check.That(t, f.Sources[0].Version == "1.1", "encoding sorted its input")
}

// Text inside a value must not be treated as layout.
func TestEncodeKeepsValues(t *testing.T) {
	f := tinyLock()
	f.Images[0].Debian = &image.Debian{Suites: []image.Suite{{Name: "two  spaces, {braces  in  it}\t[and]\nmore"}}, Packages: []string{"a  {b\n  c}"}}
	f.Python[0].Requirements = []string{`x[a,b]>=1  ; python_version < "3" and {`}
	got := must.Get(lock.Decode("x", f.Encode()))(t)
	check.Same(t, "round trip", f.With(lock.File{}), got)
}

func TestDecodeRefuses(t *testing.T) {
	good := string(tinyLock().Encode())
	for name, c := range map[string]struct {
		replace []string
		want    string
	}{
		"unknown field":       {[]string{`"recipe": "tiny"`, `"recipe": "tiny", "host": "x"`}, `tiny.lock.json:3: reading the lock: unknown field "host"`},
		"another type":        {[]string{`"size": 3`, `"size": "3"`}, "tiny.lock.json:26: reading the lock: images/0/packages/0/size has the wrong type"},
		"another schema":      {[]string{`"schema": 1`, `"schema": 2`}, "tiny.lock.json: the schema is 2, and this builder reads 1"},
		"recipe":              {[]string{`"recipe": "tiny"`, `"recipe": ""`}, `"" is not the name of a recipe`},
		"source twice":        {[]string{`"version": "1.1", "filename": "tiny-1.1`, `"version": "1.0", "filename": "tiny-1.1`}, "source tiny 1.0 is pinned twice"},
		"image twice":         {[]string{`"name": "registry"`, `"name": "debian"`}, "image debian is pinned twice"},
		"package twice":       {[]string{`"name": "g++"`, `"name": "apt"`}, "package apt of image debian is pinned twice"},
		"requirements twice":  {[]string{"    \"cmake\",\n    \"numpy==1.1\",\n    \"wheel\"\n", "    \"numpy\"\n"}, "Python 3.12 with numpy is pinned twice"},
		"project":             {[]string{`"project": "cmake"`, `"project": "--index-url"`}, `"--index-url" "3.0": the name, the version or the index is not valid`},
		"version":             {[]string{`"version": "3.0", "filename"`, `"filename"`}, `"cmake" "": the name, the version or the index is not valid`},
		"index":               {[]string{`"version": "3.0", "filename"`, `"version": "3.0", "index": "a b", "filename"`}, `"cmake" "3.0": the name, the version or the index is not valid`},
		"short sha256":        {[]string{sha("a0"), sha("a0")[1:]}, "tiny 1.0: the file name, the size or the sha256 is not valid"},
		"sha256 and a line":   {[]string{sha("a0"), sha("a0") + `\n`}, "tiny 1.0: the file name, the size or the sha256"},
		"negative size":       {[]string{`"size": 7, "sha256": "` + sha("d3"), `"size": -7, "sha256": "` + sha("d3")}, "cmake 3.0: the file name, the size or the sha256"},
		"file name":           {[]string{"cmake-3.0.tar.gz", "../cmake-3.0.tar.gz"}, "cmake 3.0: the file name, the size or the sha256"},
		"quoted file":         {[]string{"cmake-3.0.tar.gz", "a'b"}, "cmake 3.0: the file name, the size or the sha256"},
		"Python":              {[]string{`"python": "3.11"`, `"python": "$(x)"`}, `"$(x)" is not a Python version`},
		"image name":          {[]string{`"name": "registry"`, `"name": ""`}, `"" is not the name of an image`},
		"image digest":        {[]string{`"sha256:c0`, `"sha512:c0`}, `image registry: "sha512:c0`},
		"no digest":           {[]string{`"digest": "sha256:` + sha("c0") + `"`, `"digest": ""`}, `image registry: "" is not a digest`},
		"neither":             {[]string{`"registry": "registry.example/base:1", `, ""}, "image registry: write either a registry or Debian packages"},
		"both":                {[]string{`"date"`, `"registry": "registry.example/x:1", "date"`}, "image debian: write either a registry or Debian packages"},
		"date":                {[]string{date, "2023/../../x"}, `image debian: "2023/../../x" is not a date`},
		"package name":        {[]string{`"name": "g++"`, `"name": "g++\nWANT\nreboot"`}, `package "g++\nWANT\nreboot" "4:14~1+b2": the name, the version or the architecture is not valid`},
		"no package size":     {[]string{`"size": 3`, `"size": 0`}, "package apt: the path, the size or the sha256 is not valid"},
		"package version":     {[]string{"4:14~1+b2", "4 $(reboot)"}, "the name, the version or the architecture is not valid"},
		"no architecture":     {[]string{`"architecture": "amd64", "path": "pool/main/g`, `"path": "pool/main/g`}, "the name, the version or the architecture is not valid"},
		"path above the pool": {[]string{"pool/main/a/apt", "pool/../a/apt"}, "package apt: the path, the size or the sha256 is not valid"},
		"no package":          {[]string{"apt_3.0_amd64.deb", "apt_3.0_amd64.rpm"}, "package apt: the path, the size or the sha256"},
	} {
		t.Run(name, func(t *testing.T) {
			text := good
			for i := 0; i < len(c.replace); i += 2 {
				must.Hold(t, strings.Contains(text, c.replace[i]), "%q is not in the lock", c.replace[i])
				text = strings.Replace(text, c.replace[i], c.replace[i+1], 1)
			}
			got, err := lock.Decode("tiny.lock.json", []byte(text))
			must.Hold(t, err != nil && strings.Contains(err.Error(), c.want) && strings.HasPrefix(err.Error(), "tiny.lock.json:"),
				"got %v, want %s", err, c.want)
			check.Same(t, "a fault and a lock", lock.File{}, got)
			for _, e := range diag.All(err) {
				check.That(t, e.Code == diag.Drift, "class %v: %v", e.Code, e)
			}
		})
	}
}

func TestDecodeReportsAllFaults(t *testing.T) {
	f := tinyLock()
	f.Sources[0].SHA256 = "x"
	f.Images[0].Packages[0].Path = "/etc/passwd"
	f.Images[1].Digest = ""
	f.Python[2].Files[0].Size = 0
	_, err := lock.Decode("l", f.Encode())
	var got []string
	for _, e := range diag.All(err) {
		got = append(got, e.Error())
		check.That(t, strings.Contains(e.Hint, "builder lock"), "%v has the hint %q", e, e.Hint)
	}
	want := []string{
		"l: tiny 1.0: the file name, the size or the sha256 is not valid",
		"l: package apt: the path, the size or the sha256 is not valid",
		`l: image registry: "" is not a digest`,
		"l: cmake 3.0: the file name, the size or the sha256 is not valid",
	}
	check.Same(t, "faults", want, got)
}

// The valid fields of a source depend on its kind: a commit has a date and no address,
// a wheel has a Python, and an archive in a Debian pool is pinned by the recipe.
func TestDecodeChecksSources(t *testing.T) {
	const (
		git     = "l: tiny 1.0: the pin of a git source needs a commit, and no repository"
		undated = `is not a commit with a date`
		wheel   = "l: tiny 1.0: a wheel needs a Python, and other sources have none"
		file    = "tiny-1.0-py3-none-any.whl"
	)
	commit := sha("c0")[:40]
	for name, c := range map[string]struct {
		change func(*lock.SourcePin)
		want   string
	}{
		"commit":            {func(s *lock.SourcePin) { s.Tag, s.Commit, s.Epoch = "v1.0", commit, 1 }, ""},
		"commit of SHA-256": {func(s *lock.SourcePin) { s.Commit, s.Epoch = sha("c0"), 1 }, ""},
		"repository":        {func(s *lock.SourcePin) { s.Repository = "https://git.example/tiny" }, git},
		"commit, address":   {func(s *lock.SourcePin) { s.Repository, s.Commit, s.Epoch = "https://git.example/tiny", commit, 1 }, git},
		"tag":               {func(s *lock.SourcePin) { s.Tag = "v1.0" }, git},
		"half a commit":     {func(s *lock.SourcePin) { s.Commit, s.Epoch = commit[1:], 1 }, undated},
		"wheel":             {func(s *lock.SourcePin) { s.Filename, s.Python = file, "3.11" }, ""},
		"wheel, no Python":  {func(s *lock.SourcePin) { s.Filename = file }, wheel},
		"wheel, no version": {func(s *lock.SourcePin) { s.Filename, s.Python = file, "$(x)" }, wheel},
		"sdist, Python":     {func(s *lock.SourcePin) { s.Python = "3.11" }, wheel},
		"pool":              {func(s *lock.SourcePin) { s.Path = "pool/t/tiny.tar.gz" }, "l: tiny 1.0: only the recipe pins an archive of a pool"},
	} {
		f := tinyLock()
		c.change(&f.Sources[0])
		_, err := lock.Decode("l", f.Encode())
		check.That(t, (err == nil) == (c.want == "") && (err == nil || strings.Contains(err.Error(), c.want)) && len(diag.All(err)) <= 1,
			"%s: got %v, want %q", name, err, c.want)
	}
}

// Every accepted lock can be written and read back unchanged.
func FuzzDecode(f *testing.F) {
	// An input replaces a part of a whole lock. With whole locks as inputs, the fuzzer
	// would spend its time on minimizing them.
	good := tinyLock().Encode()
	f.Add(uint16(0), uint16(0), []byte(nil))
	f.Add(uint16(0), ^uint16(0), []byte(`{"schema": 1, "recipe": "x", "Recipe": "y"}`))
	f.Add(uint16(0), ^uint16(0), []byte(`{"schema": 1, "recipe": "x", "images": [{"name": "y", "debian": {"suites": [{"name": "{  }"}]}}]}`))
	f.Fuzz(func(t *testing.T, at, drop uint16, put []byte) {
		from := min(int(at), len(good))
		data := slices.Concat(good[:from], put, good[min(from+int(drop), len(good)):])
		read, err := lock.Decode("l", data)
		if err != nil {
			check.That(t, diag.CodeOf(err) == diag.Drift, "class %v: %v", diag.CodeOf(err), err)
			return
		}
		text := read.Encode()
		again, err := lock.Decode("l", text)
		must.Hold(t, err == nil, "%v\n%s", err, text)
		check.That(t, bytes.Equal(text, again.Encode()), "%s, then %s", text, again.Encode())
	})
}
