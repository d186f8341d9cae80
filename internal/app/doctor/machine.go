package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// cores counts the processors that this process may use.
func cores(_ context.Context, e *exam) Finding {
	list, has := field(e.Says("/proc/self/status"), "Cpus_allowed_list")
	n := countList(list)
	if !has || n == 0 {
		return unknown("/proc/self/status has no Cpus_allowed_list")
	}
	text := fmt.Sprint(n)
	if quota := e.quota(); quota > 0 && quota < float64(n) {
		text = fmt.Sprintf("%.1f of %d, by the control group's quota", quota, n)
		n = int(quota)
	}
	if n < 2 {
		return warn("%s: builds take long", text).remedy("build on a larger host: --engine URL")
	}
	return ok("%s", text)
}

// quota returns the processor limit of the control group, or 0 without a limit.
func (e *exam) quota() float64 {
	share, period := e.Says("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), e.Says("/sys/fs/cgroup/cpu/cpu.cfs_period_us")
	if f := strings.Fields(e.Says("/sys/fs/cgroup/cpu.max")); len(f) == 2 {
		share, period = f[0], f[1]
	}
	a, err1 := strconv.ParseFloat(share, 64) // max and -1 mean no limit
	b, err2 := strconv.ParseFloat(period, 64)
	if err1 != nil || err2 != nil || a <= 0 || b <= 0 {
		return 0
	}
	return a / b
}

// countList counts the numbers of a list such as 0-3,8.
func countList(list string) int {
	n := 0
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		a, err := strconv.Atoi(from)
		if err != nil {
			continue
		}
		b := a
		if isRange {
			if b, err = strconv.Atoi(to); err != nil || b < a || b-a > 1<<16 {
				continue
			}
		}
		n += b - a + 1
	}
	return n
}

// memory compares the host's memory with the peak memory stated in the recipe. A run
// refuses a build too large for the host.
func memory(_ context.Context, e *exam) Finding {
	total, err := e.Memory()
	if err != nil {
		return unknown("%v", err)
	}
	free := e.available()
	text := size(total)
	if free > 0 {
		text += fmt.Sprintf(", %s of it available", size(free))
	}
	r := e.work.Recipe
	switch {
	case r == nil:
		return ok("%s", text)
	case r.Memory == 0:
		return ok("%s; the need of the recipe is unknown", text)
	case total < r.Memory && e.work.Engine.Kind != Named:
		return fail("%s; the build needs %s", text, size(r.Memory)).remedy("build on a larger host: --engine URL, or a runner with more memory")
	case free > 0 && free < r.Memory:
		return warn("%s; the build needs %s", text, size(r.Memory)).remedy("end other programs before the build")
	}
	return ok("%s; the build needs %s", text, size(r.Memory))
}

// available returns the kernel's MemAvailable in bytes, or 0 if unknown.
func (e *exam) available() int64 {
	text, _ := field(e.Says("/proc/meminfo"), "MemAvailable")
	kib, err := strconv.ParseInt(strings.TrimSuffix(text, " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}

// Disk use of the state directory without the files of the lock.
const (
	engineBytes = 1e9 // 0.2 GB for the engine's programs, the rest for its empty cache
)

// RaiseLimit returns the remedy for a cell that needs more bytes than the limit of the
// engine's cache.
func RaiseLimit(need int64) string {
	return fmt.Sprintf("if the disk is large enough, raise the limit: --engine-cache 90%%, or a size such as %dGB", need/1e9+1)
}

// disk compares the free disk space with the size of the files to fetch and the engine
// cache of the cell, and this cache with its limit. A run without enough space removes
// unused cache first, so only an engine that never ran has too little.
func disk(_ context.Context, e *exam) Finding {
	dir := e.existing()
	free, err := e.Free(dir)
	if err != nil {
		return unknown("%v", err)
	}
	const room = "free space with `builder store gc`, or set BUILDER_HOME to a larger disk"
	r := e.work.Recipe
	var least, comfortable int64 = engineBytes, 10 * engineBytes
	text := fmt.Sprintf("%s free", size(free))
	if r != nil {
		least, comfortable = engineBytes+r.Fetch, engineBytes+r.Fetch+r.Cache
		if own := e.work.Engine; own.Kind == Native && !own.Built {
			least = max(least, r.Fetch+r.Cache)
		}
		text += fmt.Sprintf("; %s to fetch", size(r.Fetch))
		if r.Cache > 0 {
			text += fmt.Sprintf(", about %s in the engine's cache (%s)", size(r.Cache), r.CacheFrom)
		}
	}
	switch {
	case r != nil && e.work.Engine.Limit > 0 && r.Cache > e.work.Engine.Limit:
		return fail("%s, whose limit is %s", text, size(e.work.Engine.Limit)).
			remedy("%s", RaiseLimit(r.Cache))
	case free < least:
		return fail("%s; the first run needs at least %s", text, size(least)).remedy("%s", room)
	case free < comfortable:
		return warn("%s", text).remedy("%s", room)
	case r != nil && r.Unpinned != "":
		return unknown("%s; %s", text, r.Unpinned).remedy("%s", r.Pin)
	case r != nil && len(r.Unsized) > 0:
		return unknown("%s; more for %s, whose registry does not give its size", text, strings.Join(r.Unsized, ", "))
	}
	return ok("%s", text)
}
