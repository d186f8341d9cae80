package doctor

import (
	"context"
	"regexp"
	"strconv"

	"builder/internal/base/size"
)

var lockedMemory = regexp.MustCompile(`(?m)^Max locked memory\s+(\S+)`)

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
	limit, err := strconv.ParseInt(m[1], 10, 64)
	switch {
	case err != nil:
		return unknown("/proc/self/limits: %s is not a size", m[1])
	case len(e.Names(rdmaDir)) == 0:
		return none("%s, and no RDMA device", size.Text(limit))
	}
	return warn("%s", size.Text(limit)).
		remedy("ulimit -l unlimited: `* - memlock unlimited` in /etc/security/limits.conf, LimitMEMLOCK=infinity in a unit, --ulimit memlock=-1 for a container")
}
