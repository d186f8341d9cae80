package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/urfave/cli/v2"

	"builder/internal/app"
	"builder/internal/app/catalogue"
	"builder/internal/app/config"
	"builder/internal/app/manual"
	"builder/internal/app/syntax"
	"builder/internal/base/diag"
	"builder/internal/plan/matrix"
	"builder/internal/view/term"
	"builder/test/kit/golden"
)

// bare removes all settings of the host's variables and files.
func bare(t *testing.T) {
	t.Helper()
	for _, key := range config.Keys() {
		t.Setenv(config.Variable(key.Name), "") // Setenv restores it after the test
		if err := os.Unsetenv(config.Variable(key.Name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(config.Override, "")
	t.Setenv("BUILDER_HOME", t.TempDir())
}

func tool(t *testing.T) syntax.Verb {
	t.Helper()
	bare(t)
	return syntaxOf(wired([]string{"builder"}, io.Discard, io.Discard))
}

// builtIn reads the built-in catalogue once for all tests.
var builtIn = sync.OnceValue(func() catalogue.Catalogue {
	cat, err := catalogue.Load("", takenNames())
	if err != nil {
		panic(err)
	}
	return cat
})

// wired is newApp without settings. It reads a catalogue only if the command line names a
// site.
func wired(args []string, stdout, stderr io.Writer) *cli.App {
	if siteDir(args) != "" {
		return newApp(args, configuration{}, stdout, stderr)
	}
	return wire(builtIn(), nil, configuration{}, stdout, stderr)
}

// Every verb has examples and exit codes, and every description belongs to a verb.
func TestEveryVerbIsDescribed(t *testing.T) {
	v := tool(t)
	seen := map[string]bool{}
	v.Walk(func(words []string, v syntax.Verb) {
		path := strings.Join(words[1:], " ")
		seen[path] = true
		if len(v.Examples) == 0 || len(v.Exits) < 4 {
			t.Errorf("builder %s has %d examples and %d exit codes", path, len(v.Examples), len(v.Exits))
		}
		for _, e := range v.Examples {
			if e.Does == "" || !strings.Contains(e.Line, strings.Join(words, " ")) {
				t.Errorf("builder %s: %q is no example of it, or does not say what it is for", path, e.Line)
			}
		}
		for _, e := range v.Exits {
			if e.Means == "" {
				t.Errorf("exit code %d says nothing", e.Code)
			}
		}
	})
	for path := range manual.Descriptions {
		if !seen[path] {
			t.Errorf("no verb is called %q", path)
		}
	}
	for _, path := range slices.Concat(keysOf(operands), keysOf(flagWords)) {
		verb, flag, isFlag := strings.Cut(path, "--")
		if verb = strings.TrimSpace(verb); verb == "" {
			continue // applies to every verb with the flag
		}
		at, ok := v.Find(strings.Fields(verb)...)
		if _, known := at.Flag(flag); !ok || isFlag && !known {
			t.Errorf("something is known of %q, which is not there", path)
		}
	}
}

func keysOf[V any](m map[string]V) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	return keys
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
	"builder report merge": func(c *cli.Context) error { _, err := readMerge(c); return err },
}

// Every example must be a valid command line. The test reads its words and executes
// nothing.
func TestExamples(t *testing.T) {
	v := tool(t)
	t.Chdir(t.TempDir())
	n := 0
	v.Walk(func(words []string, v syntax.Verb) {
		for _, e := range v.Examples {
			n++
			args, err := wordsOf(e.Line)
			if err == nil {
				err = parse(args)
			}
			if err != nil {
				t.Errorf("%s\n\t%v", e.Line, err)
			}
		}
	})
	if n < 40 {
		t.Errorf("only %d examples", n)
	}
}

// The same check must reject wrong command lines.
func TestExamplesAreRead(t *testing.T) {
	bare(t)
	for _, line := range []string{
		"builder rnu horovod", "builder run horovd", "builder run horovod --rocm 99", "builder run horovod --jbos 2", "builder run horovod x",
		"builder gate x --only frob", "builder list --all", "builder engine stats", "builder store gc --keep", "builder plan horovod --rocm 'x",
	} {
		args, err := wordsOf(line)
		if err == nil {
			err = parse(args)
		}
		if err == nil {
			t.Errorf("%s is taken", line)
		}
	}
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
	err := app.RunContext(context.Background(), flagsFirst(args, app.Commands))
	if err == nil && !reads {
		err = errors.New("no verb reads it")
	}
	return err
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
					of := app.Selection{Recipe: cat.Recipes[i], Filter: readAxes(c, cat.Recipes[i].Axes)}
					_, err := openSession(c, cat, term.Printer{Stdout: io.Discard, Stderr: io.Discard})
					_, err2 := readRun(c, of)
					if err := errors.Join(err, err2, unexpected(c, 0)); err != nil {
						return err
					}
					_, _, err = matrix.Expand(of.Recipe, of.Filter)
					return errors.Join(err, do(c))
				}
			case len(command.Subcommands) == 0 || slices.Contains([]string{"doctor", "lock", "matrix", "publish", "completion"}, command.Name):
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

// Every exit code of a verb in the scripts must be in its description.
func TestScriptsExitAsDescribed(t *testing.T) {
	v := tool(t)
	scripts, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			words := strings.Fields(line)
			if len(words) < 4 || words[0] != "exits" || words[2] != "builder" {
				continue
			}
			at := v
			for _, word := range words[3:] {
				below, ok := at.Find(word)
				if !ok || below.Recipe {
					break
				}
				at = below
			}
			code, err := strconv.Atoi(words[1])
			if err != nil || !slices.ContainsFunc(at.Exits, func(e syntax.Exit) bool { return e.Code == code }) {
				t.Errorf("%s: %s: exit code %d is not described for %s", filepath.Base(script), strings.TrimSpace(line), code, at.Name)
			}
		}
	}
}

// Every flag with a variable is a key of builder.yaml with the same name. Every key is
// a flag of some verb or is read elsewhere.
func TestKeysAreVariables(t *testing.T) {
	v := tool(t)
	seen := map[string]bool{"home": true, "mirror-debian": true, "mirror-debian-snapshot": true, "mirror-registry": true, "mirror-source": true}
	v.Walk(func(words []string, v syntax.Verb) {
		for _, f := range v.Options() {
			if f.Variable == "" {
				continue
			}
			seen[f.Names[0]] = true
			if f.Variable != config.Variable(f.Names[0]) {
				t.Errorf("%s: --%s has the variable %s", strings.Join(words, " "), f.Names[0], f.Variable)
			}
		}
	})
	for _, key := range config.Keys() {
		if !seen[key.Name] {
			t.Errorf("no flag reads the key %s", key.Name)
		}
		delete(seen, key.Name)
	}
	for name := range seen {
		t.Errorf("--%s has a variable, and no key of builder.yaml", name)
	}
}

// troff and mandoc must accept every page without warnings.
func TestManPages(t *testing.T) {
	v := tool(t)
	dir := t.TempDir()
	var pages []string
	v.Walk(func(words []string, v syntax.Verb) {
		path := filepath.Join(dir, manual.PageName(words)+".1")
		page := manual.Page(words, v, manual.Edition{Version: "1.0", Date: "2026-01-31"})
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		pages = append(pages, path)
	})
	for _, program := range [][]string{
		{"groff", "-k", "-man", "-Tutf8", "-ww", "-z"},
		{"mandoc", "-T", "lint", "-W", "warning"},
	} {
		t.Run(program[0], func(t *testing.T) {
			if _, err := exec.LookPath(program[0]); err != nil {
				t.Skipf("%s is not installed", program[0])
			}
			for _, page := range pages {
				said, err := exec.Command(program[0], append(program[1:], page)...).CombinedOutput()
				if err != nil || len(said) > 0 {
					t.Errorf("%s: %v\n%s", filepath.Base(page), err, said)
				}
			}
		})
	}
}

const referenceDir = "../../docs/reference"

// TestReference compares docs/reference with the code; -update rewrites it.
func TestReference(t *testing.T) {
	v := tool(t)
	pages := map[string]string{"README.md": referenceIndex(v), "builder-yaml.md": referenceConfig(v), "recipe.md": referenceRecipe(t), "images.md": referenceImages(t)}
	for _, below := range v.Verbs {
		pages["builder-"+below.Name+".md"] = generated + manual.Reference([]string{v.Name, below.Name}, below)
	}
	for name, text := range pages {
		golden.CheckFile(t, filepath.Join(referenceDir, name), []byte(text))
	}
	there, err := os.ReadDir(referenceDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range there {
		if _, ok := pages[e.Name()]; !ok {
			t.Errorf("%s/%s speaks of nothing that is there: remove it", referenceDir, e.Name())
		}
	}
}

const generated = "<!-- Written by go test ./cmd/builder -run Reference -update from the code. -->\n\n"

// referenceIndex returns the first page: verbs, variables, axes and exit codes.
func referenceIndex(v syntax.Verb) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s# Reference\n\n%s\n\n", generated, v.About)
	fmt.Fprintf(&b, "`builder VERB --help` and `builder completion man VERB` print the same texts. `builder completion` prints completion scripts for your shell.\n\n## Verbs\n")
	group := ""
	for _, below := range v.Verbs {
		if below.Group != group {
			group = below.Group
			fmt.Fprintf(&b, "\n### %s\n\n| verb | does |\n| --- | --- |\n", group)
		}
		fmt.Fprintf(&b, "| [`builder %s`](builder-%s.md) | %s |\n", below.Name, below.Name, manual.Cell(below.Summary))
	}
	fmt.Fprintf(&b, "\n## Variables\n\nA flag overrides its variable. A variable overrides [builder.yaml](builder-yaml.md), which overrides the default.\n\n| variable | is |\n| --- | --- |\n")
	for _, key := range config.Keys() {
		fmt.Fprintf(&b, "| `%s` | the key [`%s`](builder-yaml.md): %s |\n", config.Variable(key.Name), key.Name, manual.Cell(key.About))
	}
	fmt.Fprintf(&b, "| `%s` | the only builder.yaml to read; if it is empty, builder reads none |\n", config.Override)
	fmt.Fprintf(&b, "| `UV_PUBLISH_TOKEN`, or `UV_PUBLISH_USERNAME` and `UV_PUBLISH_PASSWORD` | credentials of an upload server, for uv; never in a file |\n")
	fmt.Fprintf(&b, "\n## Axes\n\nAn axis is a flag of every verb with a RECIPE.\n")
	run, _ := v.Find("run")
	for _, r := range run.Verbs {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n%s", r.Name, manual.Cell(r.Summary), manual.Axes(r))
	}
	fmt.Fprintf(&b, "\n## Exit codes\n\n| code | means |\n| --- | --- |\n")
	for _, code := range diag.Codes() {
		fmt.Fprintf(&b, "| %d | %s |\n", int(code), manual.Cell(manual.ExitMeanings[code]))
	}
	fmt.Fprintf(&b, "\n[More about exit codes](../exit-codes.md).\n")
	return b.String()
}

// referenceConfig returns the page of builder.yaml.
func referenceConfig(v syntax.Verb) string {
	text, err := os.ReadFile(filepath.Join("testdata", "builder-yaml.md"))
	if err != nil {
		return err.Error()
	}
	var keys strings.Builder
	for _, key := range config.Keys() {
		var verbs []string
		fallback := ""
		v.Walk(func(words []string, v syntax.Verb) {
			if f, ok := (syntax.Verb{Flags: v.Options()}).Flag(key.Name); ok && f.Variable != "" {
				verbs, fallback = append(verbs, manual.Code(strings.Join(words[1:], " "))), f.Default
			}
		})
		if len(verbs) == 0 || len(verbs) > 8 {
			verbs = []string{"all"}
		}
		fmt.Fprintf(&keys, "| `%s` | %s | %s | %s | %s |\n", key.Name, key.Form, manual.Cell(key.About), manual.Code(fallback), strings.Join(verbs, ", "))
	}
	found := "`" + strings.Join(config.FoundKeys(), "`, `") + "`"
	return generated + strings.NewReplacer("KEYS\n", keys.String(), "FOUND", found).Replace(string(text))
}
