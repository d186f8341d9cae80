package pipelines

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"dagger.io/dagger"
	"github.com/sourcegraph/conc"

	"builder/internal/build/run"
	"builder/internal/gates/gate"
	"builder/internal/input/pypi"
	"builder/internal/plan/lock"
)

// box is the clean container of the gates: the run-time image, the locked run-time
// packages and the artifact.
type box struct {
	*session
	ctr  *dagger.Container
	venv string // path of the virtual environment
}

var _ gate.Box = box{}

// Paths in a box: the working directory of commands, and the tree of an artifact that
// is not a wheel.
const (
	boxDir  = "/gate"
	treeDir = "/opt/tree"
	// filesDir holds the files of a command, which the command copies. The engine makes and
	// removes hard links to the files that it gives a container, and the kernel then notes a
	// change of them: a gate would say that the ranks wrote its scripts.
	filesDir = "/tmp/gate"
)

// stock makes a box with the source as released by upstream.
func (c *cell) stock(ctx context.Context) (gate.Box, error) {
	dir, err := lay(c.Engine, "source", c.entry.Source.File)
	if err != nil {
		return nil, err
	}
	return c.box(ctx, filepath.Join(dir, c.entry.Source.Filename))
}

// box puts a file into a fresh container, separate from the build. It installs a wheel
// and unpacks an archive.
func (c *cell) box(ctx context.Context, file string) (box, error) {
	ctr, err := c.runtime(ctx)
	if err != nil {
		return box{}, err
	}
	if filepath.Ext(file) == ".whl" {
		ctr, err = c.install(ctx, ctr.WithMountedFile(uvPath, c.client.Host().File(c.UV)), venvOf(c.entry.Runtime), file)
	} else {
		ctr, err = c.unfold(ctx, ctr, file)
	}
	if err != nil {
		return box{}, err
	}
	ctr = withEnv(ctr.WithoutMount(uvPath).WithWorkdir(boxDir),
		map[string]string{"HOME": boxDir, "LC_ALL": "C.UTF-8", "TF_CPP_MIN_LOG_LEVEL": "2"})
	return box{c.session, ctr, venvOf(c.entry.Runtime)}, nil
}

// runtime returns the container of a box before it gets the artifact.
func (c *cell) runtime(ctx context.Context) (*dagger.Container, error) {
	ctr, err := c.commonRuntime(ctx)
	if err != nil {
		return nil, err
	}
	return c.withWheels(ctx, ctr, c.entry.Runtime, without(c.entry.Runtime.Wheels, firstWheels(c.entry)))
}

// commonRuntime returns the run-time with the packages that the build has too, or with all
// of its own if the two share none. It waits for [Engine.prepare].
func (c *cell) commonRuntime(ctx context.Context) (*dagger.Container, error) {
	c.prepared(ctx)
	aside := *c.session // the build keeps its own tools
	m := images{c.Engine, &aside}
	ctr, err := m.proven(ctx, c.entry.Runtime)
	if err != nil {
		return nil, err
	}
	return m.withVenv(ctx, ctr, c.entry.Runtime, firstWheels(c.entry), boxDir, testsDir, treeDir)
}

// firstWheels returns the packages of the container of [cell.commonRuntime].
func firstWheels(e lock.Entry) []pypi.File {
	if shared := sharedWheels(e); len(shared) > 0 {
		return shared
	}
	return e.Runtime.Wheels
}

// prepare puts the run-time of a cell into the engine's cache, so that the step box finds
// it there. Most of it uses one processor and waits for the disk, as the steps image and
// packages do. It has a session and so a log stream of its own, which costs a second of
// one processor: so it does so once for each run-time. The step box does the work again
// if it fails here, and returns the error.
//
// wait waits until the run-time is in the cache, or could not be made. stop ends the work
// and returns when the session has ended.
func (e *Engine) prepare(ctx context.Context, job run.Job) (wait func(context.Context), stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ready, finished := context.WithCancel(context.Background())
	var work conc.WaitGroup
	wait = func(ctx context.Context) {
		select {
		case <-ready.Done():
		case <-ctx.Done():
		}
	}
	stop = func() {
		cancel()
		work.Wait()
	}
	of := job.Entry.Runtime.Key() + fmt.Sprint(firstWheels(job.Entry))
	for _, wheel := range job.Inputs {
		of += wheel.SHA256
	}
	if _, begun := e.begun.LoadOrStore(of, true); begun || job.Again {
		finished()
		return wait, stop
	}
	work.Go(func() {
		defer finished()
		ctx, c, err := e.open(ctx, job, nil)
		if err != nil {
			return
		}
		defer c.close(ctx)
		_, _ = c.runtime(ctx)
		finished() // before the session ends, which takes longer
	})
	return wait, stop
}

// testsDir is the path of upstream's tests in a box.
const testsDir = "/opt/tests"

// tests makes a box with upstream's tests and their dependencies that the run-time
// lacks.
func (c *cell) tests(ctx context.Context, file string) (gate.Box, error) {
	b, err := c.box(ctx, file)
	if err != nil {
		return nil, err
	}
	brought := func(f pypi.File) bool {
		return slices.ContainsFunc(c.entry.Runtime.Wheels, func(w pypi.File) bool { return w.Project == f.Project })
	}
	needed := slices.DeleteFunc(slices.Clone(c.entry.TestWheels), brought)
	wheels, err := stage(c.images, "tests", needed...)
	if err != nil {
		return nil, err
	}
	tree, err := stage(c.images, "source", c.entry.Tests.File)
	if err != nil {
		return nil, err
	}
	script := untar("/source/"+c.entry.Tests.Filename, testsDir)
	if len(needed) > 0 {
		script += installScript(b.venv, "/wheels/*.whl")
	}
	ctr := b.ctr.
		WithMountedFile(uvPath, c.client.Host().File(c.UV)).
		WithMountedDirectory("/wheels", wheels).
		WithMountedDirectory("/source", tree)
	ctr, _, err = c.exec(ctx, ctr, firstTime, installCaps, shell(script))
	if err != nil {
		return nil, err
	}
	b.ctr = setEnv(ctr.WithoutMount("/source").WithoutMount("/wheels").WithoutMount(uvPath), gate.TestsVariable, testsDir)
	return b, nil
}

// unfold unpacks the only folder of an archive and sets BUILDER_TREE to its path.
func (s *session) unfold(ctx context.Context, ctr *dagger.Container, archive string) (*dagger.Container, error) {
	at := "/artifact/" + filepath.Base(archive)
	ctr, _, err := s.exec(ctx, ctr.WithMountedFile(at, s.client.Host().File(archive)), firstTime, noCaps, shell(untar(at, treeDir)))
	if err != nil {
		return nil, err
	}
	return setEnv(ctr.WithoutMount(at), "BUILDER_TREE", treeDir), nil
}

// Run implements [gate.Box]. It never takes a result from the engine's cache: a gate
// that failed on a busy host would otherwise fail in every later run.
func (b box) Run(ctx context.Context, c gate.Command) (gate.Result, error) {
	ctr := withEnv(b.ctr, c.Env)
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		ctr = ctr.WithNewFile(filesDir+"/"+name, c.Files[name])
	}
	args := slices.Clone(c.Args)
	for i, arg := range args {
		if arg == "PYTHON" {
			args[i] = b.venv + "/bin/python"
		}
	}
	run := `exec "$@" 2>&1`
	if len(c.Files) > 0 {
		run = "cp -r " + filesDir + "/. . 2>&1 && " + run
	}
	args = append([]string{"sh", "-c", run, c.Name}, args...)
	done := b.guest(ctr, nextTime(), noCaps, args, dagger.ContainerWithExecOpts{Expect: dagger.ReturnTypeAny, Stdin: c.Stdin})
	exit := 0
	output, err := done.Stdout(ctx)
	if err == nil {
		exit, err = done.ExitCode(ctx)
	}
	// Any covers exit codes 0 to 127. For a program ended by a signal the SDK returns an
	// error, but for a gate it is a result.
	if died, ok := errors.AsType[*dagger.ExecError](err); ok {
		exit, output, err = died.ExitCode, died.Stdout, nil
	}
	if err != nil {
		return gate.Result{}, fmt.Errorf("running %s in the box: %w", c.Name, b.engines(ctx, err))
	}
	_, output = stamp(output)
	return gate.Result{Exit: exit, Output: output}, nil
}
