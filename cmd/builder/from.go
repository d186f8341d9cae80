package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"builder/internal/artifact"
	"builder/internal/attest"
	"builder/internal/diag"
	"builder/internal/lock"
	"builder/internal/publish"
	"builder/internal/results"
	"builder/internal/run"
	"builder/internal/signing"
	"builder/internal/store"
)

func fromFlags() []cli.Flag {
	return []cli.Flag{
		trustFlag(),
		&cli.StringSliceFlag{Name: "from", EnvVars: []string{"BUILDER_FROM"}, Usage: "take a cell that is published at `PLACE` (" + publish.Shelves + ") and signed by a trusted key instead of building it; repeatable"},
		&cli.BoolFlag{Name: "from-only", EnvVars: []string{"BUILDER_FROM_ONLY"}, Usage: "build nothing: a cell that --from does not have is an error"},
	}
}

// reuse implements [run.Finder]: what this host does not know is looked for where
// others have published it. A bundle whose signature, verdicts or key do not hold
// is told and not taken.
type reuse struct {
	*results.Results
	places  []string
	trust   signing.Trust
	only    bool
	store   *store.Store
	scratch string
	note    func(string, ...any)
}

var _ run.Finder = reuse{}

// Find implements [run.Finder].
func (r reuse) Find(ctx context.Context, e lock.Entry, dir string) (run.Result, bool, error) {
	found, ok, err := r.Results.Find(ctx, e, dir)
	if ok || err != nil || len(r.places) == 0 {
		return found, ok, err
	}
	var faults []error
	for _, place := range r.places {
		err := r.take(ctx, place, e)
		if errors.Is(err, publish.ErrNotPublished) {
			continue
		}
		if err != nil {
			err = fmt.Errorf("not taken from %s: %w", store.Source(place), firstOf(err))
			faults = append(faults, err)
			r.note("%s: %v", e.ID, err)
			continue
		}
		found, ok, err := r.Results.Find(ctx, e, dir)
		found.From = run.FromRegistry
		return found, ok, err
	}
	if r.only {
		faults = append(faults, fmt.Errorf("no place of --from has the key %s", e.Key()))
		return run.Result{}, false, diag.Errorf(diag.Fetch, "taking %s: %w", e.ID, faults[0]).
			WithHint("leave out --from-only to build it; --trust FILE counts the signatures of another host")
	}
	return run.Result{}, false, nil
}

// firstOf returns the first fault of several and says how many there are:
// builder verify tells all.
func firstOf(err error) error {
	if all := diag.Split(err); len(all) > 1 {
		return fmt.Errorf("%w (and %d more)", all[0], len(all)-1)
	}
	return err
}

// take copies a published cell, verifies it and keeps it as a result of this host.
func (r reuse) take(ctx context.Context, place string, e lock.Entry) error {
	shelf, err := publish.OpenShelf(place, false, r.store)
	if err != nil {
		return err
	}
	dir := filepath.Join(r.scratch, "from-"+e.Key())
	defer os.RemoveAll(dir)
	wheel, err := shelf.Bring(ctx, e.Key(), dir)
	if err != nil {
		return err
	}
	b, err := publish.Load(wheel, r.trust, attest.Candidate)
	if err != nil {
		return err
	}
	if key := b.Entry.Key(); key != e.Key() {
		return fmt.Errorf("it was built of another entry: key %s, wanted is %s", key, e.Key())
	}
	return r.Keep(e, resultOf(b))
}

// resultOf is a verified bundle as a result of this host.
func resultOf(b publish.Bundle) run.Result {
	return run.Result{
		Artifacts: append([]artifact.Artifact{b.Wheel}, b.Beside...), Attestations: b.Said, Verdicts: b.Verdicts,
	}
}
