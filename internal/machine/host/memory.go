package host

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Memory returns the bytes of memory available to processes: the memory of the machine,
// or a lower limit of the control group.
func (h Host) Memory() (int64, error) {
	text, err := h.Text("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("reading the memory of this host: %w", err)
	}
	total, err := memTotal(text)
	if err != nil {
		return 0, fmt.Errorf("reading the memory of this host: /proc/meminfo: %w", err)
	}
	if limit, known := h.Number("/sys/fs/cgroup/memory.max"); known { // without a limit the file says max
		total = min(total, limit)
	}
	return total, nil
}

// memTotal returns the memory of the machine from meminfo, in units of 1024 bytes there
// (proc(5)).
func memTotal(text string) (int64, error) {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" && f[2] == "kB" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("no MemTotal")
}
