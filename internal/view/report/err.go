package report

import (
	"errors"

	"builder/internal/base/diag"
)

// Err returns what a run that ended like this one returned: the faults of every
// cell that did not pass, each of its class; nil if all passed. A cell that was
// not built is [diag.Unexpected], and so is a run without any.
func Err(run Run) error {
	if len(run.Cells) == 0 {
		return diag.Errorf(diag.Unexpected, "no run tells of a cell")
	}
	var faults []error
	for _, c := range run.Cells {
		switch StatusOf(c) {
		case Pass:
		case Errored:
			faults = append(faults, diag.Errorf(codeNamed(c.Error.Code), "%s: %s", c.ID, c.Error.Message).WithHint("%s", c.Error.Hint))
		case Skipped:
			faults = append(faults, diag.Errorf(diag.Unexpected, "%s: it was not built", c.ID).
				WithHint("its run was stopped or killed, or left nothing behind: see the log of its job"))
		default:
			faults = append(faults, refusals(c)...)
		}
	}
	return errors.Join(faults...)
}

// refusals are the gates that keep a cell back.
func refusals(c Cell) (faults []error) {
	for _, v := range c.Verdicts {
		if v.Refuses() {
			faults = append(faults, diag.Refusal(c.ID, v.Gate, v.Status, v.Evidence, v.Remedy))
		}
	}
	if len(faults) == 0 {
		faults = append(faults, diag.Errorf(diag.Gate, "%s: no gate looked at it", c.ID))
	}
	return faults
}

// codeNamed is the class of an error; a word that names none, or no fault, is
// [diag.Unexpected].
func codeNamed(name string) diag.Code {
	for _, code := range diag.Codes() {
		if code.String() == name && code != diag.OK {
			return code
		}
	}
	return diag.Unexpected
}
