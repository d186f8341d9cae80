package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/urfave/cli/v2"

	"builder/internal/app/plan"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/matrix"
	"builder/internal/view/term"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// bare removes all settings of the host's variables.
func bare(t *testing.T) {
	t.Helper()
	for _, setting := range os.Environ() {
		if name, _, _ := strings.Cut(setting, "="); strings.HasPrefix(name, "BUILDER_") {
			t.Setenv(name, "") // Setenv restores it after the test
			must.Succeed(t, os.Unsetenv(name))
		}
	}
	t.Setenv("BUILDER_HOME", t.TempDir())
}

// A verb is the tool, a verb or a subverb, with the words of its command line.
type verb struct {
	*cli.Command
	words []string
}

func (v verb) path() string { return strings.Join(v.words[1:], " ") }

// own returns the subverbs other than names of recipes and profiles.
func (v verb) own() (all []verb) {
	for _, below := range v.Subcommands {
		if !slices.Contains(builtIn().Names(), below.Name) {
			all = append(all, verb{below, append(slices.Clone(v.words), below.Name)})
		}
	}
	return all
}

// names returns the recipes or profiles below a verb.
func (v verb) names() (all []*cli.Command) {
	return slices.DeleteFunc(slices.Clone(v.Subcommands), func(c *cli.Command) bool { return !slices.Contains(builtIn().Names(), c.Name) })
}

// options returns the flags of the verb and of its recipes, without axes.
func (v verb) options() (all []cli.DocGenerationFlag) {
	flags := slices.Clone(v.Flags)
	for _, below := range v.names() {
		flags = append(flags, below.Flags...)
	}
	seen := map[string]bool{}
	for _, f := range flags {
		if _, isAxis := axisOf(f); !isAxis && !seen[f.Names()[0]] {
			all = append(all, f.(cli.DocGenerationFlag))
		}
		seen[f.Names()[0]] = true
	}
	return all
}

// tool returns the whole command line.
func tool(t *testing.T) verb {
	t.Helper()
	bare(t)
	app := wired([]string{"builder"}, io.Discard, io.Discard)
	return verb{&cli.Command{Name: app.Name, Usage: app.Usage, ArgsUsage: "COMMAND", Description: app.Description, Flags: app.Flags, Subcommands: app.Commands}, []string{app.Name}}
}

// all returns a verb and all verbs below it.
func (v verb) all() []verb {
	list := []verb{v}
	for _, below := range v.own() {
		list = append(list, below.all()...)
	}
	return list
}

// The command line stays small: it has few verbs and few different flags, besides axes.
func TestCommandLineIsSmall(t *testing.T) {
	v := tool(t)
	names := map[string]bool{"help": true, "version": true}
	for _, below := range v.all() {
		for _, f := range below.options() {
			names[f.(cli.Flag).Names()[0]] = true
		}
	}
	t.Logf("%d verbs and %d flags", len(v.own()), len(names))
	check.That(t, len(v.own()) <= 20 && len(names) <= 67,
		"%d verbs and %d flags, at most 20 and 67: %q", len(v.own()), len(names), slices.Sorted(maps.Keys(names)))
}

// Every verb has examples, itself or in its subverbs, and every example belongs to a verb.
func TestEveryVerbHasExamples(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range tool(t).all() {
		seen[v.path()] = true
		check.That(t, len(examples[v.path()]) != 0 || len(v.own()) != 0, "builder %s has no example", v.path())
		for _, e := range examples[v.path()] {
			check.That(t, e.does != "" && strings.Contains(e.line, strings.Join(v.words, " ")),
				"builder %s: %q is no example of it, or does not say what it is for", v.path(), e.line)
		}
	}
	for path := range examples {
		check.That(t, seen[path], "no verb is called %q", path)
	}
}

// readers map verbs to the functions that read their flags beyond parsing.
var readers = map[string]func(*cli.Context) error{
	"builder gate": func(c *cli.Context) error {
		if c.IsSet("env") {
			return errors.Join(environmentFlags(c)...)
		}
		_, err := readGate(c)
		return err
	},
	"builder verify": func(c *cli.Context) error { _, err := readVerify(c); return err },
	"builder publish": func(c *cli.Context) error {
		_, err := readPublish(c)
		return err
	},
	"builder bench": func(c *cli.Context) error {
		_, err := readBench(c)
		return err
	},
}

// Every example must be a valid command line. The test reads its words and executes
// nothing.
func TestExamples(t *testing.T) {
	all := tool(t).all()
	t.Chdir(t.TempDir())
	n := 0
	for _, v := range all {
		for _, e := range examples[v.path()] {
			n++
			args, err := wordsOf(e.line)
			if err == nil {
				err = parse(args)
			}
			check.That(t, err == nil, "%s\n\t%v", e.line, err)
		}
	}
	check.That(t, n >= 40, "only %d examples", n)
}

// parse parses a command line.
func parse(args []string) error {
	app := wired(args, io.Discard, io.Discard)
	reads := false
	hollow(app, func(c *cli.Context) error {
		reads = true
		if read, ok := readers[c.Command.HelpName]; ok {
			return read(c)
		}
		if c.Command.ArgsUsage == "" {
			return unexpected(c, 0)
		}
		return nil
	})
	err := app.RunContext(context.Background(), arranged(args, app))
	if err == nil && !reads {
		err = errors.New("no verb reads it")
	}
	return err
}

// builtIn reads the built-in catalogue once for all tests.
var builtIn = sync.OnceValue(func() catalogue.Catalogue {
	cat, err := catalogue.Load("", knownNames())
	if err != nil {
		panic(err)
	}
	return cat
})

// wired is newApp without settings. It reads a catalogue only if the command line names a
// site.
func wired(args []string, stdout, stderr io.Writer) *cli.App {
	cat, err := builtIn(), error(nil)
	if site := siteDir(args); site != "" {
		cat, err = catalogue.Load(site, knownNames())
	}
	return newApp(cat, err, stdout, stderr)
}

// hollow replaces the actions of the lowest verbs by do. For recipes it also reads the
// axes like plan.
func hollow(tool *cli.App, do cli.ActionFunc) {
	cat := builtIn()
	var visit func(parent string, commands []*cli.Command)
	visit = func(operands string, commands []*cli.Command) {
		for _, command := range commands {
			i := slices.Index(cat.Names(), command.Name)
			switch {
			case strings.Contains(operands, "RECIPE") && i >= 0:
				command.Action = func(c *cli.Context) error {
					of := plan.Selection{Recipe: cat.Recipes[i], Filter: readValues(c, cat.Recipes[i].AxisNames())}
					_, err := readInvocation(c, cat, term.Printer{Stdout: io.Discard, Stderr: io.Discard})
					_, err2 := readRun(c, of)
					if err := errors.Join(err, err2, unexpected(c, 0)); err != nil {
						return err
					}
					_, _, err = matrix.Expand(of.Recipe, of.Filter)
					return errors.Join(err, do(c))
				}
			case len(command.Subcommands) == 0 || slices.Contains([]string{"doctor", "lock", "matrix", "publish"}, command.Name):
				command.Action = do
			}
			visit(command.ArgsUsage, command.Subcommands)
		}
	}
	visit("", tool.Commands)
}

// wordsOf returns the words of the part of a shell line that calls the tool.
func wordsOf(line string) ([]string, error) {
	var words []string
	word, quote, started := "", rune(0), false
	for _, r := range line + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, started = r, true
		case quote == 0 && r == ' ' && (started || word != ""):
			words, word, started = append(words, word), "", false
		case quote == 0 && r == ' ':
		default:
			word += string(r)
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote is not closed: %s", line)
	}
	begin := slices.Index(words, "builder")
	if begin < 0 {
		return nil, fmt.Errorf("it does not call builder: %s", line)
	}
	words = words[begin:]
	if end := slices.IndexFunc(words, func(w string) bool { return w == "|" || w == ">" || w == ">>" }); end > 0 {
		words = words[:end]
	}
	return words, nil
}

// find follows words to a subverb, and reports whether all of them name one.
func (v verb) find(words []string) (verb, bool) {
	if len(words) == 0 {
		return v, true
	}
	own := v.own()
	i := slices.IndexFunc(own, func(below verb) bool { return below.Name == words[0] })
	if i < 0 {
		return v, false
	}
	return own[i].find(words[1:])
}

// A flag and its variable have one name, and no variable without a flag has the name of one.
func TestVariables(t *testing.T) {
	ofFlags := map[string]bool{}
	for _, v := range tool(t).all() {
		for _, f := range v.options() {
			name := "BUILDER_" + strings.ToUpper(strings.ReplaceAll(f.(cli.Flag).Names()[0], "-", "_"))
			for _, variable := range f.GetEnvVars() {
				check.That(t, variable == name, "%s: --%s has the variable %s", v.path(), f.(cli.Flag).Names()[0], variable)
				ofFlags[variable] = true
			}
		}
	}
	for _, v := range variables {
		check.That(t, !ofFlags[v.name], "%s has a flag", v.name)
	}
}
