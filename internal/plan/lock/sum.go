package lock

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"builder/internal/base/diag"
)

// ErrEdited is the fault of a lock whose sum is not that of its pins: somebody
// edited it by hand, or joined two of them.
var ErrEdited = errors.New("the lock was edited by hand")

// signed is a lock as its file has it. The sum stands in a line of its own, so
// that two branches that both moved pins conflict there: what neither of them
// resolved is no lock.
type signed struct {
	File
	Sum string `json:"sum"`
}

// sum is the sha256 of the canonical JSON of a lock: pins in order, sorted keys.
// How the file is laid out has no part in it.
func (f File) sum() string {
	data, err := json.Marshal(f.With(File{}))
	if err != nil {
		panic(fmt.Sprintf("lock: a lock is not JSON: %v", err)) // strings and integers only
	}
	return sumOf(data)
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// restore is what mends a lock that was edited.
const restore = "restore the lock from version control, or resolve every name anew with `builder lock RECIPE --update`"

// edited compares the sum in the file with that of its pins; name is what
// messages call the file.
func (s signed) edited(name string) error {
	var fault *diag.Error
	switch want := s.sum(); s.Sum {
	case want:
		return nil
	case "":
		fault = diag.Errorf(diag.Drift, "%s: %w, or written by a builder without sums: it has none", name, ErrEdited)
	default:
		fault = diag.Errorf(diag.Drift, "%s: %w: its sum is not that of its pins, %.12s…", name, ErrEdited, want)
	}
	return fault.WithHint("%s", restore)
}

// writable refuses what nobody could read back: a resolver may be answered with
// nonsense. Pins that answer one question twice are gone from data.
func writable(path string, f File, data []byte) error {
	_, err := Decode(path, data)
	if err == nil {
		err = f.check(path)
	}
	var faults []error
	for _, fault := range diag.All(err) {
		faults = append(faults, diag.Errorf(diag.Unexpected, "writing the lock: %s", fault.Error()).
			WithHint("a name was resolved to something that is no pin; nothing was written"))
	}
	return errors.Join(faults...)
}
