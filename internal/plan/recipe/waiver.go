package recipe

import "time"

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

// Waivers lists the waivers of the recipe and of all variants.
func (r *Recipe) Waivers() []Waiver {
	return each(r, func(s Settings) []Waiver { return s.Expect.Waivers })
}
