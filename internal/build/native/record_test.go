package native

import (
	"os"
	"path/filepath"
	"testing"

	"builder/test/kit/must"
)

func TestClaim(t *testing.T) {
	dir, a, b := t.TempDir(), t.TempDir(), t.TempDir()
	for i, c := range []struct {
		owner string
		want  bool
	}{{a, true}, {a, true}, {b, false}} {
		if got := claim(dir, "bd60ac8f", c.owner); got != c.want {
			t.Errorf("claim %d: got %v", i, got)
		}
	}
	must.Succeed(t, os.Remove(a))
	if !claim(dir, "bd60ac8f", b) {
		t.Error("the claim of an owner that is gone is void")
	}
	if holder, _ := os.Readlink(filepath.Join(dir, "bd60ac8f")); holder != b {
		t.Errorf("held by %s", holder)
	}
}

func TestRecord(t *testing.T) {
	e := engine(t, Options{})
	if got := e.readRecord(); got != (record{}) {
		t.Errorf("got %+v", got)
	}
	must.Succeed(t, os.MkdirAll(e.dir, 0o755))
	must.Succeed(t, os.WriteFile(e.path("state.json"), []byte("{"), 0o644))
	if got := e.readRecord(); got != (record{}) {
		t.Errorf("half a record is no record: %+v", got)
	}
	must.Succeed(t, e.record())
	if !e.wanted() {
		t.Errorf("the engine just recorded is not wanted: %+v", e.readRecord())
	}
}
