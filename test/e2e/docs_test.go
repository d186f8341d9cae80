package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/docscript"
	"builder/test/kit/markdown"
	"builder/test/kit/must"
)

// readme is the page with the main job from the beginning.
const readme = "../../README.md"

// shownPages returns the pages of docs with commands marked for an engine.
func shownPages(t *testing.T) []string {
	t.Helper()
	var pages []string
	err := filepath.WalkDir("../../docs", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "reference" { // generated from the code
			return filepath.SkipDir
		}
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		if len(shown(t, path)) > 0 {
			pages = append(pages, path)
		}
		return nil
	})
	must.Succeed(t, err)
	return pages
}

// shown returns the commands of a page marked for an engine.
func shown(t *testing.T, path string) []string {
	t.Helper()
	page := must.Get(markdown.Read(path))(t)
	blocks := must.Get(docscript.Of(page))(t)
	var commands []string
	for _, b := range blocks {
		if b.Kind == docscript.E2E {
			for _, c := range b.Commands {
				commands = append(commands, c.Text)
			}
		}
	}
	return commands
}

// shows runs the commands of a page that need an engine, in the directory of the story,
// and compares their output.
func (b *tool) shows(path string) {
	b.t.Helper()
	env := append(b.env(), "PATH="+filepath.Dir(b.path)+string(filepath.ListSeparator)+os.Getenv("PATH"), "MAKELEVEL=0", "MAKEFLAGS=") // independent of the make that runs the tests
	docscript.Host{Dir: b.dir, Env: env}.Play(b.t, path, docscript.E2E)
}

// whatPagesShow runs the commands of every page of docs that need an engine. Each page
// has its own directory with the examples. The state is that of the story: the main job
// is already built.
func whatPagesShow(b *tool) {
	for _, path := range shownPages(b.t) {
		b.t.Run(filepath.Base(path), func(t *testing.T) {
			own := *b
			own.t, own.dir = t, t.TempDir()
			must.Succeed(t, os.CopyFS(filepath.Join(own.dir, "examples"), os.DirFS("../../docs/examples")))
			own.shows(path)
		})
	}
}

// The story runs the marked commands of the pages. A page without marks would be
// skipped silently, so this test lists the marked commands.
func TestPagesOfTheStory(t *testing.T) {
	want := []string{"make wheel"}
	got := shown(t, readme)
	check.That(t, slices.Equal(got, want), "the README runs %q, want %q", got, want)
	var names []string
	commands := 0
	for _, path := range shownPages(t) {
		names = append(names, filepath.Base(path))
		commands += len(shown(t, path))
	}
	want = []string{"gates.md", "horovod-rocm.md", "publish.md", "when-it-fails.md", "neighbours.md", "offline.md", "publishing.md", "trust.md", "writing-a-recipe.md"}
	check.That(t, slices.Equal(names, want), "got %v, want %v", names, want)
	check.That(t, commands >= 20, "only %d commands were found", commands)
}
