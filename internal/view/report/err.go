package report

import (
	"errors"

	"builder/internal/base/diag"
)

// Err returns the errors of every cell that did not pass, each with its class, or nil
// if all passed. These are the errors returned by the run. A cell that was not built
// and a run without cells are [diag.Unexpected].
func Err(run Run) error {
	if len(run.Cells) == 0 {
		return diag.Errorf(diag.Unexpected, "the run has no cells")
	}
	var errs []error
	for _, c := range run.Cells {
		switch StatusOf(c) {
		case Pass:
		case Errored:
			errs = append(errs, diag.Errorf(codeNamed(c.Error.Code), "%s: %s", c.ID, c.Error.Message).WithHint("%s", c.Error.Hint))
		case Skipped:
			errs = append(errs, diag.Errorf(diag.Unexpected, "%s: it was not built", c.ID).
				WithHint("its run was stopped or killed, or wrote no result: read the log of its job"))
		default:
			errs = append(errs, refusals(c)...)
		}
	}
	return errors.Join(errs...)
}

// refusals returns an error for each gate that refuses a cell.
func refusals(c Cell) (errs []error) {
	for _, v := range c.Verdicts {
		if v.Refuses() {
			errs = append(errs, diag.Refusal(c.ID, v.Gate, v.Status, v.Evidence, v.Remedy))
		}
	}
	if len(errs) == 0 {
		errs = append(errs, diag.Errorf(diag.Gate, "%s: no gate checked it", c.ID))
	}
	return errs
}

// codeNamed returns the class of an error by name. It returns [diag.Unexpected] for an
// unknown name and for the name of success.
func codeNamed(name string) diag.Code {
	for _, code := range diag.Codes() {
		if code.String() == name && code != diag.OK {
			return code
		}
	}
	return diag.Unexpected
}
