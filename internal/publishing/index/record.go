package index

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"time"
)

// A Record describes a published wheel or archive.
type Record struct {
	Schema         int               `json:"schema"`
	Project        string            `json:"project"` // normalized (PEP 503)
	Version        string            `json:"version"`
	Filename       string            `json:"filename"`
	SHA256         string            `json:"sha256"`
	Size           int64             `json:"size"` // bytes
	RequiresPython string            `json:"requires_python,omitempty"`
	Metadata       string            `json:"metadata"` // sha256 of the .metadata file; "" for an archive
	Cell           string            `json:"cell"`
	Key            string            `json:"key"`
	Recipe         string            `json:"recipe"`
	Axes           map[string]string `json:"axes"`
	Beside         []File            `json:"beside"`             // files of the same cell, including the wheel's statements
	Gates          map[string]string `json:"gates"`              // gate to status
	Evidence       map[string]string `json:"evidence,omitempty"` // gate to evidence
	Channels       []string          `json:"channels"`
	Signers        []string          `json:"signers,omitempty"` // ids of the keys that signed the statements
	Published      time.Time         `json:"published"`
	Yanked         string            `json:"yanked,omitempty"` // reason not to use it (PEP 592)
}

// sameFile reports whether two records describe the same file. A name identifies a file
// within a project.
func (r Record) sameFile(other Record) bool {
	return r.Project == other.Project && r.Filename == other.Filename
}

// A File is a file made beside a wheel. Path is relative to the project's folder.
type File struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// schema is the version of the record format.
const schema = 1

// IsWheel reports whether pip can install the file. Other files are archives, which a
// Python index does not list.
func (r Record) IsWheel() bool { return filepath.Ext(r.Filename) == ".whl" }

var (
	project = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	base    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+~-]*$`)
	hexKey  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	ends    = regexp.MustCompile(`\.(whl|tar|tar\.(gz|xz|zst)|tgz|txz)$`)
)

// malformed reports whether a name, the key or the digest is not what it should be. They
// become paths.
func (r Record) malformed() bool {
	return !project.MatchString(r.Project) || !base.MatchString(r.Filename) || !hexKey.MatchString(r.SHA256) || !hexKey.MatchString(r.Key)
}

// parse reads a record. It refuses a record with invalid names, and with a key other
// than the given one.
func parse(data []byte, key string) (Record, error) {
	var r Record
	err := json.Unmarshal(data, &r)
	switch {
	case err != nil:
	case r.Schema != schema:
		err = fmt.Errorf("schema %d, this builder reads %d", r.Schema, schema)
	case r.malformed():
		err = errors.New("a name, key or digest in it is malformed")
	case key != "" && r.Key != key:
		err = fmt.Errorf("it has the key %s", r.Key)
	}
	if err != nil {
		return Record{}, fmt.Errorf("reading a record of the index: %w", err)
	}
	return r, nil
}
