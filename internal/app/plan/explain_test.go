package plan

import (
	"context"
	"errors"
	"testing"

	"builder/internal/evidence/signing"
	"builder/internal/gates/gate"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/matrix"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// The key in a plan is that of the entry that a run builds, with its input cells.
func TestPlanKeys(t *testing.T) {
	cat, err := catalogue.Load("", catalogue.Names{Gates: gate.Promises()})
	must.Succeed(t, err)
	s := Setup{Catalogue: cat, Keys: signing.Keys{Home: t.TempDir()}}
	keys := 0
	for _, r := range cat.Recipes {
		of := Selection{Recipe: r, Filter: matrix.Filter{}}
		p, err := Explain(t.Context(), s, of)
		must.Succeed(t, err)
		if p.Cells[0].Key == "" {
			continue
		}
		drafts, err := of.drafts(cat)
		must.Succeed(t, err)
		entries, err := s.Sources.Assembler(cat, s.Keys.Home).Entries(t.Context(), r, of.Filter, drafts)
		must.Succeed(t, err)
		if keys++; entries[len(entries)-1].Key() != p.Cells[0].Key {
			t.Errorf("%s: the plan says %s, the entry is %s", p.Cells[0].ID, p.Cells[0].Key, entries[len(entries)-1].Key())
		}
	}
	check.That(t, keys >= 5, "%d keys", keys)
}

// An interrupt ends a plan and an audit, which may have hundreds of cells, and leaves
// nothing to print.
func TestPlanIsInterrupted(t *testing.T) {
	cat, err := catalogue.Load("", catalogue.Names{Gates: gate.Promises()})
	must.Succeed(t, err)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	s := Setup{Catalogue: cat, Keys: signing.Keys{Home: t.TempDir()}}
	p, err := Explain(ctx, s, Selection{Recipe: cat.Recipes[0], Filter: matrix.Filter{}})
	check.That(t, errors.Is(err, context.Canceled) && p.Recipe == "", "%v, %v", p.Recipe, err)
	reports, err := Audit(ctx, s, cat.Recipes, false)
	check.That(t, errors.Is(err, context.Canceled) && reports == nil, "%v, %v", reports, err)
}
