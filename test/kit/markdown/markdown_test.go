package markdown

import (
	"testing"

	"builder/internal/base/diag"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

const sample = "# One `thing` more\n" +
	"\n" +
	"See [the other](b.md#c) and `[no](link)`, ``a `b` c``.\n" +
	"\n" +
	"- an item\n" +
	"\n" +
	"      goes on\n" +
	"\n" +
	"<!-- gone -->\n" +
	"text between\n" +
	"<!-- first -->\n" +
	"<!-- second: x -->\n" +
	"```console\n" +
	"$ # no heading\n" +
	"    [no](link)\n" +
	"```\n" +
	"```\n" +
	"```\n"

func TestParse(t *testing.T) {
	got, err := Parse("a.md", sample)
	must.Succeed(t, err)
	got.Lines = nil
	want := Page{
		Path: "a.md",
		Blocks: []Block{
			{Line: 13, Lang: "console", Marks: []Text{{11, "first"}, {12, "second: x"}}, Lines: []string{"$ # no heading", "    [no](link)"}},
			{Line: 17},
		},
		Headings: []Text{{1, "One `thing` more"}},
		Links:    []Text{{3, "b.md#c"}},
		Code:     []Text{{1, "thing"}, {3, "[no](link)"}, {3, "a `b` c"}},
	}
	check.Same(t, "values", want, got)
}

func TestParseFaults(t *testing.T) {
	for text, want := range map[string]string{
		"text\n\n    code\n":      "a.md:3: a block without fences",
		"- item\n\ntext\n\n    x": "a.md:5: a block without fences",
		"```console\n$ true\n":    "a.md:1: the block has no end",
	} {
		_, err := Parse("a.md", text)
		check.That(t, err != nil && err.Error() == want && diag.CodeOf(err) == diag.Usage, "%q: got %v, want %s", text, err, want)
	}
}

func TestAnchor(t *testing.T) {
	for heading, want := range map[string]string{
		"Without a network":                     "without-a-network",
		"A registry: `oci://HOST/REPOSITORY`":   "a-registry-ocihostrepository",
		"Horovod: CVE-2024-10190 and [more](x)": "horovod-cve-2024-10190-and-more",
		"What build.yml does":                   "what-buildyml-does",
		"a - b":                                 "a-b",
	} {
		check.Same(t, heading, want, Anchor(heading))
	}
}
