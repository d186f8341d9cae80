package plan

import (
	"context"
	"errors"
	"io"

	"builder/internal/app/home"
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
func Audit(ctx context.Context, s Setup, rs []*recipe.Recipe, fetch bool) (map[string]audit.Report, error) {
	w, err := home.Open(ctx, s.Keys, s.NoInstall)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	reports := map[string]audit.Report{}
	var errs []error
	for _, r := range rs {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		cells, unfetched, err := auditCells(ctx, s, w, r, fetch)
		if err != nil {
			return nil, err
		}
		errs = append(errs, unfetched) // the patches are tried on the other sources
		patches := s.Catalogue.Patches[r.Name]
		report, err := audit.Run(ctx, patches, cells, openSources(w.Store, patches))
		if err != nil {
			return nil, err
		}
		reports[r.Name] = report
		for _, f := range report.Findings {
			errs = append(errs, diag.Errorf(diag.Patch, "%s/%s", r.Name, f).WithHint("%s", f.Remedy))
		}
		for _, row := range report.Rows {
			if !row.Unseen() || unfetched != nil {
				continue
			}
			errs = append(errs, diag.Errorf(diag.Patch, "%s/%s: not measured: the store has no source of its versions", r.Name, row.Patch).
				WithHint("lock the sources with `%s --all` if the lock lacks them, and fetch them with `builder patch audit --fetch %s`", s.Catalogue.PinCommand(r.Name, nil), r.Name))
		}
	}
	return reports, errors.Join(errs...)
}

// PatchAsDiff returns the named patch as a diff for upstream.
func PatchAsDiff(ctx context.Context, s Setup, rs []*recipe.Recipe, name string) (string, error) {
	w, err := home.Open(ctx, s.Keys, s.NoInstall)
	if err != nil {
		return "", err
	}
	defer w.Close()
	var names []string
	for _, r := range rs {
		for _, p := range s.Catalogue.Patches[r.Name] {
			if names = append(names, p.Name); p.Name != name {
				continue
			}
			cells, _, err := auditCells(ctx, s, w, r, false)
			if err != nil {
				return "", err
			}
			return audit.AsDiff(ctx, p, cells, openSources(w.Store, []patch.Patch{p}))
		}
	}
	return "", diag.Errorf(diag.Usage, "unknown patch %q", name).WithHint("%s", diag.DidYouMean(name, names))
}

// auditCells returns every cell of a recipe with its facts and the digest of its
// source. unfetched joins the errors of sources that could not be fetched.
func auditCells(ctx context.Context, s Setup, w *home.Workspace, r *recipe.Recipe, fetch bool) (audited []audit.Cell, unfetched, err error) {
	cells, _, err := matrix.Expand(r, matrix.Everything(r))
	if err != nil {
		return nil, nil, err
	}
	pins, err := s.Catalogue.Locks(s.Keys.Home).Read(r.Name)
	if err != nil {
		return nil, nil, err
	}
	var errs []error
	fetched := map[string]bool{} // many cells share a source
	for _, cell := range cells {
		facts, err := lock.Facts(cell, s.Catalogue.LockInputs())
		if err != nil {
			return nil, nil, err
		}
		c := audit.Cell{Version: facts["version"], Facts: facts}
		if pin, ok := lock.SourceOf(cell, facts, pins.Sources); ok {
			c.Source = pin.SHA256
			if fetch && !fetched[pin.SHA256] {
				fetched[pin.SHA256] = true
				errs = append(errs, s.Sources.Fetcher(w).Fetch(ctx, lock.Entry{Source: pin}, io.Discard))
			}
		}
		audited = append(audited, c)
	}
	return audited, errors.Join(errs...), nil
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
