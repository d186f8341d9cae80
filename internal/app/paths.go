package app

import (
	"fmt"
	"io"
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

// readBounded reads what may be a pipe, and refuses more than max bytes.
func readBounded(r io.Reader, name string, max int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, max+1))
	if err == nil && int64(len(data)) > max {
		err = fmt.Errorf("%s is larger than %d bytes", name, max)
	}
	return data, err
}
