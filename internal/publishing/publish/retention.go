package publish

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"builder/internal/evidence/attest"
	"builder/internal/publishing/index"
)

// Retention selects the wheels of a channel to remove: those older than Age and not
// among the newest Keep of their kind. Zero disables a limit.
type Retention struct {
	Channel string
	Age     time.Duration
	Keep    int // per kind in the channel: a recipe with all axes except version

	// Cells are the ids or keys of cells to withdraw. If it is not empty, these are
	// removed whatever their channel and age, and no others.
	Cells []string
}

// A Decision states whether a published wheel is removed, and why.
type Decision struct {
	index.Record `json:"wheel"`
	Remove       bool   `json:"remove"`
	Because      string `json:"because"`
}

// Decide returns a decision for every wheel. Unless it is named, a wheel stays if it is in a higher
// channel too, if a tag set by others names it, or if a lock needs its key.
func (r Retention) Decide(all []index.Record, needed map[string]bool, now time.Time) []Decision {
	newest := slices.Clone(all)
	slices.SortStableFunc(newest, func(a, b index.Record) int { return b.Published.Compare(a.Published) })
	rank := map[string]int{}
	var decisions []Decision
	for _, record := range newest {
		if slices.Contains(record.Channels, r.Channel) {
			rank[kind(record)]++
		}
		because, remove := r.judge(record, rank[kind(record)], needed[record.Key], now)
		decisions = append(decisions, Decision{record, remove, because})
	}
	slices.SortStableFunc(decisions, func(a, b Decision) int { return strings.Compare(a.Cell, b.Cell) })
	return decisions
}

// judge decides about a wheel, the nth newest of its kind.
func (r Retention) judge(record index.Record, nth int, needed bool, now time.Time) (because string, remove bool) {
	age := now.Sub(record.Published)
	others := slices.DeleteFunc(slices.Clone(record.Channels), func(c string) bool {
		return c == r.Channel || r.Channel == string(attest.Stable) && c == string(attest.Candidate) // a promoted wheel is in both
	})
	switch {
	case slices.Contains(r.Cells, record.Cell) || slices.Contains(r.Cells, record.Key):
		if record.Yanked != "" {
			return "it was named; its yank ends with it: " + record.Yanked, true
		}
		return "it was named", true
	case len(r.Cells) > 0:
		return "it was not named", false
	case !slices.Contains(record.Channels, r.Channel):
		return "it is not in " + r.Channel, false
	case len(others) > 0:
		return "it is in " + strings.Join(others, ", ") + " too", false
	case len(record.Tags) > 0:
		return "it has the tag " + strings.Join(record.Tags, ", "), false
	case needed:
		return "a lock needs it", false
	case record.Published.IsZero():
		return "its age is unknown", false
	case r.Keep > 0 && nth <= r.Keep:
		return fmt.Sprintf("it is number %d of its kind, %d are kept", nth, r.Keep), false
	case r.Age > 0 && age < r.Age:
		return fmt.Sprintf("it is %d days old, kept for %d", days(age), days(r.Age)), false
	}
	return fmt.Sprintf("it is %d days old, and number %d of its kind", days(age), nth), true
}

func days(d time.Duration) int { return int(d / (24 * time.Hour)) }

// kind returns a name common to all releases of a wheel.
func kind(r index.Record) string {
	parts := []string{r.Recipe}
	for _, axis := range slices.Sorted(maps.Keys(r.Axes)) {
		if axis != "version" {
			parts = append(parts, axis+"="+r.Axes[axis])
		}
	}
	return cmp.Or(strings.Join(parts, " "), r.Project)
}
