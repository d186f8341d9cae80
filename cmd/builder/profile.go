package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/base/diag"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/profile"
	"builder/internal/view/term"
)

const profileDescription = `Prints the variables and options that a stack needs on given versions, GPUs and
fabric, each with its reason, its version range and a link. env is for a shell, docker
run --env-file and systemd. Options are no variables: env prints them as comments.

--set-env and --set-option add settings. All settings that contradict the profile, the
versions or each other are reported at once, with exit 2.`

// profileFormats are the values of --format, the default first.
var profileFormats = []string{"env", "json"}

// profileFlags are the flags of every profile other than its axes.
func profileFlags() []cli.Flag {
	return []cli.Flag{
		recipesFlag(),
		formatFlag("print the environment as", profileFormats),
		&cli.GenericFlag{Name: "set-env", Value: &texts{}, Usage: "add the variable `NAME=VALUE`"},
		&cli.GenericFlag{Name: "set-option", Value: &texts{}, Usage: "add the option `NAME[=VALUE]` of the program"},
	}
}

func profileCommand(cat catalogue.Catalogue, out term.Printer) *cli.Command {
	all, e := cat.Profiles()
	var names []string
	command := &cli.Command{
		Name: "profile", Usage: "print the environment for a stack, with reasons", ArgsUsage: "PROFILE [axes]",
		Description: profileDescription,
		Flags:       []cli.Flag{recipesFlag()},
	}
	for _, p := range all {
		names = append(names, p.Name)
		command.Subcommands = append(command.Subcommands, &cli.Command{
			Name: p.Name, Usage: p.Summary,
			Flags: append(profileFlags(), axisFlags(p.Axes)...),
			Action: func(c *cli.Context) error {
				format, err := readFormat(c, profileFormats)
				asked, err2 := readAsked(c)
				if err := errors.Join(e, unexpected(c, 0), err, err2); err != nil {
					return err
				}
				of, err := p.Resolve(readValues(c, p.AxisNames()), asked)
				if err != nil {
					return err
				}
				return out.Print(format == "json", of, func() { fmt.Fprint(out.Stdout, of.Lines()) })
			},
		})
	}
	command.Action = func(c *cli.Context) error {
		switch word := c.Args().First(); {
		case e != nil:
			return e
		case word == "":
			return diag.Errorf(diag.Usage, "%s: no profile given", c.Command.HelpName).WithHint("known: %s", strings.Join(names, ", "))
		default:
			return diag.Errorf(diag.Usage, "unknown profile %q", word).WithHint("%s", diag.DidYouMean(word, names))
		}
	}
	return command
}

// readAsked reads the settings that the user adds to a profile.
func readAsked(c *cli.Context) (all []profile.Asked, err error) {
	var errs []error
	for _, flag := range []struct {
		name string
		read func(string) (profile.Asked, error)
	}{{"set-env", profile.ReadVariable}, {"set-option", profile.ReadOption}} {
		for _, text := range *c.Generic(flag.name).(*texts) {
			a, err := flag.read(text)
			if err != nil {
				errs = append(errs, diag.Errorf(diag.Usage, "--%s: %w", flag.name, err))
				continue
			}
			all = append(all, a)
		}
	}
	return all, errors.Join(errs...)
}
