// Package verdict is the answer of a gate, and what answers mean for an artifact:
// which of them keep it back, what a waiver makes of a failure, which of two
// answers counts. It asks nothing itself; that is the package gate's.
package verdict

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/machine/curve"
	"builder/internal/plan/recipe"
)

// Status is what a gate found. The zero value is [NotMeasured].
type Status int

// The four answers.
const (
	NotMeasured Status = iota // the gate could not look; the evidence says why
	Pass
	Fail
	Waived // a known failure with reason, issue and expiry date
)

var statusNames = []string{"not-measured", "pass", "fail", "waived"}

// String returns the status as it stands in run.json.
func (s Status) String() string {
	if s < 0 || int(s) >= len(statusNames) {
		return statusNames[NotMeasured]
	}
	return statusNames[s]
}

// MarshalText makes a status a JSON string.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote; anything else is an error.
func (s *Status) UnmarshalText(text []byte) error {
	i := slices.Index(statusNames, string(text))
	if i < 0 {
		return fmt.Errorf("unknown verdict %q", text)
	}
	*s = Status(i)
	return nil
}

// A Verdict is the answer of one gate about one artifact. Evidence is what was
// seen; Remedy is what a person can do and is empty for a pass. Waiver is what
// the recipe says about a failure of this gate, where it says something.
// Measured are the figures of a gate that measures.
type Verdict struct {
	Gate     string         `json:"gate"`
	Status   Status         `json:"status"`
	Evidence string         `json:"evidence"`
	Measured curve.Curves   `json:"measured,omitempty"`
	Remedy   string         `json:"remedy,omitempty"`
	Waiver   *recipe.Waiver `json:"waiver,omitempty"`
	Seconds  float64        `json:"seconds"`
}

// Passed is the verdict of a gate that saw what was promised.
func Passed(format string, args ...any) Verdict {
	return Verdict{Status: Pass, Evidence: fmt.Sprintf(format, args...)}
}

// Failed is the verdict of a gate that saw something else.
func Failed(format string, args ...any) Verdict {
	return Verdict{Status: Fail, Evidence: fmt.Sprintf(format, args...)}
}

// Unmeasured is the verdict of a gate that could not look.
func Unmeasured(format string, args ...any) Verdict {
	return Verdict{Status: NotMeasured, Evidence: fmt.Sprintf(format, args...)}
}

// Judge turns the faults found and what was looked at into a verdict: with
// faults it fails, with nothing looked at it has not measured.
func Judge(faults, seen []string) Verdict {
	switch {
	case len(faults) > 0:
		return Failed("%s", strings.Join(few(faults), "; "))
	case len(seen) == 0:
		return Unmeasured("nothing to look at")
	}
	return Passed("%s", strings.Join(seen, "; "))
}

// How many faults are told, and how many bytes of each: what is judged may have one
// for every line of a file, and each goes to a terminal, a log and a report.
const (
	maxFaults = 20
	maxFault  = 1000
)

// few shortens what is told.
func few(faults []string) []string {
	var shown []string
	for i, fault := range faults {
		if i == maxFaults {
			return append(shown, fmt.Sprintf("and %d more", len(faults)-maxFaults))
		}
		if len(fault) > maxFault {
			fault = strings.ToValidUTF8(fault[:maxFault], "") + "…"
		}
		shown = append(shown, fault)
	}
	return shown
}

// Because returns the verdict with a remedy of its own, in the place of the gate's.
func (v Verdict) Because(remedy string, args ...any) Verdict {
	v.Remedy = fmt.Sprintf(remedy, args...)
	return v
}

// With returns the verdict and what was measured for it.
func (v Verdict) With(measured curve.Curves) Verdict {
	v.Measured = measured
	return v
}

// Refuses reports whether the verdict keeps the artifact back.
func (v Verdict) Refuses() bool { return v.Status != Pass && v.Status != Waived }

// Refusals is the error for all verdicts that keep an artifact back, nil where none does.
// subject names the artifact, and is empty where the caller says it.
func Refusals(subject string, verdicts []Verdict) error {
	var errs []error
	for _, v := range verdicts {
		if v.Refuses() {
			errs = append(errs, diag.Refusal(subject, v.Gate, v.Status.String(), v.Evidence, v.Remedy))
		}
	}
	return errors.Join(errs...)
}

// AllPass reports whether no verdict refuses, and that there is at least one.
func AllPass(verdicts []Verdict) bool {
	return len(verdicts) > 0 && !slices.ContainsFunc(verdicts, Verdict.Refuses)
}
