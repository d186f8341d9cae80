package doctor

import (
	"context"
	"fmt"
	"strings"

	"builder/internal/machine/host"
)

// hostPackages checks that the programs that a run needs from the host are installed.
func hostPackages(_ context.Context, e *exam) Finding {
	needed := e.work.Engine.Programs
	if len(needed) == 0 {
		return none("nothing is needed from the host")
	}
	_, lacking := e.Find(needed)
	if len(lacking) == 0 {
		return ok("all %d programs", len(needed))
	}
	list := strings.Join(lacking, " ")
	_, apt := e.Program("apt-get", host.ProgramDirs(e.Path))
	switch {
	case apt && !e.work.Engine.NoInstall && e.effectiveUser() == "0":
		return warn("missing: %s; the first run installs them", list).remedy("apt-get install --no-install-recommends %s", list)
	case apt:
		return fail("missing: %s", list).remedy("apt-get install --no-install-recommends %s", list)
	}
	return fail("missing: %s", list).remedy("install them (the names are Debian's), %s", anotherEngine)
}

// privileges checks what containers often withhold from root: the capability to mount file
// systems and make namespaces, and control groups.
func privileges(_ context.Context, e *exam) Finding {
	const sysAdmin = 21
	status, err := e.Text("/proc/self/status")
	if err != nil {
		return unknown("%s", because(err))
	}
	var effective uint64
	text, has := field(status, "CapEff")
	if _, err := fmt.Sscanf(text, "%x", &effective); err != nil || !has {
		return unknown("/proc/self/status has no CapEff")
	}
	var lacking []string
	if effective>>sysAdmin&1 == 0 {
		lacking = append(lacking, "CAP_SYS_ADMIN")
	}
	if len(e.Glob("/sys/fs/cgroup/cgroup.procs"))+len(e.Glob("/sys/fs/cgroup/*/cgroup.procs")) == 0 {
		lacking = append(lacking, "control groups")
	}
	if len(lacking) == 0 {
		return ok("all privileges of the native engine")
	}
	return fail("missing: %s", strings.Join(lacking, ", ")).
		remedy("run as root (a container: privileged), %s", anotherEngine)
}
