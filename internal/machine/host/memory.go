package host

import (
	"fmt"
	"strconv"
	"strings"
)

// Memory returns the bytes of memory available to processes: the memory of the machine,
// or a lower limit of the control group.
func (h Host) Memory() (int64, error) {
	total, err := h.meminfo("MemTotal")
	if err != nil {
		return 0, fmt.Errorf("reading the memory of this host: %w", err)
	}
	if limit, known := h.Number("/sys/fs/cgroup/memory.max"); known { // without a limit the file says max
		total = min(total, limit)
	}
	return total, nil
}

// Available returns the bytes of memory that nothing uses now, or 0 if unknown.
func (h Host) Available() int64 {
	free, _ := h.meminfo("MemAvailable")
	return free
}

// meminfo returns a value of the kernel, which has units of 1024 bytes (proc(5)).
func (h Host) meminfo(name string) (int64, error) {
	const file = "/proc/meminfo"
	text, err := h.Text(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == name+":" && f[2] == "kB" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("%s: no %s", file, name)
}
