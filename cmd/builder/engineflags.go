package main

import (
	"cmp"
	"errors"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"builder/cmd/builder/config"
	"builder/internal/app"
	"builder/internal/base/diag"
	"builder/internal/base/size"
	"builder/internal/build/native"
	"builder/internal/machine/host"
	"builder/pipelines"
)

// engineGroup is the group of flags for the engines and their time limits.
type engineGroup struct{}

func (engineGroup) flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "engine", EnvVars: []string{"BUILDER_ENGINE"}, Usage: "use the Dagger engine at `URL`: unix, tcp, ssh, docker-container or kube-pod; native avoids Docker and Podman; several engines share the cells; append '#jobs=4&memory=64GB' to limit one"},
		noInstallFlag(),
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

// engineDefaults are the defaults of the settings of engines that have no flag: they are
// variables and keys of builder.yaml.
var engineDefaults = map[string]string{
	"engine-patience": pipelines.Patience.String(),
	app.CacheKey:      "60%", app.ImageKey: "",
}

// engineSetting returns a setting of engines that has no flag, and its variable.
func engineSetting(key string) (text, variable string) {
	variable = config.Variable(key)
	return cmp.Or(os.Getenv(variable), engineDefaults[key]), variable
}

func engineTime(key string) (time.Duration, error) {
	text, variable := engineSetting(key)
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, diag.Errorf(diag.Usage, "%s: %q is not a time", variable, text).WithHint("write a time with its unit, such as 90s, 10m or 12h")
	}
	return d, nil
}

// engineCache returns the size limit of an engine's cache, or 0 if the engine chooses it
// by its own disk.
func engineCache(home string) (int64, error) {
	disk, _, unknown := host.Disk(home)
	text, variable := engineSetting(app.CacheKey)
	bytes, err := size.Share(text, disk)
	if err != nil {
		return 0, diag.Errorf(diag.Usage, "%s: %w", variable, err)
	}
	if unknown != nil {
		return 0, nil
	}
	return bytes, nil
}

func (engineGroup) read(c *cli.Context, home string) (e app.Engines, err error) {
	e = app.Engines{StepLimit: c.Duration("step-limit"), Ccache: c.Bool("ccache"), Native: native.Options{NoInstall: c.Bool("no-install")}}
	jobs := c.Int("jobs")
	if c.IsSet("jobs") && jobs < 1 {
		return e, diag.Errorf(diag.Usage, "--jobs: %d is less than 1", jobs)
	}
	var errs [4]error
	e.Patience, errs[0] = engineTime("engine-patience")
	e.Native.Cache, errs[1] = engineCache(home)
	image, _ := engineSetting(app.ImageKey)
	e.Image, errs[2] = app.ParseEngineImage(image)
	e.Choices, errs[3] = readEngines(c, min(max(jobs, 1), 4*runtime.NumCPU()))
	return e, errors.Join(errs[:]...)
}
