package docscript

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"builder/test/kit/check"
	"builder/test/kit/markdown"
	"builder/test/kit/must"
)

func read(t *testing.T, text string) ([]Block, error) {
	t.Helper()
	return Of(must.Get(markdown.Parse("a.md", text))(t))
}

func TestOf(t *testing.T) {
	got, err := read(t, strings.Join([]string{
		"<!-- exit: 2 -->", "<!-- varies: seconds -->", "<!-- cut -->",
		"```console", "$ one \\", "  two", "1.5s", "$ three", "...", "3", "```", "",
		"<!-- e2e -->", "```console", "$ four", "```", "",
		"<!-- elsewhere: no GPU -->", "```console", "$ five", "```", "",
		"<!-- file: x/y.yaml -->", "```yaml", "a: b", "```", "",
		"```text", "plain", "```", "",
	}, "\n"))
	must.Succeed(t, err)
	want := []Block{
		{Kind: Run, Exit: 2, Cut: true, Commands: []Command{{5, "one \\\n  two", []string{"1.5s"}}, {8, "three", []string{"...", "3"}}}},
		{Kind: E2E, Commands: []Command{{15, "four", nil}}},
		{Kind: Elsewhere, About: "no GPU", Commands: []Command{{20, "five", nil}}},
		{Kind: File, About: "x/y.yaml"},
		{Kind: Text},
	}
	check.Same(t, "values", want, got, cmpopts.IgnoreFields(Block{}, "Block", "Varies"))
	check.That(t, len(got[0].Varies) == 1 && got[0].Varies[0].Name == "seconds", "got %v", got[0].Varies)
}

func TestOfFaults(t *testing.T) {
	for text, want := range map[string]string{
		"```sh\nx\n```":                                    `a.md:1: the language of the block is "sh"`,
		"```console\nx\n```":                               "a.md:1: a console has to begin with a command",
		"```console\n```":                                  "a.md:1: the console is empty",
		"```text\nbuilder run\n```":                        "a.md:1: move commands to a block of console",
		"```yaml\na: b\n```":                               "a.md:1: name the file",
		"<!-- cut -->\n```console\n$ x\n```":               "a.md:2: the mark cuts nothing",
		"<!-- varies: key -->\n```console\n$ x\n```":       "a.md:1: varies: key: the block has no digests and keys",
		"<!-- varies: mood -->\n```console\n$ x\n```":      "known variations are clock, columns",
		"<!-- exit: two -->\n```console\n$ x\n```":         "a.md:1: exit: two: ",
		"<!-- elsewhere -->\n```console\n$ x\n```":         "a.md:1: elsewhere: the mark needs a path or a reason",
		"<!-- file: x -->\n```console\n$ x\n```":           "a.md:1: file: x: a block of console cannot have this mark",
		"<!-- e2e -->\n```yaml\na: b\n```":                 "a.md:1: e2e: a block of yaml cannot have this mark",
		"<!-- exit: 1 -->\n```text\nx\n```":                "a.md:2: only a console can have this mark",
		"<!-- ignore everything -->\n```console\n$ x\n```": "a.md:1: ignore everything: unknown mark",
	} {
		_, err := read(t, text)
		check.Fails(t, err, want, text)
	}
}

func TestDiffers(t *testing.T) {
	for _, c := range []struct {
		about, marks, shown, printed string
		same                         bool
	}{
		{"the same", "", "a\nb", "a\nb\n", true},
		{"another line", "", "a\nb", "a\nc\n", false},
		{"a line too few", "", "a\nb", "a\n", false},
		{"dots without a mark", "", "a\n...", "a\nb\n", false},
		{"lines cut", "<!-- cut -->\n", "a\n...\nd", "a\nb\nc\nd\n", true},
		{"no lines cut", "<!-- cut -->\n", "a\n...\nd", "a\nd\n", true},
		{"another end", "<!-- cut -->\n", "a\n...\nd", "a\nb\nd\ne\n", false},
		{"the end is cut", "<!-- cut -->\n", "a\n...", "a\nb\nd\ne\n", true},
		{"twice", "<!-- cut -->\n", "...\nb\n...\nd", "a\nb\nc\nb\nd\n", true},
		{"a missing line", "<!-- cut -->\n", "...\nb\n...\nd", "a\nc\nd\n", false},
		{"another time", "<!-- varies: seconds -->\n", "took 1.5s", "took 12.25s\n", true},
		{"more than ten minutes", "<!-- varies: seconds -->\n", "took 1.5s", "took 19m51s\n", true},
		{"more than an hour", "<!-- varies: seconds -->\n", "took 1.5s", "took 1h0m1s\n", true},
		{"another word", "<!-- varies: seconds -->\n", "took 1.5s", "lost 1.5s\n", false},
		{"other columns", "<!-- varies: seconds, columns -->\n", "a    1.5s  b", "a  11.5s  b\n", true},
		{"another key", "<!-- varies: key -->\n", "key 0123456789ab", "key ba9876543210\n", true},
		{"no key", "<!-- varies: key -->\n", "key 0123456789ab", "key none\n", false},
	} {
		blocks, err := read(t, c.marks+"```console\n$ x\n"+c.shown+"\n```\n")
		must.Hold(t, err == nil, "%s: %v", c.about, err)
		diff := blocks[0].differs(blocks[0].Commands[0], c.printed)
		check.That(t, (diff == "") == c.same, "%s: got %q", c.about, diff)
	}
}
