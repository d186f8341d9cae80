package main

import (
	"cmp"
	"errors"
	"slices"

	"github.com/urfave/cli/v2"

	"builder/internal/app"
	"builder/internal/base/diag"
)

func (engineGroup) flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "engine", EnvVars: []string{"BUILDER_ENGINE"}, Usage: "use the Dagger engine at `URL`: unix, tcp, ssh, docker-container or kube-pod; native avoids Docker and Podman; several engines share the cells; append '#jobs=4&memory=64GB' to limit one"},
		noInstallFlag(),
		idleFlag(),
		cacheFlag(),
		imageFlag(),
	}
}

// readEngines reads every --engine. --jobs and --memory are the defaults for addresses
// without these values.
func readEngines(c *cli.Context, jobs int) ([]app.EngineChoice, error) {
	memory, err := app.HostMemory(c.String("memory"))
	places := slices.DeleteFunc(c.StringSlice("engine"), func(place string) bool { return place == "" }) // BUILDER_ENGINE may be set and empty
	if len(places) == 0 {
		return []app.EngineChoice{{Jobs: max(jobs, 1), Memory: memory}}, err
	}
	if !c.IsSet("memory") {
		memory = 0 // the memory of another engine's host is unknown
	}
	errs := []error{err}
	var engines []app.EngineChoice
	for _, place := range places {
		e, err := app.ParseEngine(place, app.EngineChoice{Jobs: max(jobs, 1), Memory: memory})
		if slices.ContainsFunc(engines, func(o app.EngineChoice) bool { return o.Address == e.Address }) {
			err = cmp.Or(err, error(diag.Errorf(diag.Usage, "--engine: %s occurs twice", e.Address)))
		}
		engines, errs = append(engines, e), append(errs, err)
	}
	return engines, errors.Join(errs...)
}
