package complete_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"builder/internal/app/complete"
	"builder/internal/app/syntax"
)

var axes = []syntax.Flag{
	{Names: []string{"json"}, About: "as JSON"},
	{Names: []string{"out", "o"}, Value: "DIR", Takes: syntax.Takes{Directories: true}},
	{Names: []string{"rocm"}, Value: "VALUE", Axis: true, List: true, Repeats: true, Takes: syntax.Takes{Words: []string{"6.1", "6.0", "5.7", "all"}}},
}

var tool = syntax.Verb{Name: "builder", Verbs: []syntax.Verb{
	{Name: "run", Summary: "build", Verbs: []syntax.Verb{{Name: "horovod", Recipe: true, Flags: axes}, {Name: "run", Recipe: true, Flags: axes}}},
	{Name: "gate", Flags: axes[:2], Takes: syntax.Takes{CellPlaces: true, Files: true}},
	{Name: "yank", Takes: syntax.Takes{Cells: true}},
	{Name: "list", Flags: axes[:1]},
}}

func words(a complete.Answer) []string {
	texts := []string{}
	for _, word := range a.Words {
		texts = append(texts, word.Text)
	}
	return texts
}

func TestLine(t *testing.T) {
	cells := complete.Cells{Out: "out", IDs: []string{"b-2", "a-1"}}
	for line, want := range map[string]string{
		"":                               "run gate yank list",
		"g":                              "gate",
		"gate list":                      "", // an operand
		"run ":                           "horovod run",
		"run run ":                       "--rocm --json --out",
		"run horovod --":                 "--rocm --json --out",
		"run horovod --json --":          "--rocm --out",
		"run horovod -o x --":            "--rocm --json",
		"run horovod --rocm 5.7 --r":     "--rocm",
		"run horovod --rocm ":            "6.1 6.0 5.7 all",
		"run horovod --rocm 6":           "6.1 6.0",
		"run horovod --rocm=6.1,":        "--rocm=6.1,6.0 --rocm=6.1,5.7",
		"run horovod --json=":            "",
		"run horovod --frob=":            "",
		"run horovod --rocm --json":      "", // the value of --rocm
		"run horovod --rocm x --j":       "--json",
		"gate ":                          "out/b-2 out/a-1",
		"gate out/b-2 out/a":             "out/a-1",
		"gate -- --j":                    "",
		"gate -- ":                       "out/b-2 out/a-1",
		"yank a":                         "a-1",
		"frob ":                          "",
		"list ":                          "--json",
		"list x ":                        "--json",
		"run horovod something --rocm 5": "5.7",
	} {
		got := words(complete.Line(tool, strings.Split(line, " "), cells))
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
	if a := complete.Line(tool, []string{"gate", ""}, cells); !a.Files || a.Directories {
		t.Errorf("gate takes files: %+v", a)
	}
	if a := complete.Line(tool, []string{"run", "horovod", "--out", ""}, cells); a.Files || !a.Directories {
		t.Errorf("--out takes a directory: %+v", a)
	}
	if got := words(complete.Line(tool, nil, cells)); len(got) != 4 {
		t.Errorf("no word at all: got %q", got)
	}
}

// Every offered word must begin with the typed text.
func TestOfferedWordsContinueWhatIsThere(t *testing.T) {
	word := rapid.SampledFrom([]string{"", "run", "horovod", "--rocm", "--rocm=", "6", "6.1,", "--", "-", "--o", "gate", "out/", "=", ",,", "--=", "all"})
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SliceOfN(word, 0, 6).Draw(t, "line")
		current := ""
		if len(line) > 0 {
			current = line[len(line)-1]
		}
		for _, offer := range words(complete.Line(tool, line, complete.Cells{Out: "out", IDs: []string{"a"}})) {
			if !strings.HasPrefix(offer, current) {
				t.Fatalf("%q: %q is offered", line, offer)
			}
		}
	})
}

func TestWrite(t *testing.T) {
	for _, c := range []struct {
		answer complete.Answer
		want   string
	}{
		{complete.Answer{}, "words\n"},
		{complete.Answer{Files: true, Words: []complete.Word{{Text: "a"}}}, "files\na\n"},
		{complete.Answer{Directories: true, Words: []complete.Word{{"a", "is\tnot\nb"}}}, "directories\na\tis not b\n"},
	} {
		var b bytes.Buffer
		if err := c.answer.Write(&b); err != nil || b.String() != c.want {
			t.Errorf("got %q, %v; want %q", b.String(), err, c.want)
		}
	}
}

// Every script must parse in its shell.
func TestScripts(t *testing.T) {
	for _, shell := range complete.Shells {
		text, err := complete.Script(shell)
		if err != nil || !strings.Contains(text, complete.Verb) {
			t.Errorf("%s: %v", shell, err)
		}
		program, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not installed: its script is not read", shell)
			continue
		}
		if said, err := exec.Command(program, "-n", filepath.Join("scripts", shell)).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", shell, err, said)
		}
	}
	if _, err := complete.Script("csh"); err == nil || slices.Contains(complete.Shells, "csh") {
		t.Error("there is a script for csh")
	}
}
