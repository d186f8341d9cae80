package lock

import (
	"fmt"
	"os"
	"path/filepath"

	"builder/internal/base/decode"
	"builder/internal/base/diag"
	"builder/internal/base/regular"
)

// EntryFile is the name of an entry's file in the directory of its cell. The sha256 of
// the file is the key of the cell.
const EntryFile = "entry.json"

// Canonical returns the entry as JSON with fields in fixed order and sorted map keys,
// without floats, times and host paths.
func (e Entry) Canonical() []byte { return []byte(encoded(e)) }

// Key returns the sha256 of a base image with its Python packages. It is expensive to
// make, and cells share it.
func (i Image) Key() string { return sumOf([]byte(encoded(i))) }

// WriteEntry writes an entry atomically to the directory of its cell, which it creates
// if necessary.
func WriteEntry(dir string, e Entry) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	_, err := writeChanged(filepath.Join(dir, EntryFile), e.Canonical())
	return err
}

// ReadEntry reads the entry in the directory of a cell. If there is none, the error is
// [fs.ErrNotExist].
func ReadEntry(dir string) (Entry, error) {
	e, err := ReadEntryFile(filepath.Join(dir, EntryFile))
	if diag.CodeOf(err) == diag.Drift {
		err = diag.HintAll(err, "remove the file: the next run writes a new one")
	}
	return e, err
}

// maxEntry bounds the size of an entry file, in bytes. An entry with a thousand
// packages takes a tenth of it.
const maxEntry = 8 << 20

// ReadEntryFile is like [ReadEntry] for a file that the user names.
func ReadEntryFile(path string) (Entry, error) {
	data, err := regular.Read(path, maxEntry)
	if err != nil {
		return Entry{}, err
	}
	e, err := ParseEntry(data)
	if err != nil {
		return Entry{}, diag.Errorf(diag.Drift, "%s: reading the entry of a run: %w", path, err).
			WithHint("name an %s that `builder run` wrote", EntryFile)
	}
	return e, nil
}

// ParseEntry parses the output of [Entry.Canonical].
func ParseEntry(data []byte) (Entry, error) {
	var e Entry
	if err := decode.OpenJSON(data, &e); err != nil {
		return Entry{}, err
	}
	if e.Schema != EntrySchema {
		return Entry{}, fmt.Errorf("the schema is %d, and this builder reads %d", e.Schema, EntrySchema)
	}
	return e, nil
}
