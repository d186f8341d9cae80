package recipe

import (
	"fmt"
	"time"

	"builder/internal/base/diag"
)

// A Waiver accepts an artifact although one gate fails. It states a reason and an
// expiry date.
type Waiver struct {
	Gate    string `yaml:"gate" json:"gate" jsonschema:"description=name of the gate"`
	Because string `yaml:"because" json:"because" jsonschema:"description=why the failure is no reason to keep the artifact back"`
	Issue   string `yaml:"issue" json:"issue" jsonschema:"format=uri,description=where the failure is being mended"`
	Until   string `yaml:"until" json:"until" jsonschema:"format=date,description=last day on which the waiver holds (2026-12-31)"`
}

// Expired reports whether now, in UTC, is after the waiver's last day. An invalid day
// and the zero time count as expired.
func (w Waiver) Expired(now time.Time) bool {
	last, err := time.Parse(time.DateOnly, w.Until)
	return err != nil || now.IsZero() || !now.UTC().Before(last.AddDate(0, 0, 1))
}

// problem returns the first problem of a waiver as written, or "".
func (w Waiver) problem() string {
	if w.Gate == "" || w.Because == "" || w.Issue == "" || w.Until == "" {
		return "a waiver needs gate, because, issue and until: they explain why the artifact passed"
	}
	if _, err := time.Parse(time.DateOnly, w.Until); err != nil {
		return fmt.Sprintf("until %q is not a date such as 2026-12-31", w.Until)
	}
	return ""
}

// Waivers lists the waivers of the recipe and of all variants.
func (r *Recipe) Waivers() []Waiver {
	var all []Waiver
	for _, s := range r.settings() {
		all = append(all, s.Expect.Waivers...)
	}
	return all
}

// validateWaivers requires every waiver to be complete and at most one per gate in a
// list. With two, it would be undefined which one holds.
func (r *Recipe) validateWaivers() []error {
	var errs []error
	for _, s := range r.settings() {
		for j, w := range s.Expect.Waivers {
			problem := w.problem()
			if problem == "" && named(s.Expect.Waivers, j) {
				problem = "gate " + w.Gate + " is waived twice"
			}
			if problem != "" {
				errs = append(errs, diag.At(r.index.At("%sexpect.waivers[%d]", s.at, j), "%s", problem))
			}
		}
	}
	return errs
}
