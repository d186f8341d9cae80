package main

import (
	"errors"
	"os"

	"github.com/urfave/cli/v2"

	"builder/cmd/builder/config"
	"builder/cmd/builder/show"
	"builder/internal/base/diag"
	"builder/internal/build/queue"
	"builder/internal/plan/catalogue"
	"builder/internal/view/term"
)

// configuration is builder.yaml and the effective settings.
type configuration struct {
	config.Config
	shown []config.Shown // before the file has set variables
	err   error
}

// configure reads builder.yaml and sets all unset variables. Every flag already reads
// its variable, so no verb depends on the file.
func configure() configuration {
	host, c := config.This(), configuration{}
	c.Config, c.err = config.Load(host)
	c.err = errors.Join(c.err, c.checkEngine())
	c.shown = c.Shown(host.Lookup)
	if c.err != nil {
		return c // a partly read file sets nothing
	}
	for _, s := range c.Settings {
		if _, set := host.Lookup(config.Variable(s.Key)); !set {
			c.err = errors.Join(c.err, os.Setenv(config.Variable(s.Key), s.Value))
		}
	}
	return c
}

func (c configuration) checkEngine() error {
	s, ok := c.Setting("engine")
	if !ok {
		return nil
	}
	if _, err := queue.ParseEngine(s.Value); err != nil {
		return diag.At(s.Pos, "%w", err)
	}
	return nil
}

// refuse makes all verbs but config, which uses no setting, return the errors of
// builder.yaml.
func (c configuration) refuse(commands []*cli.Command) {
	if c.err == nil {
		return
	}
	for _, command := range commands {
		if command.Name == "config" {
			continue
		}
		if command.Action != nil {
			command.Action = func(*cli.Context) error { return c.err }
		}
		c.refuse(command.Subcommands)
	}
}

func configCommand(c configuration, out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "config", Usage: "print the settings, make a site, and complete command lines",
		Description: "A flag overrides its variable. A variable overrides builder/builder.yaml in your\n" +
			"configuration directory, which overrides the default. Lists are not joined. An empty\n" +
			"variable means the default. BUILDER_CONFIG=FILE reads this file in its place,\n" +
			"BUILDER_CONFIG= reads none.",
		Subcommands: []*cli.Command{
			{
				Name: "show", Usage: "print the settings that a variable or the file makes, with the variable, or file and line",
				Flags: []cli.Flag{jsonFlag()},
				Action: func(ctx *cli.Context) error {
					if err := errors.Join(unexpected(ctx, 0), c.err); err != nil {
						return err
					}
					return show.Config(out, c.shown, ctx.Bool("json"))
				},
			},
			initCommand(out),
			completionCommand(out),
		},
	}
}

func initCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "init", Usage: "make a directory for a site's own recipes, stacks, patches, images, diagnoses and profiles", ArgsUsage: "DIR [RECIPE…]",
		Description: "Makes DIR/recipes, DIR/stacks, DIR/patches, DIR/images, DIR/diagnoses and\nDIR/profiles, with schemas for editors. Copies each built-in RECIPE with its lock and its\npatches for you to change, or a stack (stack/NAME) with its lock; DIR can then be a\nsite that exists. A file replaces the built-in one of the same name\nif `--recipes DIR` or BUILDER_RECIPES names the directory. No file is overwritten.",
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return diag.Errorf(diag.Usage, "%s: name a directory", c.Command.HelpName)
			}
			written, err := catalogue.NewSite(c.Args().First(), c.Args().Tail())
			for _, path := range written {
				out.Say("%s", path)
			}
			return err
		},
	}
}
