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
	"builder/cmd/builder/show"
	"builder/internal/app/host"
	"builder/internal/base/diag"
	"builder/internal/build/fleet"
	"builder/internal/build/native"
	"builder/internal/view/term"
	"builder/pipelines"
)

func engineCommand(out term.Printer) *cli.Command {
	verb := func(name, usage string, do func(*cli.Context, host.Setup) error, flags ...cli.Flag) *cli.Command {
		return &cli.Command{Name: name, Usage: usage, Flags: append(flags, noInstallFlag()), Action: onHost(out, do)}
	}
	return &cli.Command{
		Name: "engine", Usage: "start, stop and inspect the native engine: the Dagger engine without Docker",
		Subcommands: []*cli.Command{
			verb("up", "build and start the engine, if it does not run", func(c *cli.Context, s host.Setup) error {
				address, err := host.NativeEngine(s).Up(c.Context)
				if err == nil {
					out.Say("%s", address)
				}
				return err
			}),
			verb("down", "stop the engine, also in Docker and Podman; its cache stays", func(c *cli.Context, s host.Setup) error {
				return host.StopEngine(c.Context, s)
			}),
			verb("image", "write the engine as an image for `docker load`, `podman load` and other hosts of builder", func(c *cli.Context, s host.Setup) error {
				image, err := host.WriteEngineImage(c.Context, s, c.String("to"))
				if err != nil {
					return err
				}
				out.Say("%s is %s", c.String("to"), native.ImageName)
				out.Say("use it on another host with %s=%s", config.Variable(native.ImageKey), image)
				out.Say("or with docker load -i %s", c.String("to"))
				return nil
			}, &cli.StringFlag{Name: "to", Aliases: []string{"o"}, Usage: "write the image to `FILE`, which must not exist"}),
			verb("status", "print whether the engine is built and runs, and the place of its cache", func(c *cli.Context, s host.Setup) error {
				now := host.NativeEngine(s).Look()
				cache, err := native.DiskUsage(c.Context, now.StateDir)
				if err == nil {
					show.Engine(out, now, cache)
				}
				return err
			}),
		},
	}
}

// engineFlags are the flags for the engines.
func engineFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "engine", EnvVars: []string{"BUILDER_ENGINE"}, Usage: "use the Dagger engine at `URL`: unix, tcp, ssh, docker-container or kube-pod; native avoids Docker and Podman; several engines share the cells; append '#jobs=4&memory=64GB' to limit one"},
		noInstallFlag(),
	}
}

// readChoices reads every --engine. --jobs and --memory are the defaults for addresses
// without these values.
func readChoices(c *cli.Context, jobs int) ([]fleet.Choice, error) {
	memory, err := fleet.HostMemory(c.String("memory"))
	places := slices.DeleteFunc(c.StringSlice("engine"), func(place string) bool { return place == "" }) // BUILDER_ENGINE may be set and empty
	if len(places) == 0 {
		return []fleet.Choice{{Jobs: max(jobs, 1), Memory: memory}}, err
	}
	if !c.IsSet("memory") {
		memory = 0 // the memory of another engine's host is unknown
	}
	errs := []error{err}
	var engines []fleet.Choice
	for _, place := range places {
		e, err := fleet.ParseEngine(place, fleet.Choice{Jobs: max(jobs, 1), Memory: memory})
		if slices.ContainsFunc(engines, func(o fleet.Choice) bool { return o.Address == e.Address }) {
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
	host.CacheKey:     "60%", native.ImageKey: "",
}

// engineSetting returns a setting of engines that has no flag, and its variable.
func engineSetting(key string) (text, variable string) {
	variable = config.Variable(key)
	return cmp.Or(os.Getenv(variable), engineDefaults[key]), variable
}

func readEngines(c *cli.Context, dir string) (e host.Engines, err error) {
	e = host.Engines{StepLimit: c.Duration("step-limit"), Ccache: c.Bool("ccache"), Daemon: &host.Daemon{}}
	jobs := c.Int("jobs")
	if c.IsSet("jobs") && jobs < 1 {
		return e, diag.Errorf(diag.Usage, "--jobs: %d is less than 1", jobs)
	}
	var errs [4]error
	text, variable := engineSetting("engine-patience")
	if e.Patience, err = time.ParseDuration(text); err != nil {
		errs[0] = diag.Errorf(diag.Usage, "%s: %q is not a time", variable, text).WithHint("write a time with its unit, such as 90s, 10m or 12h")
	}
	text, variable = engineSetting(host.CacheKey)
	if e.Native.Cache, err = host.CacheLimit(text, dir); err != nil {
		errs[1] = diag.Errorf(diag.Usage, "%s: %w", variable, err)
	}
	image, _ := engineSetting(native.ImageKey)
	e.Image, errs[2] = native.ParseEngineImage(image)
	e.Choices, errs[3] = readChoices(c, min(max(jobs, 1), 4*runtime.NumCPU()))
	return e, errors.Join(errs[:]...)
}
