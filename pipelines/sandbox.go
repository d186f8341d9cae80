package pipelines

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dagger.io/dagger"

	"builder/internal/base/diag"
)

// Capabilities of a step, in the notation of setpriv.
const (
	noCaps = "-all"
	// installCaps lets dpkg and maintainer scripts own files and change users. It is a
	// subset of a container's default capabilities.
	installCaps = "-all,+chown,+dac_override,+fowner,+fsetid,+setgid,+setuid,+setfcap,+kill"
)

// Paths of the sandbox in a container while an exec runs.
const (
	sandboxDir = "/opt/builder/sandbox"
	filterPath = "/opt/builder/seccomp"
	toolsDir   = "/opt/builder/host"
)

// firstID is the first user ID of a guest on the engine's host: 0 inside is firstID
// outside. These users own nothing on the host. The range is above those of useradd,
// systemd and container engines (systemd's UIDS-GIDS.md). Files that a guest may change
// belong to guestOwner.
const firstID = 2_000_000_000

var guestOwner = fmt.Sprintf("%d:%d", firstID, firstID)

// guest adds an exec with its command isolated from the engine's host. The command is
// root in its own user namespace, without network, devices and kernel settings, with
// exactly the capabilities caps. scripts/sandbox.sh documents its view of the system.
// The engine has no option for this (SDK v0.19.10), so the exec is privileged and drops
// its privileges before the command starts. name is the name of the shell that does so.
// Two execs that differ only in name have separate cache entries and do the same.
func (s *session) guest(ctr *dagger.Container, name, caps string, args []string, opts dagger.ContainerWithExecOpts) *dagger.Container {
	opts.InsecureRootCapabilities = true
	begin, tools := []string{"/bin/sh"}, ""
	if s.tools != nil {
		ctr = ctr.WithMountedDirectory(toolsDir, s.tools)
		libraries := toolsDir + "/usr/lib/x86_64-linux-gnu"
		begin = []string{libraries + "/ld-linux-x86-64.so.2", "--library-path", libraries, toolsDir + "/usr/bin/dash"}
		tools = toolsDir
	}
	begin = append(begin, "-c", script("sandbox.sh"), name, sandboxDir, tools, strconv.Itoa(firstID), caps, bubblewrapCaps(caps))
	filter := s.client.Directory().WithNewFile("seccomp", script("seccomp.b64")).File("seccomp")
	return ctr.
		WithMountedDirectory(sandboxDir, s.client.Host().Directory(s.bubblewrap)).
		WithMountedFile(filterPath, filter).
		WithExec(append(begin, args...), opts).
		WithoutMount(toolsDir).
		WithoutMount(filterPath).
		WithoutMount(sandboxDir)
}

// bubblewrapCaps converts a set of capabilities to bubblewrap's notation: "-all,+chown"
// becomes "CAP_CHOWN".
func bubblewrapCaps(caps string) string {
	var words []string
	for part := range strings.SplitSeq(caps, ",") {
		if name, kept := strings.CutPrefix(part, "+"); kept {
			words = append(words, "CAP_"+strings.ToUpper(name))
		}
	}
	return strings.Join(words, " ")
}

// setEnv sets a variable only for the commands of guests. Programs running as the
// host's root do not get it, because a recipe's LD_PRELOAD would then run code as the
// host's root.
func setEnv(ctr *dagger.Container, name, value string) *dagger.Container {
	return ctr.WithEnvVariable("GUEST_"+name, value)
}

// writable creates directories writable by a guest. In a registry image all other files
// belong to the host's root, and a guest can only read them. The engine merges a
// directory with all layers since the previous call: it links every file of them again
// (v0.19.10), which takes seconds after an exec that installed a framework.
func (s *session) writable(ctr *dagger.Container, dirs ...string) *dagger.Container {
	for _, dir := range dirs {
		ctr = ctr.WithDirectory(dir, s.client.Directory(), dagger.ContainerWithDirectoryOpts{Owner: guestOwner})
	}
	return ctr
}

// firstTime is the name of an exec that may come from the cache.
const firstTime = "guest"

// nextTime returns a name for an exec that must not come from the cache.
func nextTime() string { return fmt.Sprintf("again-%d", time.Now().UnixNano()) }

// exec runs one command of a step as a guest and returns the new container and the
// output. Cached output goes to the step's log too. [session.guest] explains name.
func (s *session) exec(ctx context.Context, ctr *dagger.Container, name, caps string, args []string) (*dagger.Container, string, error) {
	start := time.Now()
	// Sync comes first. If only the output of an exec was requested, a later request
	// for its files runs it again.
	done, err := s.guest(ctr, name, caps, args, dagger.ContainerWithExecOpts{}).Sync(ctx)
	if err != nil {
		return nil, "", s.failure(err)
	}
	printed, whole, err := outputOf(ctx, done)
	if err != nil {
		return nil, "", err
	}
	if !whole {
		time.Sleep(lag) // the progress has shown it, but for its last lines
		s.stream.ran(false, "")
		s.stream.note("builder: the step printed more than the engine gives back, and the log may lack its end")
		return done, "", nil
	}
	ran, output := stamp(printed)
	s.stream.ran(ran.Before(start), printed)
	return done, output, nil
}

// tooLong is part of the engine's error (v0.19.10) about an output or a file of more than
// 128 MiB.
const tooLong = "exceeds limit"

// outputOf returns what an exec printed. An output that is too long for the engine is not
// whole, and the exec is as good as any other.
func outputOf(ctx context.Context, done *dagger.Container) (printed string, whole bool, err error) {
	printed, err = done.Stdout(ctx)
	if err != nil && strings.Contains(err.Error(), tooLong) {
		return "", false, nil
	}
	return printed, true, err
}

const stampPrefix = "builder-ran "

// stamp removes the first line from an exec's output and returns the time in it, when
// the exec ran.
func stamp(printed string) (time.Time, string) {
	first, rest := cutStamp(printed)
	nanoseconds, err := strconv.ParseInt(strings.TrimPrefix(first, stampPrefix), 10, 64)
	if err != nil {
		return time.Time{}, printed
	}
	return time.Unix(0, nanoseconds), rest
}

// cutStamp separates the line with the time from an exec's output. The line is empty if
// there is none.
func cutStamp(printed string) (line, output string) {
	if first, rest, _ := strings.Cut(printed, "\n"); strings.HasPrefix(first, stampPrefix) {
		return first, rest
	}
	return "", printed
}

// failure gives a failed exec the class of a failed build and attaches its output.
func (s *session) failure(err error) error {
	failed, ok := errors.AsType[*dagger.ExecError](err)
	if !ok {
		return err
	}
	_, output := stamp(failed.Stdout)
	s.stream.settle(failed.Stdout)
	return &diag.Error{
		Code: diag.Build,
		Err:  fmt.Errorf("exit %d", failed.ExitCode),
		Log:  strings.Split(strings.TrimRight(output+failed.Stderr, "\n"), "\n"),
	}
}

// shell returns the arguments to run a script with stderr merged into stdout, so that a
// log keeps its order.
func shell(script string) []string { return []string{"sh", "-euc", "exec 2>&1\n" + script} }
