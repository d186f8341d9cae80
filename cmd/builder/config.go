package main

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/cmd/builder/config"
	"builder/cmd/builder/show"
	"builder/internal/app/home"
	"builder/internal/base/diag"
	"builder/internal/build/fleet"
	"builder/internal/view/term"
)

// configuration is builder.yaml and the effective settings.
type configuration struct {
	config.Config
	effective []config.Effective
	err       error
}

// configure reads builder.yaml and sets all unset variables. Every flag already reads
// its variable, so no verb depends on the file.
func configure() configuration {
	host, c := config.This(), configuration{}
	c.Config, c.err = config.Load(host)
	c.err = errors.Join(c.err, c.checkEngine())
	c.effective = c.Effective(host.Lookup)
	if c.err != nil {
		return c // a partly read file sets nothing
	}
	for _, e := range c.effective {
		if e.Origin == config.FromFile {
			c.err = errors.Join(c.err, os.Setenv(config.Variable(e.Key), e.Value))
		}
	}
	return c
}

func (c configuration) checkEngine() error {
	s, ok := c.Setting("engine")
	if !ok {
		return nil
	}
	var errs []error
	for _, place := range list(s.Value) {
		if _, err := fleet.ParseEngine(place, fleet.Choice{}); err != nil {
			errs = append(errs, diag.At(s.Pos, "%w", err))
		}
	}
	return errors.Join(errs...)
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

func configCommand(c configuration, preferenceErr error, out term.Printer) *cli.Command {
	e := errors.Join(c.err, preferenceErr)
	return &cli.Command{
		Name: "config", Usage: "print the settings and schemas, make a site, and complete command lines", OnUsageError: usageError, Action: unknownCommand, HideHelpCommand: true,
		Description: "A flag overrides its variable. A variable overrides the nearest builder.yaml, in the\n" +
			"working directory or above it. That file overrides the user's own, which overrides the\n" +
			"default. Lists are not joined. An empty variable means the default.\n" +
			"BUILDER_CONFIG=FILE reads this file only, BUILDER_CONFIG= reads none.",
		Subcommands: []*cli.Command{
			{
				Name: "show", Usage: "print every setting in effect without flags, with its origin: default, variable, or file and line", OnUsageError: usageError,
				Flags: []cli.Flag{jsonFlag()},
				Action: func(ctx *cli.Context) error {
					if err := errors.Join(unexpected(ctx, 0), e); err != nil {
						return err
					}
					return show.Config(out, c.ShownSettings(c.effective, defaults(ctx.App)), ctx.Bool("json"))
				},
			},
			schemaCommand(out),
			initCommand(out),
			completionCommand(out),
		},
	}
}

// defaults returns the defaults of the flags by name, as shown in the help.
func defaults(tool *cli.App) map[string]string {
	texts := maps.Clone(engineDefaults)
	if dir, err := home.Dir(); err == nil {
		texts["home"] = dir
	}
	var visit func([]*cli.Command)
	visit = func(commands []*cli.Command) {
		for _, command := range commands {
			for _, f := range command.Flags {
				if d, ok := f.(cli.DocGenerationFlag); ok && len(d.GetEnvVars()) > 0 {
					texts[f.Names()[0]] = strings.Trim(d.GetDefaultText(), `"`)
				}
			}
			visit(command.Subcommands)
		}
	}
	visit(tool.Commands)
	return texts
}

func schemaNames() []string { return slices.Sorted(maps.Keys(schemas)) }

func schemaCommand(out term.Printer) *cli.Command {
	names := schemaNames()
	return &cli.Command{
		Name: "schema", Usage: "print the JSON schema of a kind of file, for editors", ArgsUsage: strings.Join(names, "|"), OnUsageError: usageError,
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return diag.Errorf(diag.Usage, "%s: name one of %s", c.Command.HelpName, strings.Join(names, ", "))
			}
			if err := unexpected(c, 1); err != nil {
				return err
			}
			value, ok := schemas[c.Args().First()]
			if !ok {
				return diag.Errorf(diag.Usage, "unknown kind of file %q", c.Args().First()).
					WithHint("%s", diag.DidYouMean(c.Args().First(), names))
			}
			_, err := out.Stdout.Write(schemaOf(value))
			return err
		},
	}
}
