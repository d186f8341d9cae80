package native

import (
	"os"
	"path/filepath"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestRecord(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.json")
	check.Same(t, "the record", (record{}), readRecord(file))
	must.Succeed(t, os.WriteFile(file, []byte("{"), 0o644))
	check.Same(t, "half a record is no record", (record{}), readRecord(file))
	must.Succeed(t, writeRecord(file, 0))
	check.That(t, readRecord(file).wanted(), "the engine just recorded is not wanted: %+v", readRecord(file))
}
