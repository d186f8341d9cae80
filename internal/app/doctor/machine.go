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

// leastFree is the free disk space in bytes without which no run starts. The programs of
// the engine and its empty cache take 1 GB, and the smallest cells measured, with 0.1 GB
// of inputs, took 1.2 to 1.4 GB of the cache (2026-11-22).
const leastFree = 3e9

// disk refuses a disk on which not even a small cell could be built. Nothing tells the
// need of a large one before its build.
func disk(_ context.Context, e *exam) Finding {
	free, err := e.Free(e.existing())
	if err != nil {
		return unknown("%v", err)
	}
	text := fmt.Sprintf("%s free", size(free))
	if free < leastFree {
		return fail("less than %s free: %s", size(leastFree), size(free)).
			remedy("free space: `builder store gc` empties the engine's cache, with --keep 0 the store too; or set BUILDER_HOME to a larger disk")
	}
	switch r := e.work.Recipe; {
	case r == nil:
		return ok("%s", text)
	case r.Unpinned != "":
		return unknown("%s; %s", text, r.Unpinned).remedy("%s", r.Pin)
	default:
		return ok("%s; %s to fetch", text, size(r.Fetch))
	}
}
