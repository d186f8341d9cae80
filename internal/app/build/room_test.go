package build

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/app/home"
	"builder/internal/evidence/signing"
	"builder/internal/input/pypi"
	"builder/internal/plan/lock"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

type noFetch struct{}

func (noFetch) Fetch(context.Context, lock.Entry, io.Writer) error { return nil }

// Before the files of another cell are fetched, those of earlier cells go that no later
// cell needs, unless another process uses the store.
func TestACoveringRunDropsWhatItNoLongerNeeds(t *testing.T) {
	w, err := home.Open(t.Context(), signing.Keys{Home: t.TempDir()}, true)
	must.Succeed(t, err)
	defer func() { w.Close() }()
	cell := func(id string, files ...string) lock.Entry {
		e := lock.Entry{ID: id}
		for _, text := range files {
			b, err := w.Store.Put(strings.NewReader(text))
			must.Succeed(t, err)
			e.Image.Wheels = append(e.Image.Wheels, pypi.File{SHA256: b.SHA256, Size: b.Size})
		}
		return e
	}
	first, second, third := cell("1", "torch 1", "numpy"), cell("2", "torch 2", "numpy"), cell("3", "torch 3", "numpy")
	held := func(e lock.Entry) (all string) {
		for _, f := range e.Image.Wheels {
			if _, there := w.Store.Path(f.Blob()); there {
				all += "+"
			} else {
				all += "-"
			}
		}
		return all
	}
	pruned := 0
	f := &sparingFetcher{Fetcher: noFetch{}, workspace: w, left: []lock.Entry{first, second, third}, prune: func(context.Context) error {
		pruned++
		return nil
	}}
	must.Succeed(t, f.Fetch(t.Context(), first, io.Discard))
	check.Same(t, "prunes before the first cell", 1, pruned)
	other, err := w.Store.Hold(t.Context(), nil)
	must.Succeed(t, err)
	must.Succeed(t, f.Fetch(t.Context(), second, io.Discard))
	check.Same(t, "files while another process uses the store", "++ ++", held(first)+" "+held(second))
	other()
	must.Succeed(t, os.MkdirAll(filepath.Join(w.Scratch, "wheels-1"), 0o755))
	must.Succeed(t, f.Fetch(t.Context(), third, io.Discard))
	left, err := os.ReadDir(w.Scratch)
	check.That(t, err == nil && len(left) == 0, "links stay: %v, %v", left, err)
	check.Same(t, "files", "-+ -+ ++", held(first)+" "+held(second)+" "+held(third))
	check.Same(t, "prunes", 3, pruned)
}
