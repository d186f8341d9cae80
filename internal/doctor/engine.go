package doctor

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"builder/internal/host"
	"builder/internal/native"
)

const anotherEngine = "start Docker or Podman, or name an engine with --engine URL"

// engine looks for the engine that a run would take.
func engine(ctx context.Context, e *exam) Finding {
	state := e.work.Engine
	switch state.Kind {
	case Named:
		return each(state.Addresses, func(address string) Finding { return e.namedEngine(ctx, address) })
	case Container:
		return ok("%s answers; a run starts the engine in it", state.Program)
	}
	switch goes, has := e.Program("go", host.ProgramDirs(e.Path)); {
	case state.Current:
		return ok("the native engine runs at %s", strings.Join(state.Addresses, ", "))
	case state.Running:
		return warn("the native engine runs, and is of another build or configuration, or does not answer").
			remedy("the next run replaces it when nobody uses it; now: builder engine down")
	case e.effectiveUser() != "0":
		return fail("none runs; only root may start the native engine").remedy("run as root, %s", anotherEngine)
	case state.Built:
		return ok("the native engine is built; a run starts it")
	case !has:
		return fail("none runs, and there is no go to build the native engine with").
			remedy("install Go 1.25 or newer, %s", anotherEngine)
	default:
		return ok("the native engine is not built; the first run builds it with %s", goes)
	}
}

// namedEngine connects where the address is one that a host connects to.
func (e *exam) namedEngine(ctx context.Context, name string) Finding {
	scheme, address, _ := strings.Cut(name, "://")
	if scheme != "unix" && scheme != "tcp" {
		return unknown("%s: only its first run tells whether it answers", name)
	}
	if err := e.Dial(ctx, scheme, address); err != nil {
		return fail("%s does not answer: %v", name, err).
			remedy("start it, name another with --engine or BUILDER_ENGINE, or none")
	}
	return ok("%s answers", name)
}

// effectiveUser is the number of the user that files are made for.
func (e *exam) effectiveUser() string {
	ids, _ := field(e.Says("/proc/self/status"), "Uid")
	if all := strings.Fields(ids); len(all) > 1 {
		return all[1]
	}
	return ""
}

// engineVersion compares what runs with what this tool speaks with.
func engineVersion(ctx context.Context, e *exam) Finding {
	state := e.work.Engine
	switch {
	case state.Version != nil:
		return each(state.Addresses, func(address string) Finding {
			has, err := state.Version(ctx, address)
			if err != nil {
				return unknown("asking %s: %v", address, err)
			}
			return state.judge(has)
		})
	case state.Kind == Container:
		return e.containerVersion(ctx)
	case state.Kind == Named:
		return unknown("the client program that could ask it is not built yet; %s is wanted", state.Wanted)
	case state.Current || state.Built:
		return ok("%s, the one that is wanted", state.Wanted)
	case state.Running:
		return unknown("another build runs; %s is wanted", state.Wanted)
	}
	return none("nothing runs; %s will be built", state.Wanted)
}

// judge compares versions. A difference is a fault: client and engine refuse each
// other, or speak of different things.
func (s EngineState) judge(has string) Finding {
	if strings.TrimPrefix(has, "v") == strings.TrimPrefix(s.Wanted, "v") {
		return ok("%s, the one that is wanted", has)
	}
	return fail("it is %s; %s is wanted", has, s.Wanted).remedy("start the engine %s, or name another with --engine", s.Wanted)
}

// containerVersion looks at the engines that run as containers. The client
// starts one of its own version beside them.
func (e *exam) containerVersion(ctx context.Context) Finding {
	text, err := e.Run(ctx, e.work.Engine.Program, "ps", "--filter", "name=dagger-engine", "--format", "{{.Image}}")
	if err != nil {
		return unknown("%s", silence(e.work.Engine.Program, err))
	}
	var versions []string
	for image := range strings.FieldsSeq(text) {
		image, _, _ = strings.Cut(image, "@")
		versions = append(versions, image[strings.LastIndexByte(image, ':')+1:])
	}
	switch {
	case len(versions) == 0:
		return none("no engine runs in it; the first run starts %s", e.work.Engine.Wanted)
	case slices.Contains(versions, e.work.Engine.Wanted):
		return ok("%s, the one that is wanted", e.work.Engine.Wanted)
	}
	return warn("%s runs; the first run starts %s beside it", strings.Join(versions, ", "), e.work.Engine.Wanted).
		remedy("stop the other engine if nobody uses it")
}

// hostPackages looks for the programs that the native engine runs.
func hostPackages(_ context.Context, e *exam) Finding {
	var lacking []string
	needs := native.Needs(e.Path)
	for _, n := range needs {
		if _, has := e.Program(n.Name, n.Dirs); !has && !slices.Contains(lacking, n.Package) {
			lacking = append(lacking, n.Package)
		}
	}
	if len(lacking) == 0 {
		return ok("all %d programs", len(needs))
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

// capabilities are those that the engine cannot work without: it mounts, makes
// namespaces and bridges, changes owners and roots.
var capabilities = []struct {
	bit  uint
	name string
}{
	{0, "CAP_CHOWN"},
	{1, "CAP_DAC_OVERRIDE"},
	{12, "CAP_NET_ADMIN"},
	{18, "CAP_SYS_CHROOT"},
	{21, "CAP_SYS_ADMIN"},
}

// privileges looks for what a container often takes away from root.
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
		return ok("all that the native engine uses")
	}
	return fail("missing: %s", strings.Join(lacking, ", ")).
		remedy("run as root (a container: privileged), %s", anotherEngine)
}

// userNamespaces looks at the three switches that distributions have.
func userNamespaces(_ context.Context, e *exam) Finding {
	most, known := e.Number("/proc/sys/user/max_user_namespaces")
	clone, hasClone := e.Number("/proc/sys/kernel/unprivileged_userns_clone")
	apparmor, hasArmor := e.Number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
	switch {
	case !known && e.Exists("/proc/sys/kernel/osrelease"):
		return none("the kernel has none; the native engine needs none")
	case !known:
		return unknown("/proc/sys cannot be read")
	case most == 0:
		return none("max_user_namespaces is 0; the native engine needs none")
	case hasClone && clone == 0:
		return none("for root alone (unprivileged_userns_clone is 0); the native engine needs none")
	case hasArmor && apparmor == 1:
		return none("AppArmor allows them to few programs; the native engine needs none")
	}
	return ok("up to %d", most)
}

// overlayfs is what the engine unpacks images with; without it every layer is
// copied.
func overlayfs(_ context.Context, e *exam) Finding {
	kinds, err := e.Text("/proc/filesystems")
	if err != nil {
		return unknown("%s", because(err))
	}
	const copies = "the engine copies whole images"
	if !slices.Contains(strings.Fields(kinds), "overlay") && !e.moduleExists("overlay") {
		return warn("the kernel has none: %s", copies).remedy("load the module overlay, or use a kernel with CONFIG_OVERLAY_FS")
	}
	if m, found := e.Mount(e.work.Home); found && slices.Contains([]string{"overlay", "aufs", "nfs", "nfs4", "vfat", "ecryptfs"}, m.Kind) {
		return warn("the state directory is on %s, which cannot carry it: %s", m.Kind, copies).
			remedy("set BUILDER_HOME to a directory on ext4, xfs or btrfs")
	}
	return ok("the kernel has it")
}

// moduleExists reports whether a module could be loaded.
func (e *exam) moduleExists(name string) bool {
	dir := "/lib/modules/" + e.Kernel()
	for _, list := range []string{"modules.dep", "modules.builtin"} {
		if strings.Contains(e.Says(dir+"/"+list), "/"+name+".ko") {
			return true
		}
	}
	return false
}

// cgroups tells the two versions apart by what is mounted.
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
	return fail("none is mounted").remedy("mount -t cgroup2 none /sys/fs/cgroup, %s", anotherEngine)
}

// absent reports whether a program is not installed.
func absent(err error) bool { return errors.Is(err, exec.ErrNotFound) }

// silence says why a program said nothing of use.
func silence(name string, err error) string {
	if absent(err) {
		return name + " is not in PATH"
	}
	return fmt.Sprintf("%s: %v", name, err)
}
