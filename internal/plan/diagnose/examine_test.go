package diagnose_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/plan/diagnose"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// builtIn returns an examiner with the embedded catalogue.
func builtIn(t *testing.T) *diagnose.Examiner {
	t.Helper()
	all := must.Get(diagnose.Load(os.DirFS(filepath.Join("..", "..", "..", "diagnoses")), "diagnoses"))(t)
	return diagnose.NewExaminer(all)
}

func TestFileThatCannotBeExamined(t *testing.T) {
	e := builtIn(t)
	for name, c := range map[string]struct{ content, want string }{
		"a.log.gz": {"\x1f\x8b\x08", "gzip -dc"},
		"a.xz":     {"\xfd7zXZ\x00", "xz -dc"},
		"a.zst":    {"\x28\xb5\x2f\xfd", "zstd -dc"},
		"a.so":     {"\x7fELF", "a.so: a library or a program, not a log"},
		"a.whl":    {"PK\x03\x04", "a.whl: a wheel or another ZIP, not a log"},
	} {
		_, err := e.File(context.Background(), must.File(t, name, c.content))
		check.That(t, err != nil && strings.Contains(err.Error(), c.want) && diag.CodeOf(err) == diag.Usage, "%s: got %v", name, err)
	}
	_, err := e.File(context.Background(), "/does/not/exist")
	check.That(t, diag.CodeOf(err) == diag.Usage, "got %v", err)
}

// Data is no log. NULs in a log are no reason to refuse it: a program printed them, or the
// log was truncated while a job wrote it.
func TestDataIsNoLog(t *testing.T) {
	e := builtIn(t)
	nuls := strings.Repeat("\x00", 100)
	_, err := e.Log(t.Context(), "x", strings.NewReader(nuls+"\n"))
	check.That(t, diag.CodeOf(err) == diag.Usage && strings.Contains(err.Error(), "x: no known failure, and no text: 100 of 101 bytes are NUL"), "got %v", err)
	found, err := e.Log(t.Context(), "x", strings.NewReader(nuls+"No space left on device\n"))
	check.That(t, err == nil && len(found.Findings) == 1, "got %v, %v", found, err)
	must.Get(e.Log(t.Context(), "x", strings.NewReader("\x00"+strings.Repeat("a line of a log\n", 100))))(t)
}

func TestLogRefuses(t *testing.T) {
	e := builtIn(t)
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := e.Log(cancelled, "x", strings.NewReader(strings.Repeat("y\n", 1<<20)))
	check.That(t, errors.Is(err, context.Canceled), "got %v", err)
}

func TestCause(t *testing.T) {
	e := builtIn(t)
	log := "NCCL INFO NET/IB : No device found.\nValueError: MPI support has not been built.\nUnknown CMake command \"hip_add_library\".\n"
	d, ok := e.Cause(context.Background(), must.File(t, "a.log", log))
	check.That(t, ok && d.Name == "findhip", "got %q, %v", d.Name, ok)
	for _, path := range []string{must.File(t, "b.log", "NCCL INFO NET/IB : No device found.\n"), must.File(t, "c.log", ""), "/does/not/exist"} {
		d, ok := e.Cause(context.Background(), path)
		check.That(t, !ok, "%s: got %q", path, d.Name)
	}
}
