package main

import (
	"errors"
	"fmt"
	"io"
	"os"
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
versions or each other are reported at once, with exit 2.

--check FILE judges an environment in place of printing one: that of a process
(/proc/PID/environ), or the output of env in a job or an image (- reads standard
input). It names each variable that is missing or will hurt.`

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
		&cli.StringFlag{Name: "check", Usage: "judge the variables in `FILE`: the output of env, /proc/PID/environ, or - for standard input"},
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
				if o.check != "" {
					return checkProfile(p, o, c.App.Reader, out)
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
	check  string // file of an environment to judge; "" is none
}

func readProfileOptions(c *cli.Context, p *profile.Profile) (profileOptions, error) {
	o := profileOptions{filter: readAxes(c, p.Axes), check: c.String("check")}
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
	if o.check != "" && len(o.asked) > 0 {
		errs = append(errs, diag.Errorf(diag.Usage, "--check and --set-env or --set-option exclude each other"))
	}
	return o, errors.Join(errs...)
}

// checkProfile judges the variables of a file, and prints a line if they are right.
func checkProfile(p *profile.Profile, o profileOptions, in io.Reader, out term.Printer) error {
	if o.check != "-" {
		f, err := os.Open(o.check)
		if err != nil {
			return diag.Errorf(diag.Usage, "--check: %w", err)
		}
		defer f.Close()
		in = f
	}
	env, err := profile.ReadEnvironment(in)
	if err != nil {
		return diag.Errorf(diag.Usage, "--check %s: %w", o.check, err).WithHint("give the output of env, or /proc/PID/environ")
	}
	e, err := p.Check(o.filter, env)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out.Stdout, "%d variables: none contradicts the profile %s, and none of its own is missing\n", len(env), e.Profile)
	return err
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
