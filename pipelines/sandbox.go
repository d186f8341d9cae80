package pipelines

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dagger.io/dagger"

	"builder/internal/diag"
	"builder/internal/lock"
)

// Capabilities that a step keeps, as setpriv writes a set.
const (
	noCaps = "-all"
	// installCaps is what dpkg and maintainer scripts need to own files and to
	// change user; it is a part of what a container has by default.
	installCaps = "-all,+chown,+dac_override,+fowner,+fsetid,+setgid,+setuid,+setfcap,+kill"
)

// offline adds an exec without a network: a network namespace with nothing but
// loopback, a plain processor in /proc/cpuinfo (where the image has an
// interpreter), and no capability beyond caps. The SDK has no switch for it
// (v0.19.10), hence the privileged exec that gives up what it was given. The name
// is that of the shell which sets all this up and is gone when the command
// begins: execs that differ in it alone are two for the cache, and one for what
// they run.
func offline(ctr *dagger.Container, img lock.Image, name, caps string, args []string, opts dagger.ContainerWithExecOpts) *dagger.Container {
	opts.InsecureRootCapabilities = true
	return ctr.
		WithEnvVariable("BUILDER_SURROUNDINGS", script("surroundings.py")).
		WithExec(append([]string{"sh", "-c", script("offline.sh"), name, img.Python, caps}, args...), opts).
		WithoutEnvVariable("BUILDER_SURROUNDINGS")
}

// firstTime is the name of an exec that the cache may answer.
const firstTime = "offline"

// exec runs one command of a step offline, now, and returns the container after
// it and what it printed. What the cache answers is printed into the step's log
// like what was just run.
func (c *cell) exec(ctx context.Context, ctr *dagger.Container, img lock.Image, caps string, args []string) (*dagger.Container, string, error) {
	return c.execNamed(ctx, ctr, img, firstTime, caps, args)
}

// execNamed is exec under a name; see [offline].
func (c *cell) execNamed(ctx context.Context, ctr *dagger.Container, img lock.Image, name, caps string, args []string) (*dagger.Container, string, error) {
	start := time.Now()
	// Sync comes first: an exec of which only the output was asked for is run
	// again when somebody asks for its files.
	done, err := offline(ctr, img, name, caps, args, dagger.ContainerWithExecOpts{}).Sync(ctx)
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
