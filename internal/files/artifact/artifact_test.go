package artifact

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestOf(t *testing.T) {
	path := must.File(t, "a.whl", "abc")
	got := must.Get(Of(path, "key"))(t)
	want := Artifact{
		Name: "a.whl", Path: path, Size: 3, Key: "key",
		SHA256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
	}
	check.Same(t, "Of", want, got)
}

func TestOfRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "absent")} {
		a, err := Of(path, "")
		check.That(t, err != nil, "Of(%q) = %v, want an error", path, a)
	}
}

// A link in the place of an artifact is replaced, even if the right bytes lie behind it:
// its target belongs to somebody else.
func TestPutReplacesALink(t *testing.T) {
	a := must.Get(Of(must.File(t, "a.whl", "abc"), "key"))(t)
	to := filepath.Join(t.TempDir(), "a.whl")
	must.Succeed(t, os.Symlink(a.Path, to), Put(a, to))
	info := must.Get(os.Lstat(to))(t)
	check.That(t, info.Mode().IsRegular(), "%s is %v", to, info.Mode())
}

func TestJSONHoldsNoKey(t *testing.T) {
	got := must.Get(json.Marshal(Artifact{Name: "n", Path: "p", SHA256: "s", Size: 1, Key: "k"}))(t)
	want := `{"name":"n","path":"p","sha256":"s","size":1}`
	check.That(t, string(got) == want, "JSON is %s, want %s", got, want)
}
