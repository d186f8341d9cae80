package app

import (
	"os"

	"builder/internal/base/diag"
)

// AbsentPath refuses to write over what is there.
func AbsentPath(to string) error {
	if to == "" {
		return diag.Errorf(diag.Usage, "--to is missing: where shall it be written?").WithHint("--to DIR names a place that does not exist yet")
	}
	if _, err := os.Lstat(to); err == nil {
		return diag.Errorf(diag.Usage, "--to: %s exists already", to).WithHint("name a place that does not exist, or remove it first")
	}
	return nil
}
