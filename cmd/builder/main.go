// Command builder builds the wheels and libraries for distributed training
// hermetically, and proves their properties before they are installed.
//
// This package holds flags, wiring and printing. It is the only package that imports
// all others: a command fills an options struct, calls one function and prints the
// returned value.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"builder/internal/app"
	"builder/internal/app/catalogue"
	"builder/internal/app/syntax"
	"builder/internal/base/diag"
	"builder/internal/view/progress"
	"builder/internal/view/term"
)

// version is set by the linker in releases.
var version = "devel"

func main() {
	os.Exit(Main(os.Args, os.Stdout, os.Stderr))
}

// Main runs the tool and returns its exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	// SIGHUP: closing the terminal ends a run like Ctrl-C.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)

	result := &term.Checked{W: stdout}
	if term.Width(stdout) == 0 {
		stdout = result
	}
	printed, said := term.NewGuard(stdout), term.NewGuard(stderr)
	tool := newApp(args, configure(), printed, said)
	err := twice(args, tool.Commands)
	if err == nil {
		err = tool.RunContext(ctx, flagsFirst(args, tool.Commands))
	}
	_ = printed.Flush() // result holds the write error
	if err == nil && result.Err != nil {
		err = fmt.Errorf("writing the result: %w", result.Err)
	}
	if progress.Unprinted(err) != nil {
		err = helped(app.Denied(err), args, tool.Commands)
	}
	if ctx.Err() != nil && err != nil {
		err = interrupted(err, context.Cause(ctx), len(args) > 1 && args[1] == "run")
	}
	if e := progress.Unprinted(err); e != nil {
		term.PrintError(said, e)
	}
	_ = said.Flush() // an error cannot be reported any more
	if ctx.Err() != nil {
		return int(diag.Interrupted)
	}
	return int(diag.CodeOf(err))
}

// newApp reads the catalogue and wires the verbs. It reads first, because every recipe is
// a subcommand of run, plan and lock with its axes as flags.
func newApp(args []string, conf configuration, stdout, stderr io.Writer) *cli.App {
	cat, err := catalogue.Load(siteDir(args), takenNames())
	return wire(cat, err, conf, stdout, stderr)
}

// wire wires the verbs. Those that need the catalogue report the error of reading it.
func wire(cat catalogue.Catalogue, err error, conf configuration, stdout, stderr io.Writer) *cli.App {
	out := term.Printer{Stdout: stdout, Stderr: stderr}
	recipes, preferenceErr := conf.Preferred(cat.Recipes)
	cat.Recipes, err = recipes, errors.Join(err, preferenceErr)
	tool := &cli.App{
		Name:            "builder",
		Usage:           "build Horovod, NCCL and RCCL hermetically, and check them with gates",
		Version:         version,
		Suggest:         true,
		HideHelpCommand: true,
		Writer:          stdout,
		ErrWriter:       stderr,
		Flags:           []cli.Flag{recipesFlag(), cli.HelpFlag}, // a verb named help would otherwise hide --help
		CommandNotFound: nil,
		OnUsageError:    usageError,
		ExitErrHandler:  func(*cli.Context, error) {}, // Main decides the exit code
		Action:          unknownCommand,
		// Help sorts the groups by their names.
		Commands: slices.Concat(
			group("Build", runCommand(cat, err, out), planCommand(cat, err, out), lockCommand(cat, err, out), updatesCommand(cat, err, out), matrixCommand(cat, err, out), initCommand(out)),
			group("Check", gateCommand(out), verifyCommand(out), benchCommand(out)),
			group("Look", listCommand(cat, err, out), patchCommand(cat, err, out), profileCommand(cat, out), logsCommand(out), reportCommand(out), diagnoseCommand(cat, out), debugCommand(out)),
			group("Publish", publishCommand(cat, err, out), keyCommand(out)),
			group("This host", doctorCommand(cat, err, out), engineCommand(out), storeCommand(cat, err, out), configCommand(conf, preferenceErr, out), completionCommand(out), versionCommand(out)),
			[]*cli.Command{helpCommand(), completeCommand(cat, out)},
		),
	}
	conf.refuse(tool.Commands)
	explain(tool)
	hinted(tool.Commands, cat)
	return tool
}

// hinted completes the hints in the errors of all verbs with the site.
func hinted(verbs []*cli.Command, cat catalogue.Catalogue) {
	for _, verb := range verbs {
		hinted(verb.Subcommands, cat)
		if do := verb.Action; do != nil {
			verb.Action = func(c *cli.Context) error { return cat.Hinted(do(c)) }
		}
	}
}

// group puts verbs under a heading of the tool's help.
func group(heading string, verbs ...*cli.Command) []*cli.Command {
	for _, verb := range verbs {
		verb.Category = heading
	}
	return verbs
}

const helpVerb = "help"

// helpCommand is an alternative to --help.
func helpCommand() *cli.Command {
	return &cli.Command{
		Name: helpVerb, Usage: "print the help of a command, as --help does", ArgsUsage: "[COMMAND]", OnUsageError: usageError, Hidden: true,
		Action: func(c *cli.Context) error {
			return c.App.RunContext(c.Context, append(append([]string{c.App.Name}, c.Args().Slice()...), "--help"))
		},
	}
}

// unknownCommand is the action of the tool, or of a verb with subverbs, if no verb or
// an unknown verb follows. Without a verb it prints the help.
func unknownCommand(c *cli.Context) error {
	if !c.Args().Present() {
		if c.Command.Name != c.App.Name {
			return cli.ShowSubcommandHelp(c)
		}
		return cli.ShowAppHelp(c)
	}
	var names []string
	for _, command := range c.Command.VisibleCommands() {
		names = append(names, command.Name)
	}
	word := c.Args().First()
	err := diag.Errorf(diag.Usage, "unknown command %q", word)
	if below := verbsBelow(c.App, word); len(below) > 0 && c.Command.Name == c.App.Name {
		return err.WithHint("did you mean `%s`?", strings.Join(below, "` or `"))
	}
	return err.WithHint("%s", diag.DidYouMean(word, names))
}

// verbsBelow are the command lines of the verbs with this name that lie below others.
func verbsBelow(tool *cli.App, name string) (lines []string) {
	syntaxOf(tool).Walk(func(words []string, v syntax.Verb) {
		if len(words) > 2 && v.Name == name {
			lines = append(lines, strings.Join(words, " "))
		}
	})
	return lines
}

// unexpected rejects surplus operands.
func unexpected(c *cli.Context, wanted int) error {
	if c.Args().Len() <= wanted {
		return nil
	}
	return diag.Errorf(diag.Usage, "unexpected argument %q", c.Args().Get(wanted)).
		WithHint("see `%s --help`", c.Command.HelpName)
}

// flagName matches a flag in a message of the parser, which writes one dash.
var flagName = regexp.MustCompile(` -([a-z][a-z-]+)(:|$)`)

// usageError turns an error of the flag parser into a usage error.
func usageError(c *cli.Context, err error, _ bool) error {
	if _, known := errors.AsType[*diag.Error](err); known {
		return err
	}
	e := diag.Errorf(diag.Usage, "%s", flagName.ReplaceAllString(err.Error(), " --$1$2"))
	if name, ok := undefinedFlag(err); ok && c.Command != nil {
		word, near := misspelt(c)
		switch {
		case near != "" && near == word:
			return diag.Errorf(diag.Usage, "%s has no flag --%s", c.Command.HelpName, name).WithHint("write it after `%s %s`", c.Command.HelpName, near)
		case near != "":
			return diag.Errorf(diag.Usage, "unknown command %q", word).WithHint("did you mean `%s %s`?", c.Command.HelpName, near)
		}
		return diag.Errorf(diag.Usage, "%s has no flag --%s", c.Command.HelpName, name).
			WithHint("%s", diag.DidYouMean(name, flagNames(c.Command.Flags)))
	}
	if m := unreadable.FindStringSubmatch(err.Error()); m != nil {
		return diag.Errorf(diag.Usage, "%s: invalid value %q", m[3], m[1]).WithHint("%s", kindHints[m[2]])
	}
	if c.Command == nil {
		return e
	}
	if m := flagName.FindStringSubmatch(err.Error()); m != nil {
		if hint := kindHints[kindOf(m[1], c.Command.Flags)]; hint != "" {
			return e.WithHint("%s", hint)
		}
	}
	return e.WithHint("see `%s --help`", c.Command.HelpName)
}

// misspelt returns the word after a verb with subverbs and the subverb that it probably
// means, or "". The parser stops at a flag of the subverb before it sees the word.
func misspelt(c *cli.Context) (word, near string) {
	lineage := c.Lineage()
	if c.Command == nil || len(c.Command.Subcommands) == 0 || len(lineage) < 2 {
		return "", ""
	}
	var names []string
	for _, sub := range c.Command.Subcommands {
		names = append(names, sub.Name)
	}
	for _, word := range lineage[1].Args().Tail() {
		if near := diag.Nearest(word, names); near != "" && !strings.HasPrefix(word, "-") {
			return word, near
		}
	}
	return "", ""
}

// unreadable matches a message of the parser about a variable.
var unreadable = regexp.MustCompile(`^could not parse "(.*)" as (\w+) value from environment variable "(\w+)"`)

// kindHints says how to write the value of a flag or variable of a kind.
var kindHints = map[string]string{
	"bool": "write true or false", "int": "write a whole number, such as 2",
	"duration": "write a time with its unit, such as 90s, 10m or 12h", "float64": "write a number, such as 0.95",
}

// kindOf returns the kind of the named flag's value, or "" if it is text.
func kindOf(name string, flags []cli.Flag) string {
	i := slices.IndexFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	if i < 0 {
		return ""
	}
	switch flags[i].(type) {
	case *cli.BoolFlag:
		return "bool"
	case *cli.IntFlag:
		return "int"
	case *cli.DurationFlag:
		return "duration"
	case *cli.Float64Flag:
		return "float64"
	}
	return ""
}
