package host

import (
	"os"
	"path/filepath"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

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
