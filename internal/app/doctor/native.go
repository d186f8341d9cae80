package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"builder/internal/build/native"
	"builder/internal/machine/host"
)

// The checks of this file cover the requirements of the native engine.

// hostPackages checks that the programs used by the native engine are installed.
func hostPackages(_ context.Context, e *exam) Finding {
	var lacking []string
	for _, n := range native.Needs {
		if _, has := e.Program(n.Name, host.ProgramDirs(e.Path)); !has && !slices.Contains(lacking, n.Package) {
			lacking = append(lacking, n.Package)
		}
	}
	if len(lacking) == 0 {
		return ok("all %d programs", len(native.Needs))
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

// capabilities are required by the engine: it mounts file systems, creates namespaces,
// and changes owners and roots.
var capabilities = []struct {
	bit  uint
	name string
}{
	{0, "CAP_CHOWN"},
	{1, "CAP_DAC_OVERRIDE"},
	{18, "CAP_SYS_CHROOT"},
	{21, "CAP_SYS_ADMIN"},
}

// privileges checks capabilities and namespaces, which containers often withhold from
// root.
func privileges(_ context.Context, e *exam) Finding {
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
	for _, c := range capabilities {
		if effective>>c.bit&1 == 0 {
			lacking = append(lacking, c.name)
		}
	}
	for _, kind := range []string{"mnt", "pid", "net"} {
		if e.Link("/proc/self/ns/"+kind) == "" {
			lacking = append(lacking, kind+" namespaces")
		}
	}
	if len(lacking) == 0 {
		return ok("all privileges of the native engine")
	}
	return fail("missing: %s", strings.Join(lacking, ", ")).
		remedy("run as root (a container: privileged), %s", anotherEngine)
}

// userNamespaces reads the three sysctls with which distributions restrict them.
func userNamespaces(_ context.Context, e *exam) Finding {
	most, known := e.Number("/proc/sys/user/max_user_namespaces")
	clone, hasClone := e.Number("/proc/sys/kernel/unprivileged_userns_clone")
	apparmor, hasArmor := e.Number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
	switch {
	case !known && e.Exists("/proc/sys/kernel/osrelease"):
		return none("not supported by the kernel; the native engine needs none")
	case !known:
		return unknown("/proc/sys cannot be read")
	case most == 0:
		return none("max_user_namespaces is 0; the native engine needs none")
	case hasClone && clone == 0:
		return none("only for root (unprivileged_userns_clone is 0); the native engine needs none")
	case hasArmor && apparmor == 1:
		return none("AppArmor allows them only for a few programs; the native engine needs none")
	}
	return ok("up to %d", most)
}

// overlayfs checks for overlayfs, which the engine uses to unpack images. Without it
// the engine copies every layer.
func overlayfs(_ context.Context, e *exam) Finding {
	kinds, err := e.Text("/proc/filesystems")
	if err != nil {
		return unknown("%s", because(err))
	}
	const copies = "the engine copies whole images"
	if !slices.Contains(strings.Fields(kinds), "overlay") && !e.moduleExists("overlay") {
		return warn("the kernel has no overlayfs: %s", copies).remedy("load the module overlay, or use a kernel with CONFIG_OVERLAY_FS")
	}
	if m, found := e.Mount(e.work.Home); found && slices.Contains([]string{"overlay", "aufs", "nfs", "nfs4", "vfat", "ecryptfs"}, m.Kind) {
		return warn("the state directory is on %s, which does not support it: %s", m.Kind, copies).
			remedy("set BUILDER_HOME to a directory on ext4, xfs or btrfs")
	}
	return ok("supported")
}

// moduleExists reports whether the kernel can load a module.
func (e *exam) moduleExists(name string) bool {
	dir := "/lib/modules/" + e.Kernel()
	for _, list := range []string{"modules.dep", "modules.builtin"} {
		if strings.Contains(e.Says(dir+"/"+list), "/"+name+".ko") {
			return true
		}
	}
	return false
}

// cgroups determines the version of control groups from the mounts.
func cgroups(_ context.Context, e *exam) Finding {
	mounts, err := e.Mounts()
	if err != nil {
		return unknown("%s", because(err))
	}
	var first, second []string
	for _, m := range mounts {
		switch m.Kind {
		case "cgroup":
			first = append(first, m.Point[strings.LastIndexByte(m.Point, '/')+1:])
		case "cgroup2":
			second = append(second, m.Point)
		}
	}
	switch {
	case len(first) > 0:
		return ok("version 1: %s", strings.Join(first, ", "))
	case len(second) > 0:
		return ok("version 2: %s", strings.ReplaceAll(e.Says(second[0]+"/cgroup.controllers"), " ", ", "))
	}
	return fail("no control groups are mounted").remedy("mount -t cgroup2 none /sys/fs/cgroup, %s", anotherEngine)
}
