package native

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestClaim(t *testing.T) {
	dir, a, b := t.TempDir(), t.TempDir(), t.TempDir()
	for i, c := range []struct {
		owner string
		want  bool
	}{{a, true}, {a, true}, {b, false}} {
		check.Same(t, fmt.Sprintf("claim %d", i), c.want, claim(dir, "bd60ac8f", c.owner))
	}
	must.Succeed(t, os.Remove(a))
	check.That(t, claim(dir, "bd60ac8f", b), "the claim of an owner that is gone is void")
	if holder, _ := os.Readlink(filepath.Join(dir, "bd60ac8f")); holder != b {
		t.Errorf("held by %s", holder)
	}
}

func TestRecord(t *testing.T) {
	e := engine(t, Options{})
	check.Same(t, "the record", (record{}), e.readRecord())
	must.Succeed(t, os.MkdirAll(e.dir, 0o755), os.WriteFile(e.path("state.json"), []byte("{"), 0o644))
	check.Same(t, "half a record is no record", (record{}), e.readRecord())
	must.Succeed(t, e.record())
	check.That(t, e.wanted(), "the engine just recorded is not wanted: %+v", e.readRecord())
}
