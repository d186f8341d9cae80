package index

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"builder/internal/files/artifact"
	"builder/internal/input/store"
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
	Published      time.Time         `json:"published"`
	Yanked         string            `json:"yanked,omitempty"` // reason not to use it (PEP 592)
	Tags           []string          `json:"tags,omitempty"`   // in a registry: tags set by others
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

// parse reads a record. It refuses a record with invalid names, and with a key other
// than the given one.
func parse(data []byte, key string) (Record, error) {
	var r Record
	err := json.Unmarshal(data, &r)
	switch {
	case err != nil:
	case r.Schema != schema:
		err = fmt.Errorf("schema %d, this builder reads %d", r.Schema, schema)
	case !project.MatchString(r.Project) || !base.MatchString(r.Filename) || !hexKey.MatchString(r.SHA256) || !hexKey.MatchString(r.Key):
		err = errors.New("a name, key or digest in it is malformed")
	case key != "" && r.Key != key:
		err = fmt.Errorf("it has the key %s", r.Key)
	}
	if err != nil {
		return Record{}, fmt.Errorf("reading a record of the index: %w", err)
	}
	return r, nil
}

// A Vet decides which files to take from a source. offered holds the artifact first,
// then the files made with it. said holds the statements about the artifact, already
// copied to this host. It returns the offered files with the sizes they may have, or an
// error if none may be taken.
type Vet func(offered, said []artifact.Artifact) ([]artifact.Artifact, error)

// Limits of the statements taken before a vet runs.
const (
	maxStatements = 256
	maxStatement  = 32 << 20  // bytes
	maxSaid       = 128 << 20 // bytes of all statements
)

// take copies the files of a record: first the statements about the wheel, then the
// files admitted by vet. where returns the place of a file, and bring copies a file to
// this host.
func (r Record) take(ctx context.Context, dir string, vet Vet, where func(File) store.Place, bring func(artifact.Artifact) (path string, err error)) (artifact.Artifact, error) {
	wheel := artifact.Artifact{Name: r.Filename, Path: filepath.Join(dir, r.Filename), SHA256: r.SHA256, Size: r.Size, Key: r.Key}
	offered, said := []artifact.Artifact{wheel}, []artifact.Artifact(nil)
	for _, f := range r.Beside {
		if !filepath.IsLocal(f.Path) {
			return wheel, fmt.Errorf("taking %s: %q is outside its folder", r.Filename, f.Path)
		}
		a := artifact.Artifact{Name: f.Path, Path: filepath.Join(dir, f.Path), SHA256: f.SHA256, Size: f.Size, Key: r.Key}
		if strings.HasPrefix(f.Path, r.Filename+".") && path.Dir(f.Path) != "." {
			a.Name = path.Base(f.Path)
			said = append(said, a)
		} else {
			offered = append(offered, a)
		}
	}
	if err := takeSaid(ctx, said, func(a artifact.Artifact) store.Place { return where(below(dir, a)) }); err != nil {
		return wheel, fmt.Errorf("taking %s: %w", r.Filename, err)
	}
	admitted, err := vet(offered, said)
	if err != nil {
		return wheel, err
	}
	for _, a := range admitted {
		from := a
		if from.Path, err = bring(a); err != nil {
			return wheel, err
		}
		if err := put(ctx, a.Path, from); err != nil {
			return wheel, fmt.Errorf("taking %s: %w", r.Filename, err)
		}
	}
	return wheel, nil
}

// below returns an artifact in dir as a file of the index.
func below(dir string, a artifact.Artifact) File {
	rel, _ := filepath.Rel(dir, a.Path) // cannot fail: the path was joined to dir
	return File{filepath.ToSlash(rel), a.SHA256, a.Size}
}

// takeSaid copies the statements about an artifact. Their sizes are not verified yet,
// so they must be small, and they bypass the store.
func takeSaid(ctx context.Context, said []artifact.Artifact, where func(artifact.Artifact) store.Place) error {
	left := int64(maxSaid)
	if len(said) > maxStatements {
		return fmt.Errorf("the source lists %d statements, the limit is %d", len(said), maxStatements)
	}
	for _, a := range said {
		if left -= a.Size; a.Size < 0 || a.Size > maxStatement || left < 0 {
			return fmt.Errorf("%s: the source lists %d bytes, the limit is %d for a statement and %d for all", a.Name, a.Size, maxStatement, maxSaid)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		data, err := store.Small(ctx, where(a), a.Size)
		if err != nil {
			return err
		}
		if sum := hexSum(data); sum != a.SHA256 {
			return fmt.Errorf("%s %w: it has sha256 %s, the index lists %s", a.Name, ErrChanged, sum, a.SHA256)
		}
		if err := putBytes(a.Path, data); err != nil {
			return err
		}
	}
	return nil
}
