package lock

import (
	"errors"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
)

// ErrEdited means a lock whose sum does not match its pins: the file was edited by
// hand, or two locks were merged.
var ErrEdited = errors.New("the lock was edited by hand")

// signed is a lock with its sum, as in the file. The sum has its own line, so two
// branches with different pins conflict there. A textual merge of their pins would be a
// lock without a common resolution.
type signed struct {
	File
	Sum string `json:"sum"`
}

// sum returns the sha256 of the canonical JSON of a lock, with sorted pins. The layout
// of the file does not matter.
func (f File) sum() string { return regular.Sum([]byte(encoded(f.With(File{})))) }

// restore is the hint for a lock that was edited.
const restore = "restore the lock from version control, or resolve every name again with `builder lock RECIPE --update all`"

// edited compares the sum in the file with the sum of its pins. name is the path in
// error messages.
func (s signed) edited(name string) error {
	want := s.sum()
	if s.Sum == want {
		return nil
	}
	return diag.Errorf(diag.Drift, "%s: %w: the sum of its pins is %.12s…", name, ErrEdited, want).WithHint("%s", restore)
}

// writable rejects a lock that could not be read back, because a resolver may receive
// invalid answers. It also checks f itself, because data has no duplicate pins.
func writable(path string, f File, data []byte) error {
	_, err := Decode(path, data)
	if err == nil {
		err = f.check(path)
	}
	var errs []error
	for _, e := range diag.All(err) {
		errs = append(errs, diag.Errorf(diag.Unexpected, "writing the lock: %s", e.Error()).
			WithHint("a resolver returned an invalid pin; the lock is unchanged"))
	}
	return errors.Join(errs...)
}
