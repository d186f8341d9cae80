package main

import (
	"cmp"
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/urfave/cli/v2"

	"builder/cmd/builder/show"
	"builder/internal/app/host"
	"builder/internal/base/diag"
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
				out.Say("use it on another host with %s=%s", native.ImageVariable, image)
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

// engineFlags are the flags for the engine.
func engineFlags() []cli.Flag {
	return []cli.Flag{
		engineFlag("use the Dagger engine at `URL`: unix, tcp, ssh, docker-container or kube-pod; native avoids Docker and Podman"),
		noInstallFlag(),
	}
}

func engineFlag(usage string) cli.Flag {
	return &cli.StringFlag{Name: "engine", EnvVars: []string{"BUILDER_ENGINE"}, Usage: usage}
}

// engineCacheDefault is the default of BUILDER_ENGINE_CACHE.
const engineCacheDefault = "60%"

func readEngines(c *cli.Context, dir string) (e host.Engines, err error) {
	e = host.Engines{StepLimit: c.Duration("step-limit"), Ccache: c.Bool("ccache"), Daemon: host.FindDaemon(c.Context)}
	jobs := c.Int("jobs")
	if c.IsSet("jobs") && jobs < 1 {
		return e, diag.Errorf(diag.Usage, "--jobs: %d is less than 1", jobs)
	}
	if e.StepLimit < 0 {
		return e, diag.Errorf(diag.Usage, "--step-limit: %v is negative", e.StepLimit).WithHint("0 is no limit")
	}
	var errs [4]error
	patience := cmp.Or(os.Getenv("BUILDER_ENGINE_PATIENCE"), pipelines.Patience.String())
	if e.Patience, err = time.ParseDuration(patience); err != nil || e.Patience < 0 {
		errs[0] = diag.Errorf(diag.Usage, "BUILDER_ENGINE_PATIENCE: %q is not a time", patience).WithHint("%s", formOfTime)
	}
	if e.Native.Cache, err = host.CacheLimit(cmp.Or(os.Getenv("BUILDER_ENGINE_CACHE"), engineCacheDefault), dir); err != nil {
		errs[1] = diag.Errorf(diag.Usage, "BUILDER_ENGINE_CACHE: %w", err)
	}
	e.Image, errs[2] = native.ParseEngineImage(os.Getenv(native.ImageVariable))
	e.Choice, errs[3] = host.ParseEngine(c.String("engine"))
	e.Choice.Jobs = min(max(jobs, 1), 4*runtime.NumCPU())
	return e, errors.Join(errs[:]...)
}
