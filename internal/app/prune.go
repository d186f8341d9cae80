package app

import (
	"context"
	"time"

	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
	"builder/internal/publishing/index"
	"builder/internal/publishing/publish"
)

// A PruneReport lists the decision on each wheel and its reason.
type PruneReport struct {
	Schema int                `json:"schema"`
	At     string             `json:"at"`
	DryRun bool               `json:"dry_run"`
	Wheels []publish.Decision `json:"wheels"`
}

// Prune decides which wheels a place may remove, and removes them unless dry is set.
func Prune(ctx context.Context, s *Session, at publish.Catalogue, rule publish.Retention, dry bool) (PruneReport, error) {
	all, err := at.List(ctx)
	if err != nil {
		return PruneReport{}, err
	}
	for _, name := range rule.Cells {
		if _, err := publish.FindCell(ctx, at, name); err != nil {
			return PruneReport{}, err
		}
	}
	var needed map[string]bool
	if len(rule.Cells) == 0 { // a named cell goes whoever needs it
		if needed, err = s.lockedKeys(ctx, all); err != nil {
			return PruneReport{}, err
		}
	}
	report := PruneReport{Schema: 1, At: at.String(), DryRun: dry, Wheels: rule.Decide(all, needed, time.Now())}
	if dry {
		return report, nil
	}
	var keys []string
	for _, d := range report.Wheels {
		if d.Remove {
			keys = append(keys, d.Key)
		}
	}
	return report, at.Withdraw(ctx, keys...)
}

// lockedKeys returns the keys of published cells required by the local locks. It skips
// cells of unknown recipes. An unreadable lock is an error.
func (s *Session) lockedKeys(ctx context.Context, all []index.Record) (map[string]bool, error) {
	for _, r := range s.Catalogue.Recipes {
		if _, err := s.Catalogue.Locks(s.Home).Read(r.Name); err != nil {
			return nil, err
		}
	}
	asm := s.Assembler()
	needed := map[string]bool{}
	for _, r := range all {
		made, err := asm.Input(ctx, recipe.Input{Recipe: r.Recipe, Axes: matrix.Filter(r.Axes)})
		if err != nil {
			continue
		}
		for _, e := range made {
			needed[e.Key()] = true
		}
	}
	return needed, nil
}
