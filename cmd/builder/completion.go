package main

import (
	"embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/base/diag"
	"builder/internal/base/shell"
	"builder/internal/build/fleet"
	"builder/internal/files/inspect"
	"builder/internal/gates/gate"
	"builder/internal/view/report"
	"builder/internal/view/term"
)

//go:embed completion
var completionScripts embed.FS

var shells = []string{"bash", "zsh", "fish"}

func completionCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print the completion script of a shell", ArgsUsage: strings.Join(shells, "|"), OnUsageError: usageError,
		Description: "The script completes verbs, flags, recipes, axes and their values, and the cells of\n" +
			"./out. It calls the tool, which only reads files and uses no network.\n\n" +
			"   bash: eval \"$(builder config completion bash)\" in ~/.bashrc\n" +
			"   zsh:  eval \"$(builder config completion zsh)\" behind compinit in ~/.zshrc\n" +
			"   fish: builder config completion fish > ~/.config/fish/completions/builder.fish",
		Action: func(c *cli.Context) error {
			if err := unexpected(c, 1); err != nil {
				return err
			}
			if !slices.Contains(shells, c.Args().First()) {
				return diag.Errorf(diag.Usage, "no completion for shell %q", c.Args().First()).WithHint("%s", diag.DidYouMean(c.Args().First(), shells))
			}
			script, err := completionScripts.ReadFile("completion/" + c.Args().First())
			if err != nil {
				return err
			}
			_, err = out.Stdout.Write(script)
			return err
		},
	}
}

// completing reports whether a completion script asks for the next words: its last word
// is a flag of package cli.
func completing(args []string) bool {
	return args[len(args)-1] == "--generate-bash-completion"
}

// completeWith gives all verbs their completion.
func completeWith(complete cli.BashCompleteFunc, verbs []*cli.Command) {
	for _, verb := range verbs {
		verb.BashComplete = complete
		completeWith(complete, verb.Subcommands)
	}
}

// suggest returns the completion of every verb. Package cli finds the verb; this function
// prints what can follow. The first line tells the shell whether to add files or
// directories. Each other line is a word, with its description after a tab.
func suggest(args, recipes []string, out io.Writer) cli.BashCompleteFunc {
	return func(c *cli.Context) {
		words := args[1 : len(args)-1]
		if len(words) == 0 {
			words = []string{""}
		}
		current, used, before := words[len(words)-1], words[:len(words)-1], ""
		if len(used) > 0 {
			before = used[len(used)-1]
		}
		verb := c.Command
		spelling, value, assigned := strings.Cut(current, "=")
		switch f := flagNamed(verb.Flags, strings.TrimLeft(before, "-")); {
		case strings.HasPrefix(before, "-") && f != nil && f.TakesValue():
			valuesOf(f, recipes).print(out, "", current)
		case strings.HasPrefix(current, "-") && assigned:
			if f := flagNamed(verb.Flags, strings.TrimLeft(spelling, "-")); f != nil {
				valuesOf(f, recipes).print(out, spelling+"=", value)
			}
		case strings.HasPrefix(current, "-"):
			flagsFor(verb, used).print(out, "", current)
		default:
			operandsOf(c, used, recipes).print(out, "", current)
		}
	}
}

// nextWords are the words that can follow.
type nextWords struct {
	kind  string // "files" or "directories" if the shell adds them
	words []string
	about map[string]string
	list  bool // a comma separates several words
}

// print prints the words that continue current. before is the text in front of it in the
// same shell word. In a list only the last item is completed.
func (n nextWords) print(out io.Writer, before, current string) {
	kind := n.kind
	if kind == "" {
		kind = "words"
	}
	fmt.Fprintln(out, kind)
	var there []string
	if comma := strings.LastIndex(current, ","); n.list && comma >= 0 {
		there = strings.Split(current[:comma], ",")
		before, current = before+current[:comma+1], current[comma+1:]
	}
	for _, word := range n.words {
		switch {
		case !strings.HasPrefix(word, current) || slices.Contains(there, word) || len(there) > 0 && word == "all":
		case n.about[word] != "":
			fmt.Fprintf(out, "%s%s\t%s\n", before, word, strings.Join(strings.Fields(n.about[word]), " "))
		default:
			fmt.Fprintf(out, "%s%s\n", before, word)
		}
	}
}

// flagsFor returns the flags of a verb, axes first, without those already used.
func flagsFor(verb *cli.Command, used []string) nextWords {
	n := nextWords{about: map[string]string{}}
	var others []string
	for _, f := range verb.Flags {
		word := "--" + f.Names()[0]
		d, ok := f.(cli.DocGenerationFlag)
		if !ok || slices.Contains(used, word) && !repeats(f) {
			continue
		}
		n.about[word] = strings.ReplaceAll(d.GetUsage(), "`", "")
		if _, isAxis := axisOf(f); isAxis {
			n.words = append(n.words, word)
		} else {
			others = append(others, word)
		}
	}
	n.words = append(n.words, others...)
	return n
}

// operandsOf returns the verbs below a verb, else its operands, else its flags.
func operandsOf(c *cli.Context, used, recipes []string) nextWords {
	n := meant(c.Command.ArgsUsage, recipes)
	n.about = map[string]string{}
	if c.NArg() <= 1 && len(c.Command.Subcommands) > 0 {
		n = nextWords{kind: n.kind, about: n.about}
		for _, below := range c.Command.Subcommands {
			n.words, n.about[below.Name] = append(n.words, below.Name), below.Usage
		}
	}
	if len(n.words) == 0 && n.kind == "" && len(c.Command.Subcommands) == 0 {
		return flagsFor(c.Command, used) // nothing else can follow
	}
	return n
}

// valuesOf returns the values of a flag: those of an axis or of a known flag, or those
// that its placeholder names.
func valuesOf(f cli.DocGenerationFlag, recipes []string) nextWords {
	_, placeholder, _ := strings.Cut(f.GetUsage(), "`")
	placeholder, _, _ = strings.Cut(placeholder, "`")
	n := meant(placeholder, recipes)
	if axis, ok := axisOf(f); ok {
		n = nextWords{words: append(slices.Clone(axis.known), "all")}
	}
	switch f.Names()[0] {
	case "only":
		n.words = gate.Names()
	case "expect":
		n.words = withSuffix(inspect.Names(), "=")
	case "engine":
		n.words = withSuffix(fleet.Kinds, "://")
	case "set":
		n.words = []string{"source."}
	case "progress":
		n.words = progressFormats()
	}
	_, isAxis := axisOf(f)
	slice, ok := f.(cli.DocGenerationSliceFlag)
	n.list = isAxis || ok && slice.IsSliceFlag()
	return n
}

func withSuffix(words []string, suffix string) (all []string) {
	for _, word := range words {
		all = append(all, word+suffix)
	}
	return all
}

// meant returns what the words of a placeholder stand for, such as PATH|ADDRESS… or
// images|uv. A word in lower case is a value itself.
func meant(placeholder string, recipes []string) (n nextWords) {
	for _, word := range strings.FieldsFunc(placeholder, func(r rune) bool { return strings.ContainsRune("|[]… ,", r) }) {
		switch {
		case word == "RECIPE":
			n.words = append(n.words, recipes...)
		case word == "CELL":
			n.words = append(n.words, lastCells("")...)
		case word == "PATH":
			n.kind, n.words = "files", append(n.words, lastCells(resultsDir()+"/")...)
		case word == "DIR" && n.kind == "":
			n.kind = "directories"
		case slices.Contains([]string{"DIR", "FILE", "WHEEL", "LIB", "LOCK", "LIBRARY"}, word):
			n.kind = "files"
		case word == strings.ToLower(word) && !strings.ContainsAny(word, "/-") && word != "axes":
			n.words = append(n.words, word)
		}
	}
	return n
}

// resultsDir returns the output directory of run without --out.
func resultsDir() string {
	if dir := os.Getenv("BUILDER_OUT"); dir != "" {
		return dir
	}
	return "out"
}

// lastCells lists the cells below the output directory, each behind a prefix: first those
// of the last run, then the others. It ignores all errors: a shell cannot show them.
func lastCells(prefix string) (names []string) {
	last, _ := report.Read(filepath.Join(resultsDir(), "run.json"))
	var ids []string
	for _, cell := range last.Cells {
		ids = append(ids, cell.ID)
	}
	entries, _ := os.ReadDir(resultsDir())
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !slices.Contains(ids, e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	for _, id := range ids {
		if shell.Plain(id) {
			names = append(names, prefix+id)
		}
	}
	return names
}
