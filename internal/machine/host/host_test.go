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

func TestMemory(t *testing.T) {
	const info = "MemTotal:       24576000 kB\nMemFree:         1000 kB\n"
	for name, c := range map[string]struct {
		info, limit string
		want        int64
	}{
		"a machine":        {info, "", 24576000 << 10},
		"without a limit":  {info, "max\n", 24576000 << 10},
		"a control group":  {info, "8000000000\n", 8000000000},
		"a generous group": {info, "99000000000\n", 24576000 << 10},
		"no total":         {"MemFree: 1 kB\n", "", 0},
		"other units":      {"MemTotal: 24 GB\n", "", 0},
	} {
		root := t.TempDir()
		write := func(file, text string) {
			path := filepath.Join(root, file)
			must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600))
		}
		write("proc/meminfo", c.info)
		if c.limit != "" {
			write("sys/fs/cgroup/memory.max", c.limit)
		}
		have, err := Host{FS: os.DirFS(root)}.Memory()
		check.That(t, have == c.want && (err != nil) == (c.want == 0), "%s: %d, %v; want %d", name, have, err, c.want)
	}
	_, err := (Host{FS: os.DirFS(t.TempDir())}).Memory()
	check.That(t, err != nil, "a host without /proc has memory")
}
