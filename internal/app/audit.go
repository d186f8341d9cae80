package app

import (
	"context"
	"errors"
	"io"

	"builder/internal/base/diag"
	"builder/internal/input/store"
	"builder/internal/plan/audit"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/patch"
	"builder/internal/plan/recipe"
	"builder/internal/plan/sourcetree"
)

// Audit applies the patches of recipes to every cell. It returns the reports by recipe
// name and all findings joined into one error. With fetch it downloads sources missing
// from the store. If a recipe cannot be audited, Audit returns no reports.
func Audit(ctx context.Context, s *Session, rs []*recipe.Recipe, fetch bool) (map[string]audit.Report, error) {
	w, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	defer w.close()
	reports := map[string]audit.Report{}
	var errs []error
	for _, r := range rs {
		report, err := w.audit(ctx, r, fetch)
		if err != nil {
			return nil, err
		}
		reports[r.Name] = report
		for _, f := range report.Findings {
			errs = append(errs, diag.Errorf(diag.Patch, "%s/%s", r.Name, f).WithHint("%s", f.Remedy))
		}
		for _, row := range report.Rows {
			if row.Unseen() {
				errs = append(errs, diag.Errorf(diag.Patch, "%s/%s: not measured: the store has no source of its versions", r.Name, row.Patch).
					WithHint("fetch the sources with `builder patch audit --fetch %s`", r.Name))
			}
		}
	}
	return reports, errors.Join(errs...)
}

// PatchAsDiff returns the named patch as a diff for upstream.
func PatchAsDiff(ctx context.Context, s *Session, rs []*recipe.Recipe, name string) (string, error) {
	w, err := s.open(ctx)
	if err != nil {
		return "", err
	}
	defer w.close()
	var names []string
	for _, r := range rs {
		for _, p := range w.Catalogue.Patches[r.Name] {
			if names = append(names, p.Name); p.Name != name {
				continue
			}
			cells, err := w.auditCells(ctx, r, false)
			if err != nil {
				return "", err
			}
			return audit.AsDiff(ctx, p, cells, openSources(w.store, []patch.Patch{p}))
		}
	}
	return "", diag.Errorf(diag.Usage, "unknown patch %q", name).WithHint("%s", diag.DidYouMean(name, names))
}

// audit audits the patches of one recipe over every cell of its matrix.
func (w *workspace) audit(ctx context.Context, r *recipe.Recipe, fetch bool) (audit.Report, error) {
	cells, err := w.auditCells(ctx, r, fetch)
	if err != nil {
		return audit.Report{}, err
	}
	return audit.Run(ctx, w.Catalogue.Patches[r.Name], cells, openSources(w.store, w.Catalogue.Patches[r.Name]))
}

// auditCells returns every cell of a recipe with its facts and the digest of its
// source.
func (w *workspace) auditCells(ctx context.Context, r *recipe.Recipe, fetch bool) ([]audit.Cell, error) {
	cells, _, err := matrix.Expand(r, matrix.Everything(r))
	if err != nil {
		return nil, err
	}
	pins, err := w.Catalogue.Locks(w.Home).Read(r.Name)
	if err != nil {
		return nil, err
	}
	var audited []audit.Cell
	fetched := map[string]bool{} // many cells share a source
	for _, cell := range cells {
		facts, err := lock.Facts(cell, w.Catalogue.LockInputs())
		if err != nil {
			return nil, err
		}
		c := audit.Cell{ID: cell.ID, Version: facts["version"], Facts: facts}
		if pin, ok := pins.SourceOf(cell, facts); ok {
			c.Source = pin.SHA256
			if fetch && !fetched[pin.SHA256] {
				fetched[pin.SHA256] = true
				if err := w.fetcher().Fetch(ctx, lock.Entry{Source: pin}, io.Discard); err != nil {
					return nil, err
				}
			}
		}
		audited = append(audited, c)
	}
	return audited, nil
}

// openSources reads the source trees in the store, each once.
func openSources(s *store.Store, patches []patch.Patch) audit.Open {
	wanted := sourcetree.Files(patches)
	trees := map[string]*sourcetree.Tree{}
	return func(source string) (*sourcetree.Tree, error) {
		tree, known := trees[source]
		if !known {
			if path, ok := s.Path(store.Blob{Name: "source", SHA256: source}); ok {
				var err error
				if tree, err = sourcetree.Read(path, func(name string) bool { return wanted[name] }); err != nil {
					return nil, err
				}
			}
			trees[source] = tree
		}
		if tree == nil {
			return nil, nil
		}
		return tree.Clone(), nil
	}
}
