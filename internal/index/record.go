package index

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"builder/internal/artifact"
)

// A Record is what is known of a published wheel.
type Record struct {
	Schema         int               `json:"schema"`
	Project        string            `json:"project"` // normalised (PEP 503)
	Version        string            `json:"version"`
	Filename       string            `json:"filename"`
	SHA256         string            `json:"sha256"`
	Size           int64             `json:"size"` // bytes
	RequiresPython string            `json:"requires_python,omitempty"`
	Metadata       string            `json:"metadata"` // sha256 of the .metadata file; "" of an archive
	Cell           string            `json:"cell"`
	Key            string            `json:"key"`
	Recipe         string            `json:"recipe"`
	Axes           map[string]string `json:"axes"`
	Beside         []File            `json:"beside"`             // files of the same cell, the wheel's folder of statements included
	Gates          map[string]string `json:"gates"`              // gate to status
	Evidence       map[string]string `json:"evidence,omitempty"` // gate to what it saw
	Channels       []string          `json:"channels"`
	Published      time.Time         `json:"published"`
	Yanked         string            `json:"yanked,omitempty"` // why nobody should take it any more (PEP 592)
	Tags           []string          `json:"tags,omitempty"`   // in a registry: those that others gave it
}

// sameFile reports whether two records are of one file: a name stands for one.
func (r Record) sameFile(other Record) bool {
	return r.Project == other.Project && r.Filename == other.Filename
}

// A File is one that was made beside a wheel, by its path below the project's
// folder.
type File struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// schema is the number of the format of records.
const schema = 1

// IsWheel reports whether pip can install it; anything else is an archive, of which
// a Python index knows nothing.
func (r Record) IsWheel() bool { return filepath.Ext(r.Filename) == ".whl" }

var (
	project = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	base    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+~-]*$`)
	hexKey  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	ends    = regexp.MustCompile(`\.(whl|tar|tar\.(gz|xz|zst)|tgz|txz)$`)
)

// parse reads a record, of a key where one is given, and refuses one whose names
// are not those of files here.
func parse(data []byte, key string) (Record, error) {
	var r Record
	err := json.Unmarshal(data, &r)
	switch {
	case err != nil:
	case r.Schema != schema:
		err = fmt.Errorf("schema %d, this builder reads %d", r.Schema, schema)
	case !project.MatchString(r.Project) || !base.MatchString(r.Filename) || !hexKey.MatchString(r.SHA256) || !hexKey.MatchString(r.Key):
		err = errors.New("its names are not those of a published wheel")
	case key != "" && r.Key != key:
		err = fmt.Errorf("it is of the key %s", r.Key)
	}
	if err != nil {
		return Record{}, fmt.Errorf("reading a record of the index: %w", err)
	}
	return r, nil
}

// take copies the files of a record, from where they are found.
func (r Record) take(ctx context.Context, dir string, find func(File) (path string, err error)) (artifact.Artifact, error) {
	wheel := artifact.Artifact{Name: r.Filename, Path: filepath.Join(dir, r.Filename), SHA256: r.SHA256, Size: r.Size, Key: r.Key}
	for _, f := range append(slices.Clone(r.Beside), File{r.Filename, r.SHA256, r.Size}) {
		if !filepath.IsLocal(f.Path) {
			return wheel, fmt.Errorf("taking %s: %q leads out of its folder", r.Filename, f.Path)
		}
		path, err := find(f)
		if err != nil {
			return wheel, err
		}
		if err := put(ctx, filepath.Join(dir, f.Path), artifact.Artifact{Name: f.Path, Path: path, SHA256: f.SHA256, Size: f.Size}); err != nil {
			return wheel, fmt.Errorf("taking %s: %w", r.Filename, err)
		}
	}
	return wheel, nil
}
