package audit_test

import (
	"strings"
	"testing"

	"builder/internal/plan/audit"
	"builder/internal/plan/patch"
	"builder/internal/plan/sourcetree"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// The printed diff makes the same edits as the patch.
func TestAsDiff(t *testing.T) {
	const source = "a\nb\nc\nd\ne\nf\ng\n"
	open := func(digest string) (*sourcetree.Tree, error) {
		if digest != "here" {
			return nil, nil
		}
		return sourcetree.Of(map[string][]byte{"x/y.py": []byte(source)}), nil
	}
	cells := []audit.Cell{
		{Version: "1.0", Source: "here", Facts: map[string]string{"version": "1.0", "gcc": "12"}},
		{Version: "1.1", Source: "gone", Facts: map[string]string{"version": "1.1", "gcc": "13"}},
		{Version: "1.9", Source: "here", Facts: map[string]string{"version": "1.9", "gcc": "13"}},
		{Version: "1.10", Source: "here", Facts: map[string]string{"version": "1.10", "gcc": "13"}},
	}
	p := patch.Patch{
		Name: "p", Reason: "because", Upstream: "https://example.org/1", When: map[string]string{"gcc": ">=13"},
		Edits: []patch.Edit{{Kind: patch.Replace, File: "x/y.py", Search: "d\n", Replace: "D\n", Count: 1}},
	}
	text, err := audit.AsDiff(t.Context(), p, cells, open)
	must.Hold(t, err == nil && strings.HasPrefix(text, "because\n\nSee https://example.org/1. Made from release 1.10.\n\ndiff --git a/x/y.py b/x/y.py\n"),
		"%q, %v", text, err)
	_, body, _ := strings.Cut(text, "diff --git")
	again := p
	again.Edits = []patch.Edit{{Kind: patch.Diff, Content: "diff --git" + body}}
	tree, _ := open("here")
	must.Get(patch.Apply(t.Context(), tree, again, nil))(t)
	got, err := tree.ReadFile(t.Context(), "x/y.py")
	check.That(t, err == nil && string(got) == "a\nb\nc\nD\ne\nf\ng\n", "%q, %v", got, err)
	_, err = audit.AsDiff(t.Context(), p, cells[:2], open)
	check.Fails(t, err, "the store has no source for it")
	p.Edits = []patch.Edit{{Kind: patch.Symlink, Link: "x", Target: "/y"}}
	_, err = audit.AsDiff(t.Context(), p, cells, open)
	check.Fails(t, err, "the link x into an image")
}
