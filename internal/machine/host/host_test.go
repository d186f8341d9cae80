package host

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// An endless file and a pipe without a writer must not block.
func TestHostileFiles(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Skip(err)
	}
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "long"), make([]byte, maxFile+1), 0o600))
	h := Host{FS: os.DirFS(dir)}
	for _, name := range []string{"/fifo", "/long", "/../../etc/passwd", "/"} {
		text, err := h.Text(name)
		check.That(t, err != nil, "%s was read: %d bytes", name, len(text))
	}
	_, err := h.Text("/nowhere")
	check.That(t, errors.Is(err, fs.ErrNotExist), "/nowhere: %v", err)
}

func TestRun(t *testing.T) {
	_, err := Run(t.Context(), "no-such-tool")
	check.That(t, errors.Is(err, exec.ErrNotFound), "got %v", err)
	out, err := Run(t.Context(), "sh", "-c", "echo a; echo b >&2; exit 3")
	check.That(t, err != nil && out == "a\nb\n", "got %q, %v", out, err)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err = Run(ctx, "sh", "-c", "sleep 100")
	check.That(t, errors.Is(err, context.Canceled), "got %v", err)
}
