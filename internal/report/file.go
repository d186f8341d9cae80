package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Write replaces the file at path by run, as a whole or not at all.
func Write(path string, run Run) error {
	content, err := encode(run)
	if err == nil {
		err = Replace(path, content)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// Read reads a run back. A file of another schema is an error: its numbers
// could mean something else.
func Read(path string) (Run, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return Run{}, fmt.Errorf("reading run: %w", err)
	}
	var run Run
	if err := json.Unmarshal(content, &run); err != nil {
		return Run{}, fmt.Errorf("reading %s: %w", path, err)
	}
	if run.Schema != Schema {
		return Run{}, fmt.Errorf("reading %s: schema %d, want %d", path, run.Schema, Schema)
	}
	// An artifact carries the key of its cell, which the file states once.
	for _, cell := range run.Cells {
		for i := range cell.Artifacts {
			cell.Artifacts[i].Key = cell.Key
		}
	}
	return run, nil
}

func encode(run Run) ([]byte, error) {
	run.Schema = Schema
	run.Started, run.Finished = stamp(run.Started), stamp(run.Finished)
	run.Cells = list(run.Cells)
	for i, cell := range run.Cells {
		run.Cells[i] = settled(cell)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // evidence is full of < and >
	encoder.SetIndent("", "  ")
	err := encoder.Encode(run)
	return b.Bytes(), err
}

// stamp is a time as it is written: RFC 3339 in UTC, to the millisecond.
func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// Replace replaces the file at path by content, as a whole or not at all: it
// writes a file beside it and renames that. What a kill leaves behind is a hidden
// file with another name, which nobody reads.
func Replace(path string, content []byte) error {
	dir, name := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	temp, err := os.CreateTemp(dir, "."+name+".*.tmp")
	if err != nil {
		return err
	}
	err = errors.Join(fill(temp, content), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return syncDir(dir)
}

// fill makes the content durable before the file gets its name.
func fill(f *os.File, content []byte) error {
	if _, err := f.Write(content); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	return f.Sync()
}

// syncDir makes a rename in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
