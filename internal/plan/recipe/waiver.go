package recipe

import (
	"fmt"
	"time"

	"builder/internal/base/diag"
)

// A Waiver lets an artifact pass although one gate refuses it, for a reason that
// somebody wrote down and until a day on which somebody looks again.
type Waiver struct {
	Gate    string `yaml:"gate" json:"gate" jsonschema:"description=name of the gate"`
	Because string `yaml:"because" json:"because" jsonschema:"description=why the failure is no reason to keep the artifact back"`
	Issue   string `yaml:"issue" json:"issue" jsonschema:"format=uri,description=where the failure is being mended"`
	Until   string `yaml:"until" json:"until" jsonschema:"format=date,description=last day on which the waiver holds (2026-12-31)"`
}

// Expired reports whether now, in UTC, lies behind the waiver's last day. A day
// that is none, and a time that nobody set, count as expired.
func (w Waiver) Expired(now time.Time) bool {
	last, err := time.Parse(time.DateOnly, w.Until)
	return err != nil || now.IsZero() || !now.UTC().Before(last.AddDate(0, 0, 1))
}

// fault says what is wrong with a waiver as written, or nothing.
func (w Waiver) fault() string {
	if w.Gate == "" || w.Because == "" || w.Issue == "" || w.Until == "" {
		return "a waiver needs gate, because, issue and until: it is read by those who wonder why the artifact passed"
	}
	if _, err := time.Parse(time.DateOnly, w.Until); err != nil {
		return fmt.Sprintf("until %q is not a date such as 2026-12-31", w.Until)
	}
	return ""
}

// Waivers lists those of the recipe and of all variants.
func (r *Recipe) Waivers() []Waiver {
	var all []Waiver
	for _, s := range r.settings() {
		all = append(all, s.Expect.Waivers...)
	}
	return all
}

// validateWaivers wants every waiver to be complete; of two for one gate nobody
// could say which holds.
func (r *Recipe) validateWaivers() []error {
	var faults []error
	for _, s := range r.settings() {
		seen := map[string]bool{}
		for j, w := range s.Expect.Waivers {
			fault := w.fault()
			if fault == "" && seen[w.Gate] {
				fault = "gate " + w.Gate + " is waived twice"
			}
			if seen[w.Gate] = true; fault != "" {
				faults = append(faults, diag.At(r.index.At("%sexpect.waivers[%d]", s.at, j), "%s", fault))
			}
		}
	}
	return faults
}
