package native

import (
	"os"
	"path/filepath"
	"testing"
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
	if err := os.Remove(a); err != nil {
		t.Fatal(err)
	}
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
	if err := os.MkdirAll(e.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(e.path("state.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := e.readRecord(); got != (record{}) {
		t.Errorf("half a record is no record: %+v", got)
	}
	if err := e.record(); err != nil {
		t.Fatal(err)
	}
	if !e.wanted() {
		t.Errorf("the engine just recorded is not wanted: %+v", e.readRecord())
	}
}
