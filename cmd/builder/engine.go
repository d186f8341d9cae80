package main

import (
	"github.com/urfave/cli/v2"

	"builder/cmd/builder/config"
	"builder/cmd/builder/show"
	"builder/internal/app/host"
	"builder/internal/build/native"
	"builder/internal/view/term"
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
				out.Say("use it on another host with %s=%s", config.Variable(host.ImageKey), image)
				out.Say("or with docker load -i %s", c.String("to"))
				return nil
			}, &cli.StringFlag{Name: "to", Aliases: []string{"o"}, Usage: "write the image to `FILE`, which must not exist"}),
			verb("status", "print whether the engine is built and runs, and the place of its cache", func(c *cli.Context, s host.Setup) error {
				now, err := host.NativeEngine(s).Status(c.Context)
				if err != nil {
					return err
				}
				show.Engine(out, now)
				return nil
			}),
		},
	}
}
