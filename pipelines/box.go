package pipelines

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"dagger.io/dagger"

	"builder/internal/artifact"
	"builder/internal/gate"
	"builder/internal/lock"
)

// box is the clean container of the gates: the run-time image, the locked
// run-time packages and the wheel.
type box struct {
	*session
	ctr *dagger.Container
	img lock.Image
}

var _ gate.Box = box{}

const boxDir = "/gate"

// box installs the wheel into a container that has seen nothing of the build.
func (c *cell) box(ctx context.Context, wheel artifact.Artifact) (gate.Box, error) {
	if c.isStack() {
		return c.emptyBox(ctx, wheel)
	}
	img := c.entry.Runtime
	ctr, err := c.base(ctx, img)
	if err != nil {
		return nil, err
	}
	if err := c.probe(ctx, ctr, img); err != nil {
		return nil, err
	}
	if ctr, err = c.withWheels(ctx, ctr, img); err != nil {
		return nil, err
	}
	ctr, err = c.install(ctx, ctr.WithMountedFile(uvPath, c.client.Host().File(c.UV)), img, wheel)
	if err != nil {
		return nil, err
	}
	ctr = ctr.WithoutMount(uvPath).WithWorkdir(boxDir).
		WithEnvVariable("HOME", boxDir).
		WithEnvVariable("LC_ALL", "C.UTF-8").
		WithEnvVariable("TF_CPP_MIN_LOG_LEVEL", "2")
	return box{c.session, ctr, img}, nil
}

// Run implements [gate.Box].
func (b box) Run(ctx context.Context, c gate.Command) (gate.Result, error) {
	ctr := withEnv(b.ctr, c.Env)
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		ctr = ctr.WithNewFile(boxDir+"/"+name, c.Files[name])
	}
	args := slices.Clone(c.Args)
	for i, arg := range args {
		switch arg {
		case "PYTHON":
			args[i] = venvDir + "/bin/python"
		case "UV":
			args[i] = uvPath
		}
	}
	args = append([]string{"sh", "-c", `exec "$@" 2>&1`, c.Name}, args...)
	done := offline(ctr, b.img, firstTime, noCaps, args, dagger.ContainerWithExecOpts{Expect: dagger.ReturnTypeAny})
	output, err := done.Stdout(ctx)
	var died *dagger.ExecError
	if errors.As(err, &died) {
		// Any means 0 to 127: what a signal ended is an error to the SDK, and a
		// result to a gate.
		_, output := stamp(died.Stdout)
		return gate.Result{Exit: died.ExitCode, Output: output}, nil
	}
	if err != nil {
		return gate.Result{}, fmt.Errorf("running %s in the box: %w", c.Name, b.engines(ctx, err))
	}
	exit, err := done.ExitCode(ctx)
	if err != nil {
		return gate.Result{}, fmt.Errorf("running %s in the box: %w", c.Name, b.engines(ctx, err))
	}
	_, output = stamp(output)
	return gate.Result{Exit: exit, Output: output}, nil
}
