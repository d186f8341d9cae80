package main

import (
	"time"

	"github.com/urfave/cli/v2"

	"builder/cmd/builder/config"
	"builder/cmd/builder/show"
	"builder/internal/app/host"
	"builder/internal/build/native"
	"builder/internal/plan/catalogue"
	"builder/internal/view/term"
)

func engineCommand(out term.Printer) *cli.Command {
	verb := func(name, usage string, do func(*cli.Context, host.Setup) error, flags ...cli.Flag) *cli.Command {
		return &cli.Command{Name: name, Usage: usage, OnUsageError: usageError, Flags: append(flags, noInstallFlag()), Action: func(c *cli.Context) error {
			if err := unexpected(c, 0); err != nil {
				return err
			}
			in, err := readInvocation(c, catalogue.Catalogue{}, out)
			if err != nil {
				return err
			}
			return do(c, in.host())
		}}
	}
	return &cli.Command{
		Name: "engine", Usage: "start, stop and inspect the native engine: the Dagger engine without Docker",
		OnUsageError: usageError, Action: unknownCommand, HideHelpCommand: true,
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
				return out.Print(c.Bool("json"), statusOf(now), func() { show.Engine(out, now) })
			}, jsonFlag()),
		},
	}
}

// status is the JSON output of engine status.
type status struct {
	Built       bool   `json:"built"`
	Running     bool   `json:"running"`
	Version     string `json:"version"`
	Address     string `json:"address,omitempty"`
	PID         int    `json:"pid,omitempty"`
	Since       string `json:"since,omitempty"`
	Connections int    `json:"connections"`
	Cache       string `json:"cache"`
	CacheBytes  int64  `json:"cache-bytes"`
	Log         string `json:"log"`
}

func statusOf(s native.Status) status {
	v := status{
		Built: s.Built, Running: s.Running, Version: s.Version, Address: s.Address, PID: s.PID,
		Connections: s.Connections, Cache: s.StateDir, CacheBytes: s.StateBytes, Log: s.Log,
	}
	if s.Running {
		v.Since = s.Since.Format(time.RFC3339)
	}
	return v
}
