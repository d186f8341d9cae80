package doctor

import (
	"context"
	"fmt"
	"strings"

	"builder/internal/machine/host"
)

const anotherEngine = "start Docker or Podman, or name an engine with --engine URL"

// engine checks the engine that a run would use, and the version of one that runs.
func engine(ctx context.Context, e *exam) Finding {
	state := e.work.Engine
	switch state.Kind {
	case Named:
		return state.versioned(ctx, e.namedEngine(ctx, state.Address))
	case Container:
		return contained(state)
	}
	f := e.nativeEngine()
	if state.Current {
		f = state.versioned(ctx, f)
	}
	return f
}

// versioned adds the version of a running engine to its finding. A different version
// fails: client and engine refuse each other, or interpret messages differently.
func (s EngineState) versioned(ctx context.Context, f Finding) Finding {
	if f.Verdict != OK {
		return f
	}
	if s.Version == nil {
		return unknown("%s; its version is unknown until the client program is built; required: %s", f.Found, s.Wanted)
	}
	has, err := s.Version(ctx, s.Address)
	switch {
	case err != nil:
		return unknown("%s; it does not report its version: %v", f.Found, err)
	case strings.TrimPrefix(has, "v") != strings.TrimPrefix(s.Wanted, "v"):
		return fail("%s, but its version is %s; required: %s", f.Found, has, s.Wanted).remedy("start the engine %s, or name another with --engine", s.Wanted)
	}
	return ok("%s, version %s", f.Found, has)
}

// nativeEngine checks whether the native engine runs, or a run can start it.
func (e *exam) nativeEngine() Finding {
	state := e.work.Engine
	switch goes, has := e.Program("go", host.ProgramDirs(e.Path)); {
	case state.Current:
		return ok("the native engine runs at %s", state.Address)
	case state.Running:
		return warn("the running native engine has another build or configuration, or does not answer").
			remedy("the next run replaces it if it is idle; to stop it now: builder engine down")
	case e.effectiveUser() != "0":
		return fail("no engine runs, and only root can start the native engine").remedy("run as root, %s", anotherEngine)
	case state.Built:
		return ok("the native engine is built; a run starts it")
	case state.From != "":
		return ok("the native engine is not there; the first run copies it from %s", state.From)
	case !has:
		return fail("no engine runs, and the native engine needs go for its build").
			remedy("install Go 1.25 or newer, %s", anotherEngine)
	default:
		return ok("the native engine is not built; the first run builds it with %s, which needs a network", goes)
	}
}

// contained checks whether a daemon has the engine's image. Only a pull can show
// whether it can pull the image.
func contained(state EngineState) Finding {
	if state.Holds {
		return ok("%s answers and has the image %s of the engine", state.Program, state.Image)
	}
	if state.From != "" {
		return ok("%s answers; a run loads the image of the engine from %s", state.Program, state.From)
	}
	return unknown("%s answers and has no image of the engine; a run pulls it, or as root uses the native engine if the pull fails", state.Program).
		remedy("without its registry: builder engine image --to engine.tar && %s load -i engine.tar", state.Program)
}

// namedEngine connects to an engine if its address is a socket of this host or network.
func (e *exam) namedEngine(ctx context.Context, name string) Finding {
	scheme, address, _ := strings.Cut(name, "://")
	if scheme != "unix" && scheme != "tcp" {
		return unknown("%s: only a run shows whether it answers", name)
	}
	if err := e.Dial(ctx, scheme, address); err != nil {
		return fail("%s does not answer: %v", name, err).
			remedy("start it, name another with --engine or BUILDER_ENGINE, or leave --engine out")
	}
	return ok("%s answers", name)
}

// effectiveUser returns the effective user id of this process.
func (e *exam) effectiveUser() string {
	ids, _ := field(e.Says("/proc/self/status"), "Uid")
	if all := strings.Fields(ids); len(all) > 1 {
		return all[1]
	}
	return ""
}

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
