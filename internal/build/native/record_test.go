package native

import (
	"os"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestRecord(t *testing.T) {
	e := engine(t, Options{})
	check.Same(t, "the record", (record{}), e.readRecord())
	must.Succeed(t, os.MkdirAll(e.dir, 0o755), os.WriteFile(e.path("state.json"), []byte("{"), 0o644))
	check.Same(t, "half a record is no record", (record{}), e.readRecord())
	must.Succeed(t, e.record())
	check.That(t, e.wanted(), "the engine just recorded is not wanted: %+v", e.readRecord())
}
