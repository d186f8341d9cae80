// Package verdict defines the answer of a gate and its meaning for an artifact: which
// answers keep the artifact back, how waivers apply, and which of two answers counts.
// Package gate runs the gates.
package verdict

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"builder/internal/base/diag"
	"builder/internal/plan/recipe"
)

// Status is the result of a gate. The zero value is [NotMeasured].
type Status int

// The four statuses.
const (
	NotMeasured Status = iota // the gate could not run; the evidence gives the reason
	Pass
	Fail
	Waived // a known failure with a reason, an issue and an expiry date
)

var statusNames = []string{"not-measured", "pass", "fail", "waived"}

// String returns the name of the status in run.json.
func (s Status) String() string {
	if s < 0 || int(s) >= len(statusNames) {
		return statusNames[NotMeasured]
	}
	return statusNames[s]
}

// MarshalText returns the name of the status.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses the output of MarshalText. Any other text is an error.
func (s *Status) UnmarshalText(text []byte) error {
	i := slices.Index(statusNames, string(text))
	if i < 0 {
		return fmt.Errorf("unknown verdict %q", text)
	}
	*s = Status(i)
	return nil
}

// A Verdict is the answer of one gate about one artifact. Evidence describes the
// observations. Remedy names the next step for the user; it is empty for a pass. Waiver
// is the recipe's waiver for this gate, if any.
type Verdict struct {
	Gate     string         `json:"gate"`
	Status   Status         `json:"status"`
	Evidence string         `json:"evidence"`
	Remedy   string         `json:"remedy,omitempty"`
	Waiver   *recipe.Waiver `json:"waiver,omitempty"`
	Seconds  float64        `json:"seconds"`
}

// Passed returns the verdict of a gate with the promised result.
func Passed(format string, args ...any) Verdict {
	return Verdict{Status: Pass, Evidence: fmt.Sprintf(format, args...)}
}

// Failed returns the verdict of a gate with another result.
func Failed(format string, args ...any) Verdict {
	return Verdict{Status: Fail, Evidence: fmt.Sprintf(format, args...)}
}

// Unmeasured returns the verdict of a gate that could not run.
func Unmeasured(format string, args ...any) Verdict {
	return Verdict{Status: NotMeasured, Evidence: fmt.Sprintf(format, args...)}
}

// Judge makes a verdict from problems and observations. With problems the gate fails;
// without observations it has not measured.
func Judge(problems, seen []string) Verdict {
	switch {
	case len(problems) > 0:
		return Failed("%s", strings.Join(few(problems), "; "))
	case len(seen) == 0:
		return Unmeasured("nothing to check")
	}
	return Passed("%s", strings.Join(seen, "; "))
}

// Weigh makes a verdict like Judge. blind says what was not measured: it counts less
// than a problem, and more than all observations.
func Weigh(problems, blind, seen []string) Verdict {
	v := Judge(slices.Concat(problems, blind), seen)
	if len(problems) == 0 && len(blind) > 0 {
		v.Status = NotMeasured
	}
	return v
}

// Bounds of the number of problems in the evidence and of the bytes of each. A file may
// have a problem in every line, and all of them go to a terminal, a log and a report.
const (
	maxFaults = 20
	maxFault  = 1000
)

// few shortens a list of problems.
func few(problems []string) []string {
	shown := slices.Clone(problems[:min(len(problems), maxFaults)])
	for i, problem := range shown {
		if len(problem) > maxFault {
			shown[i] = strings.ToValidUTF8(problem[:maxFault], "") + "…"
		}
	}
	if more := len(problems) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	return shown
}

// Because returns the verdict with its own remedy in place of the gate's.
func (v Verdict) Because(remedy string, args ...any) Verdict {
	v.Remedy = fmt.Sprintf(remedy, args...)
	return v
}

// Refuses reports whether the verdict keeps the artifact back.
func (v Verdict) Refuses() bool { return v.Status != Pass && v.Status != Waived }

// Refusals returns an error for each verdict that refuses, or nil. subject names the
// artifact; it is empty if the caller names it.
func Refusals(subject string, verdicts []Verdict) error {
	var errs []error
	for _, v := range verdicts {
		if v.Refuses() {
			err := diag.Errorf(diag.Gate, "gate %s: %s: %s", v.Gate, v.Status, v.Evidence).WithHint("%s", v.Remedy)
			err.Pos.File = subject
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Others returns the verdicts of gates without a verdict in answers.
func Others(verdicts, answers []Verdict) []Verdict {
	return slices.DeleteFunc(slices.Clone(verdicts), func(v Verdict) bool {
		return slices.ContainsFunc(answers, func(a Verdict) bool { return a.Gate == v.Gate })
	})
}

// unexpected is the first part of the evidence if a gate passes although the recipe
// expects a failure. Signed documents hold this text, so it must not change.
const unexpected = "the gate passes, and its waiver expects a failure: "

// Waive applies the recipe's waivers to a verdict as of now. A waived failure does not
// keep the artifact back until the end of the waiver's last day. A pass despite a
// waiver becomes a failure, because the waiver would hide the next failure. NotMeasured
// is never waived. Waive first removes the effect of an earlier call.
func (v Verdict) Waive(waivers []recipe.Waiver, now time.Time) Verdict {
	i := slices.IndexFunc(waivers, func(w recipe.Waiver) bool { return w.Gate == v.Gate })
	if saw, ok := strings.CutPrefix(v.Evidence, unexpected); ok && v.Status == Fail { // result of an earlier call
		v.Status, v.Evidence, v.Remedy, v.Waiver = Pass, saw, "", nil
	}
	if i < 0 {
		if v.Status == Waived { // waived earlier, or by another host
			v.Status, v.Waiver, v.Remedy = Fail, nil, "the recipe no longer has a waiver for it; "+v.Remedy
		}
		return v
	}
	w := waivers[i]
	v.Waiver = &w
	switch {
	case v.Status == Pass:
		v.Status = Fail
		v.Evidence = unexpected + v.Evidence
		v.Remedy = "the failure is corrected: remove the waiver from the recipe's expect"
	case v.Status == NotMeasured:
	case w.Expired(now):
		v.Status = Fail
		v.Remedy = fmt.Sprintf("the waiver expired on %s: see %s; %s", w.Until, w.Issue, v.Remedy)
	default:
		v.Status = Waived
	}
	return v
}

// WaiveAll applies the recipe's waivers to all verdicts as of now.
func WaiveAll(verdicts []Verdict, waivers []recipe.Waiver, now time.Time) []Verdict {
	judged := make([]Verdict, len(verdicts))
	for i, v := range verdicts {
		judged[i] = v.Waive(waivers, now)
	}
	return judged
}
