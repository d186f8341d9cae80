package device

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/gates/verdict"
	"builder/internal/machine/nccltests"
)

// A Size is the speed of one library, or of two, at one size: medians of the rounds.
type Size struct {
	Collective string  `json:"collective"`
	Bytes      int64   `json:"bytes"`
	BusBW      float64 `json:"busbw"` // GB/s
	Other      float64 `json:"other,omitempty"`
	Ratio      float64 `json:"ratio,omitempty"`
}

// Measure measures a collective with the library, and in turn with the other one if there
// is one. Values that are wrong or were not checked are an error.
func (d *Setup) Measure(ctx context.Context, collective string) ([]Size, error) {
	if v, lacks := d.lacks(1); lacks {
		return nil, refusal(v)
	}
	ours, theirs, stopped := d.duel(ctx, collective, d.Rounds)
	if stopped != nil {
		return nil, refusal(*stopped)
	}
	for _, m := range slices.Concat(ours, theirs) {
		if problems := wrongValues(m.Report); len(problems) > 0 {
			return nil, diag.Errorf(diag.Gate, "%s: %s", collective, strings.Join(problems, "; "))
		}
	}
	if d.Against == "" {
		return single(collective, ours), nil
	}
	ratios, err := compare(ours, theirs)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", collective, err)
	}
	var sizes []Size
	for _, r := range ratios {
		sizes = append(sizes, Size{collective, r.bytes, r.ours, r.theirs, r.ratio})
	}
	return sizes, nil
}

// single returns the speed of one library.
func single(collective string, runs []nccltests.Measured) []Size {
	all := medians(runs)
	var sizes []Size
	for _, bytes := range slices.Sorted(maps.Keys(all)) {
		sizes = append(sizes, Size{Collective: collective, Bytes: bytes, BusBW: all[bytes]})
	}
	return sizes
}

func refusal(v verdict.Verdict) error {
	return diag.Errorf(diag.Gate, "%s", v.Evidence).WithHint("%s", v.Remedy)
}
