// Package reuse takes a published cell instead of building it, if its signature,
// verdicts and key are valid. Package results covers cells built on this host.
package reuse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/build/results"
	"builder/internal/build/run"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
	"builder/internal/publishing/index"
	"builder/internal/publishing/publish"
	"builder/internal/view/report"
)

// A Finder implements [run.Finder]. It searches the published places for cells without
// a result on this host. It reports a bundle with an invalid signature, verdict or key,
// and does not take it.
type Finder struct {
	*results.Results

	Places  []string // directories and addresses with published cells
	Trust   signing.Trust
	Only    bool // a cell missing in every place is an error
	Store   *store.Store
	Scratch string
	Note    func(string, ...any)
}

var _ run.Finder = Finder{}

// Find implements [run.Finder].
func (f Finder) Find(ctx context.Context, e lock.Entry, dir string) (run.Result, bool, error) {
	found, ok, err := f.Results.Find(e.Key(), dir)
	if ok || err != nil || len(f.Places) == 0 {
		return found, ok, err
	}
	var first error
	for _, place := range f.Places {
		err := f.take(ctx, place, e)
		if errors.Is(err, index.ErrNotPublished) {
			continue
		}
		if err != nil {
			err = fmt.Errorf("not taken from %s: %w", store.Place(place), diag.First(err))
			first = cmp.Or(first, err)
			f.Note("%s: %v", e.ID, err)
			continue
		}
		found, ok, err := f.Results.Find(e.Key(), dir)
		found.From = report.Registry
		return found, ok, err
	}
	if f.Only {
		first = cmp.Or(first, fmt.Errorf("no place of --from has the key %s", e.Key()))
		return run.Result{}, false, diag.Errorf(diag.Fetch, "taking %s: %w", e.ID, first).WithHint("%s", remedy(first))
	}
	return run.Result{}, false, nil
}

// remedy returns the next step after a place of --from did not give the cell.
func remedy(err error) string {
	switch {
	case errors.Is(err, index.ErrYanked):
		return "a build from the same inputs is the same wheel: change an input, such as the version or a patch, or ask its publisher"
	case strings.Contains(err.Error(), signing.ErrStranger.Error()): // a check states it as text
		return "to trust the signatures of another host, give its public key with --trust FILE; omit --from-only to build it"
	}
	return "omit --from-only to build it"
}

// take copies a published cell, verifies it and stores it as a result of this host.
func (f Finder) take(ctx context.Context, place string, e lock.Entry) error {
	source, err := publish.Open[publish.Source](place, publish.Options{Store: f.Store})
	if err != nil {
		return err
	}
	// Another process may take the same cell at the same time.
	dir, err := os.MkdirTemp(f.Scratch, "from-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b, err := publish.Take(ctx, source, e.Key(), dir, f.Trust, attest.Candidate)
	if err != nil {
		return err
	}
	r := run.Result{Artifacts: append([]artifact.Artifact{b.Wheel}, b.Beside...), Verdicts: b.Verdicts, Gates: run.Published}
	for _, d := range b.Said {
		r.Attestations = append(r.Attestations, d.Artifact)
	}
	return f.Keep(e, r)
}
