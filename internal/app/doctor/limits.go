package doctor

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"builder/internal/machine/fabric"
)

var lockedMemory = regexp.MustCompile(`(?m)^Max locked memory\s+(\S+)\s+(\S+)`)

// memlock checks the limit of locked memory of this process: RDMA locks the buffers of
// every connection. The limit applies to root too if CAP_IPC_LOCK is missing.
func memlock(_ context.Context, e *exam) Finding {
	text, err := e.Text("/proc/self/limits")
	if err != nil {
		return unknown("%s", because(err))
	}
	m := lockedMemory.FindStringSubmatch(text)
	if m == nil {
		return unknown("/proc/self/limits has no locked memory")
	}
	if m[1] == "unlimited" {
		return ok("unlimited")
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return unknown("/proc/self/limits: %s is not a size", m[1])
	}
	limit := size(n)
	if len(e.Names(fabric.RDMADir)) == 0 {
		return none("%s, and no RDMA device", limit)
	}
	return warn("%s", limit).remedy("ulimit -l unlimited: `* - memlock unlimited` in /etc/security/limits.conf, LimitMEMLOCK=infinity in a unit, --ulimit memlock=-1 for a container")
}

// hugepages reports the reserved huge pages and the mode of transparent huge pages.
func hugepages(_ context.Context, e *exam) Finding {
	text, err := e.Text("/proc/meminfo")
	if err != nil {
		return unknown("%s", because(err))
	}
	total, has := field(text, "HugePages_Total")
	each, _ := field(text, "Hugepagesize")
	by := "unknown"
	if _, rest, found := strings.Cut(e.Says("/sys/kernel/mm/transparent_hugepage/enabled"), "["); found {
		by, _, _ = strings.Cut(rest, "]")
	}
	if !has {
		return none("the kernel has no huge pages")
	}
	return ok("%s", fmt.Sprintf("%s reserved of %s each, transparent: %s", total, strings.ReplaceAll(each, " kB", " KiB"), by))
}
