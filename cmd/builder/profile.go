package main

import (
	"errors"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/base/diag"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/matrix"
	"builder/internal/plan/profile"
	"builder/internal/view/term"
)

const profileDescription = `Prints the variables and options that a stack needs on given versions, GPUs and
fabric, each with its reason, its version range and a link. env is for a shell, docker
run --env-file and systemd. Options are no variables: env prints them as comments.

--set-env and --set-option add settings. All settings that contradict the profile, the
versions or each other are reported at once, with exit 2.`

// profileFormats are the values of --format, the default first.
func profileFormats() []string {
	var words []string
	for _, f := range profile.Formats() {
		words = append(words, string(f))
	}
	return words
}

// profileFlags are the flags of every profile other than its axes.
func profileFlags() []cli.Flag {
	return []cli.Flag{
		recipesFlag(),
		formatFlag("print the environment as", profileFormats()),
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
				o, err := readProfileOptions(c, p)
				if err := errors.Join(e, err); err != nil {
					return err
				}
				return printProfile(p, o, out)
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

// profileOptions are the flags of a profile.
type profileOptions struct {
	format profile.Format
	filter matrix.Filter
	asked  []profile.Asked
}

func readProfileOptions(c *cli.Context, p *profile.Profile) (profileOptions, error) {
	o := profileOptions{filter: readAxes(c, p.Axes)}
	format, err := readFormat(c, profileFormats())
	o.format = profile.Format(format)
	errs := []error{unexpected(c, 0), err}
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
			o.asked = append(o.asked, a)
		}
	}
	return o, errors.Join(errs...)
}

// printProfile prints an environment.
func printProfile(p *profile.Profile, o profileOptions, out term.Printer) error {
	e, err := p.Resolve(o.filter, o.asked)
	if err != nil {
		return err
	}
	text, err := e.Render(o.format)
	if err != nil {
		return err
	}
	_, err = out.Stdout.Write(text)
	return err
}
