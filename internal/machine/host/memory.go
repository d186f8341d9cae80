package host

import (
	"bufio"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Memory returns how many bytes of memory the host lets its processes have: the
// memory of the machine, or the limit of the control group if that is lower.
func (h Host) Memory() (int64, error) {
	total, err := memTotal(h.FS, "proc/meminfo")
	if err != nil {
		return 0, err
	}
	text, err := fs.ReadFile(h.FS, "sys/fs/cgroup/memory.max")
	if limit, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && bad == nil {
		total = min(total, limit) // no limit is the word max
	}
	return total, nil
}

// memTotal reads the machine's memory as proc(5) gives it, in units of 1024.
func memTotal(root fs.FS, name string) (int64, error) {
	f, err := root.Open(name)
	if err != nil {
		return 0, fmt.Errorf("asking for the memory of this host: %w", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 3 && fields[0] == "MemTotal:" && fields[2] == "kB" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("asking for the memory of this host: /%s has no MemTotal", name)
}
