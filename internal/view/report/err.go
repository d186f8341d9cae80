package report

import (
	"errors"

	"builder/internal/base/diag"
	"builder/internal/gates/verdict"
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
			err := verdict.Refusals(c.ID, c.Verdicts)
			if err == nil {
				err = diag.Errorf(diag.Gate, "%s: no gate checked it", c.ID)
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
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
