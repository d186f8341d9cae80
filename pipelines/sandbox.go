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

// Capabilities that a step keeps, as setpriv writes a set.
const (
	noCaps = "-all"
	// installCaps is what dpkg and maintainer scripts need to own files and to
	// change user; it is a part of what a container has by default.
	installCaps = "-all,+chown,+dac_override,+fowner,+fsetid,+setgid,+setuid,+setfcap,+kill"
)

// The places of the sandbox in a container, for as long as an exec runs.
const (
	sandboxDir = "/opt/builder/sandbox"
	filterPath = "/opt/builder/seccomp"
	toolsDir   = "/opt/builder/host"
)

// The users of a guest are those of this range on the engine's host, which owns
// nothing there: 0 inside is firstID outside. The range lies above those that
// useradd, systemd and container engines give out (systemd's UIDS-GIDS.md). What the
// pipelines write into a container for a guest to change belongs to guestOwner.
const firstID = 2_000_000_000

var guestOwner = fmt.Sprintf("%d:%d", firstID, firstID)

// guest adds an exec whose command is a guest of the engine's host: root in a user
// namespace of its own, with no network, devices or kernel settings, with the
// capabilities caps and no more. scripts/sandbox.sh says what it sees. The engine
// has no switch for any of this (SDK v0.19.10), hence the privileged exec that
// gives up what it was given before the command begins. The name is that of the
// shell which does so: execs that differ in it alone are two for the cache, and one
// for what they run.
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

// bubblewrapCaps writes a set of capabilities as bubblewrap takes them: of
// "-all,+chown" it is "CAP_CHOWN".
func bubblewrapCaps(caps string) string {
	var words []string
	for part := range strings.SplitSeq(caps, ",") {
		if name, kept := strings.CutPrefix(part, "+"); kept {
			words = append(words, "CAP_"+strings.ToUpper(name))
		}
	}
	return strings.Join(words, " ")
}

// setEnv sets a variable for the commands of guests, and for nothing that runs as
// root of the host: LD_PRELOAD of a recipe would be root of the host too.
func setEnv(ctr *dagger.Container, name, value string) *dagger.Container {
	return ctr.WithEnvVariable("GUEST_"+name, value)
}

// writable makes directories that a guest may write to. In an image of a registry
// everything else belongs to root of the host, and a guest may only read it.
func (s *session) writable(ctr *dagger.Container, dirs ...string) *dagger.Container {
	for _, dir := range dirs {
		ctr = ctr.WithDirectory(dir, s.client.Directory(), dagger.ContainerWithDirectoryOpts{Owner: guestOwner})
	}
	return ctr
}

// firstTime is the name of an exec that the cache may answer.
const firstTime = "guest"

// exec runs one command of a step as a guest, now, and returns the container after
// it and what it printed. What the cache answers is printed into the step's log
// like what was just run.
func (c *cell) exec(ctx context.Context, ctr *dagger.Container, caps string, args []string) (*dagger.Container, string, error) {
	return c.execNamed(ctx, ctr, firstTime, caps, args)
}

// execNamed is exec under a name; see [session.guest].
func (c *cell) execNamed(ctx context.Context, ctr *dagger.Container, name, caps string, args []string) (*dagger.Container, string, error) {
	start := time.Now()
	// Sync comes first: an exec of which only the output was asked for is run
	// again when somebody asks for its files.
	done, err := c.guest(ctr, name, caps, args, dagger.ContainerWithExecOpts{}).Sync(ctx)
	if err != nil {
		return nil, "", c.failure(err)
	}
	printed, err := done.Stdout(ctx)
	if err != nil {
		return nil, "", err
	}
	ran, output := stamp(printed)
	c.stream.ran(ran.Before(start), output)
	return done, output, nil
}

const stampPrefix = "builder-ran "

// stamp takes the first line, which says when the exec was run, off its output.
func stamp(printed string) (time.Time, string) {
	first, rest, _ := strings.Cut(printed, "\n")
	nanoseconds, err := strconv.ParseInt(strings.TrimPrefix(first, stampPrefix), 10, 64)
	if err != nil {
		return time.Time{}, printed
	}
	return time.Unix(0, nanoseconds), rest
}

// failure gives a failed exec the class of a failed build and the end of what it
// printed.
func (c *cell) failure(err error) error {
	var failed *dagger.ExecError
	if !errors.As(err, &failed) {
		return err
	}
	_, output := stamp(failed.Stdout)
	c.stream.settle(output)
	return &diag.Error{
		Code: diag.Build,
		Err:  fmt.Errorf("exit %d", failed.ExitCode),
		Log:  strings.Split(strings.TrimRight(output+failed.Stderr, "\n"), "\n"),
	}
}

// shell is the argument vector that runs a script with both streams in one, so
// that a log keeps its order.
func shell(script string) []string { return []string{"sh", "-euc", "exec 2>&1\n" + script} }
