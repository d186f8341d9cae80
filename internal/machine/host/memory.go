package host

import (
	"bufio"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Memory returns the bytes of memory available to processes: the memory of the machine,
// or a lower limit of the control group.
func (h Host) Memory() (int64, error) {
	total, err := memTotal(h.FS, "proc/meminfo")
	if err != nil {
		return 0, err
	}
	text, err := fs.ReadFile(h.FS, "sys/fs/cgroup/memory.max")
	if limit, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && bad == nil {
		total = min(total, limit) // without a limit the file says max
	}
	return total, nil
}

// memTotal returns the memory of the machine from meminfo, in units of 1024 bytes there
// (proc(5)).
func memTotal(root fs.FS, name string) (int64, error) {
	f, err := root.Open(name)
	if err != nil {
		return 0, fmt.Errorf("reading the memory of this host: %w", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 3 && fields[0] == "MemTotal:" && fields[2] == "kB" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("reading the memory of this host: /%s has no MemTotal", name)
}
