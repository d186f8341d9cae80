// Command builder builds the wheels and libraries for distributed training
// hermetically, and proves their properties before they are installed.
//
// This package holds flags, wiring and printing. It lies above all others:
// a command fills an options struct, calls one function and prints the returned value.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"builder/internal/app/home"
	"builder/internal/base/diag"
	"builder/internal/build/native"
	"builder/internal/plan/catalogue"
	"builder/internal/view/term"
)

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

	printed, said := term.NewGuard(stdout), term.NewGuard(stderr)
	cat, err := catalogue.Load(siteDir(args), knownNames())
	tool := newApp(cat, err, printed, said)
	switch {
	case !completing(args):
		args = arranged(args, tool)
	case slices.Contains(args, "--"):
		return int(diag.OK) // package cli would run the verb
	default:
		complete(tool, args, cat.Names(), printed)
	}
	verb := "" // the one that ran, or whose flags cannot be read
	tool.ExitErrHandler = func(c *cli.Context, _ error) { verb = c.Command.HelpName }
	err = cat.Hinted(tool.RunContext(ctx, args))
	err = helped(verb, err)
	if e := printed.Flush(); err == nil && e != nil {
		err = fmt.Errorf("writing the result: %w", e)
	}
	err = home.Denied(err)
	if ctx.Err() != nil && err != nil {
		err = interrupted(err, context.Cause(ctx), len(args) > 1 && args[1] == "run")
	}
	if err != nil {
		term.PrintError(said, err)
	}
	_ = said.Flush() // an error cannot be reported any more
	if ctx.Err() != nil {
		return int(diag.Interrupted)
	}
	return int(diag.CodeOf(err))
}

// newApp wires the verbs. Every recipe is a subcommand of run, plan and lock with its axes
// as flags. The verbs that need the catalogue report the error of reading it.
func newApp(cat catalogue.Catalogue, err error, stdout, stderr io.Writer) *cli.App {
	out := term.Printer{Stdout: stdout, Stderr: stderr}
	tool := &cli.App{
		Name:            "builder",
		Usage:           "build Horovod, NCCL and RCCL hermetically, and check them with gates",
		Version:         version,
		HideHelpCommand: true,
		Writer:          stdout,
		ErrWriter:       stderr,
		Flags:           []cli.Flag{recipesFlag()},
		OnUsageError:    usageError,
		Action:          unknownCommand,
		// Help sorts the groups by their names.
		Commands: slices.Concat(
			group("Build", runCommand(cat, err, out), planCommand(cat, err, out), lockCommand(cat, err, out), matrixCommand(cat, err, out)),
			group("Check", showCommand(out), gateCommand(out), verifyCommand(out), benchCommand(out)),
			group("Look", listCommand(cat, err, out), patchCommand(cat, err, out), profileCommand(cat, out), diagnoseCommand(cat, out), debugCommand(out)),
			group("Publish", publishCommand(cat, out), keyCommand(out)),
			group("This host", doctorCommand(cat, err, out), engineCommand(out), storeCommand(cat, err, out), configCommand(out)),
		),
	}
	explain(tool)
	return tool
}

// helped adds the verb's --help as a hint to a usage error that has neither a hint nor
// a line in a file.
func helped(verb string, err error) error {
	if err == nil {
		return nil
	}
	all := diag.All(err)
	for _, e := range slices.Backward(all) {
		if e.Code == diag.Usage && e.Hint == "" && e.Pos.Line == 0 {
			e.Hint = "see `" + verb + " --help`"
			return diag.Joined(all)
		}
	}
	return err
}

// group puts verbs under a heading of the tool's help.
func group(heading string, verbs ...*cli.Command) []*cli.Command {
	for _, verb := range verbs {
		verb.Category = heading
	}
	return verbs
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
	if c.Command.Name == c.App.Name {
		names = append(names, "--help", "--version")
	}
	word := c.Args().First()
	return diag.Errorf(diag.Usage, "unknown command %q", word).WithHint("%s", diag.DidYouMean(word, names))
}

// unexpected rejects surplus operands.
func unexpected(c *cli.Context, wanted int) error {
	if c.Args().Len() <= wanted {
		return nil
	}
	return diag.Errorf(diag.Usage, "unexpected argument %q", c.Args().Get(wanted)) // [helped] adds a hint
}

// usageError turns an error of the flag parser into a usage error.
func usageError(c *cli.Context, err error, _ bool) error {
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !unknown {
		text := longFlag.ReplaceAllString(err.Error(), "$1 --$2")
		return diag.Errorf(diag.Usage, "%s: %s", c.Command.HelpName, text).WithHint("%s", formHint(c, err.Error())) // [helped] may add a hint
	}
	flag := strings.Repeat("-", min(len(name), 2)) + name
	e := diag.Errorf(diag.Usage, "%s has no flag %s", c.Command.HelpName, flag)
	var known []string
	for _, long := range flagNames(c.Command.Flags) {
		if len(long) > 1 {
			known = append(known, "--"+long)
		}
	}
	if takesNames(c.Command) && len(c.Command.Subcommands) > 0 && diag.Nearest(flag, known) == "" {
		kind, _, _ := strings.Cut(strings.Trim(c.Command.ArgsUsage, "[]"), " ")
		return e.WithHint("an axis needs a name before it: %s %s %s", c.Command.HelpName, strings.Trim(kind, "[]"), flag)
	}
	return e.WithHint("%s", diag.DidYouMean(flag, known))
}

// longFlag matches a flag of several letters in the messages of the parser, which writes
// it with one dash.
var longFlag = regexp.MustCompile(`(flag|argument:) -([a-z][a-z-]+)`)

// refusedFlag matches the name of a flag in the messages of the parser.
var refusedFlag = regexp.MustCompile(`(?:flag|argument:|for) -?([a-z-]+)(?::|$)`)

const formOfTime = "write a time with its unit, such as 90s, 10m or 12h"

// formHint says how to write the value of the flag in a message of the parser.
func formHint(c *cli.Context, text string) string {
	found := refusedFlag.FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	switch flagNamed(c.Command.Flags, found[1]).(type) {
	case *cli.DurationFlag:
		return formOfTime
	case *cli.GenericFlag:
		if strings.HasPrefix(text, "flag needs") {
			return "write a value after it, and quote a comparison: --" + found[1] + " '>=1.0'"
		}
	}
	return ""
}

// interrupted returns the error of an interrupted command. It drops the hints and logs of
// what the interruption stopped: they would blame a server or a file. A run gets a hint.
func interrupted(err, cause error, run bool) error {
	all := diag.All(err)
	for _, e := range all {
		stopped := errors.Is(e.Err, context.Canceled) || errors.Is(e.Err, cause) ||
			strings.Contains(e.Error(), context.Canceled.Error()) // of a program or a client
		if !stopped {
			continue
		}
		e.Hint, e.Log = "", nil
		if run {
			e.Hint, run = "give the same command again: it continues after the finished steps", false
		}
	}
	return diag.Joined(all)
}

// version is set by the linker in releases.
var version = "devel"

// The flag --version prints the versions of builder, of its engine and of Go.
func init() { cli.VersionPrinter = printVersion }

func printVersion(c *cli.Context) {
	revision, compiler := "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		compiler = info.GoVersion
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	term.Printer{Stdout: c.App.Writer}.Say("%s\nengine %s\n%s", strings.TrimSpace("builder "+version+" "+revision), native.Version, compiler)
}
