// Package index keeps published wheels in a directory that any web server, or any
// tool that copies directories, makes an index of Python packages of: pages by PEP
// 503 and PEP 691, metadata by PEP 658, hashes everywhere.
//
//	simple/<project>/index.html, index.json     what pip and uv read
//	files/<project>/<wheel>                     the wheel, its .metadata, what was
//	                                            made beside it and what was said
//	files/<project>/<archive>                   the same of an archive, which has no
//	                                            metadata and no place in simple/
//	files/<project>/<wheel>.record.json         what is known of it here
//	keys/<key>.json                             the wheel of a cell
//	index.html, index.json                      for people and for builder
//
// Files come before the pages that name them, and each is seen whole or not at
// all, so that a reader never meets half a publication. Names in the directory are
// checked before they are used: whoever can write it is not trusted with more.
package index

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"builder/internal/artifact"
	"builder/internal/diag"
	"builder/internal/store"
)

// The folders of an index, and the ends of names in them.
const (
	simpleDir = "simple"
	filesDir  = "files"
	keysDir   = "keys"
	metadata  = ".metadata"
	recordEnd = ".record.json"
	listFile  = "index.json"
)

// An Index is a directory.
type Index struct{ dir string }

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

// A Publication is what [Index.Add] takes: a record without what the index finds
// out itself, the wheel with its METADATA or an archive, and the files beside it by
// their path below the project's folder.
type Publication struct {
	Record   Record
	Wheel    artifact.Artifact
	Metadata []byte
	Beside   map[string]artifact.Artifact
}

// Open returns the index in dir. Reading makes nothing; what is missing is made by
// the first publication.
func Open(dir string) *Index { return &Index{dir} }

// URL returns the address that pip and uv take as --index-url.
func (x *Index) URL() string { return "file://" + filepath.Join(x.dir, simpleDir) + "/" }

// Where returns where a record is to be had: of a wheel the address of the index,
// of an archive that of the file.
func (x *Index) Where(r Record) string {
	if r.IsWheel() {
		return x.URL()
	}
	return "file://" + filepath.Join(x.dir, filesDir, r.Project, r.Filename)
}

// lock holds other publishers out.
func (x *Index) lock(ctx context.Context) (free func(), err error) {
	if err := os.MkdirAll(x.dir, 0o755); err != nil {
		return nil, failed(err, "opening the index")
	}
	free, err = store.Lock(ctx, filepath.Join(x.dir, ".lock"), func() {})
	if err != nil && ctx.Err() != nil {
		return nil, err // an interruption is nobody's fault
	}
	return free, failed(err, "opening the index")
}

// A Conflict is another file under the name of one that is published.
type Conflict struct{ Filename, Have, Want string }

func (c *Conflict) Error() string {
	return fmt.Sprintf("%s is published with sha256 %s, this one has %s", c.Filename, c.Have, c.Want)
}

// Add publishes a wheel into channels, or adds channels to it where it is
// published already; existed says which. The same name with other bytes is a
// [Conflict].
func (x *Index) Add(ctx context.Context, p Publication) (r Record, existed bool, err error) {
	if fault := p.fault(); fault != "" {
		return r, false, diag.Errorf(diag.Publish, "publishing %s: %s", p.Wheel.Name, fault)
	}
	free, err := x.lock(ctx)
	if err != nil {
		return r, false, err
	}
	defer free()
	all, err := x.All(ctx)
	if err != nil { // the pages are made of all records: nothing is begun that cannot be ended
		return r, false, err
	}
	r, existed, err = x.merged(ctx, p)
	if err != nil {
		return r, existed, err
	}
	if r.Published.IsZero() {
		r.Published = time.Now().UTC().Truncate(time.Second)
	}
	if err := errors.Join(x.sweep(r.Project, r.Filename), x.files(&r, p, all)); err != nil {
		return r, existed, failed(err, "publishing %s", r.Filename)
	}
	return r, existed, x.write(r, all)
}

// merged returns the record that a publication comes to. What is published
// already stays as it is: who built it first and said how is not replaced by
// somebody who built the same bytes again; channels and rounds of gates are added.
func (x *Index) merged(ctx context.Context, p Publication) (r Record, existed bool, err error) {
	r = p.Record
	r.Schema, r.Filename, r.SHA256, r.Size = schema, p.Wheel.Name, p.Wheel.SHA256, p.Wheel.Size
	have, err := x.read(ctx, x.recordPath(r.Project, r.Filename))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, false, nil
	case err != nil:
		return r, false, err
	case have.SHA256 != r.SHA256:
		return r, true, conflict(r.Filename, have.SHA256, r.SHA256)
	}
	have.Channels = union(have.Channels, r.Channels)
	if have.Key == r.Key {
		have.Gates, have.Evidence = r.Gates, r.Evidence
	}
	return have, true, nil
}

func conflict(name, have, want string) error {
	return diag.Errorf(diag.Publish, "%w", &Conflict{name, have, want}).
		WithHint("a published file never changes: give the build another version, or publish to another place")
}

var (
	project = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	base    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+~-]*$`)
	hexKey  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	ends    = regexp.MustCompile(`\.(whl|tar|tar\.(gz|xz|zst)|tgz|txz)$`)
)

// fault says which name cannot be one of a file in the index.
func (p Publication) fault() string {
	r := p.Record
	switch {
	case !project.MatchString(r.Project):
		return fmt.Sprintf("%q is no normalised name of a project", r.Project)
	case !base.MatchString(p.Wheel.Name) || !ends.MatchString(p.Wheel.Name):
		return fmt.Sprintf("%q is no name of a wheel or of an archive", p.Wheel.Name)
	case !hexKey.MatchString(r.Key) || !hexKey.MatchString(p.Wheel.SHA256):
		return "its key or its digest is no sha256"
	case len(r.Channels) == 0:
		return "no channel is named"
	}
	for name := range p.Beside {
		for part := range strings.SplitSeq(name, "/") {
			if !base.MatchString(part) {
				return fmt.Sprintf("%q is no name of a file", name)
			}
		}
	}
	return ""
}

// files copies the wheel and all that goes with it, each checked on the way. A file
// that no record names was left by somebody who did not come to an end.
func (x *Index) files(r *Record, p Publication, all []Record) error {
	folder := filepath.Join(x.dir, filesDir, r.Project)
	if r.IsWheel() {
		var err error
		if r.Metadata, err = putBytes(filepath.Join(folder, r.Filename+metadata), p.Metadata); err != nil {
			return err
		}
	}
	for name, a := range p.Beside {
		i := slices.IndexFunc(r.Beside, func(f File) bool { return f.Path == name })
		if r.Key != p.Record.Key || i >= 0 && r.Beside[i].SHA256 != a.SHA256 {
			continue
		}
		to := filepath.Join(folder, filepath.FromSlash(name))
		if other, ok := claimed(all, r.Project, name); ok && other.SHA256 != a.SHA256 {
			return conflict(name, other.SHA256, a.SHA256)
		}
		if err := put(to, a); err != nil {
			return err
		}
		if i < 0 {
			r.Beside = append(r.Beside, File{name, a.SHA256, a.Size})
		}
	}
	slices.SortFunc(r.Beside, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return put(filepath.Join(folder, r.Filename), p.Wheel)
}

// claimed returns the file of a path that a record of a project names.
func claimed(all []Record, project, path string) (File, bool) {
	for _, r := range all {
		i := slices.IndexFunc(r.Beside, func(f File) bool { return f.Path == path })
		if r.Project == project && i >= 0 {
			return r.Beside[i], true
		}
	}
	return File{}, false
}

// without returns the records but for that of one file.
func without(all []Record, r Record) []Record {
	return slices.DeleteFunc(slices.Clone(all), func(other Record) bool { return other.Project == r.Project && other.Filename == r.Filename })
}

// write puts the record down and makes the pages that follow from it and from all
// others.
func (x *Index) write(r Record, all []Record) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if _, err := putBytes(x.recordPath(r.Project, r.Filename), data); err != nil {
		return failed(err, "publishing %s", r.Filename)
	}
	if _, err := putBytes(filepath.Join(x.dir, keysDir, r.Key+".json"), data); err != nil {
		return failed(err, "publishing %s", r.Filename)
	}
	return x.pages(append(without(all, r), r), r.Project)
}

func (x *Index) recordPath(project, filename string) string {
	return filepath.Join(x.dir, filesDir, project, filename+recordEnd)
}

// Withdraw takes wheels out of the pages and then removes their files.
func (x *Index) Withdraw(ctx context.Context, records ...Record) error {
	free, err := x.lock(ctx)
	if err != nil {
		return err
	}
	defer free()
	all, err := x.All(ctx)
	if err != nil {
		return err
	}
	var projects []string
	for _, r := range records {
		if err := errors.Join(remove(x.recordPath(r.Project, r.Filename)), remove(filepath.Join(x.dir, keysDir, r.Key+".json"))); err != nil {
			return failed(err, "withdrawing %s", r.Filename)
		}
		all, projects = without(all, r), append(projects, r.Project)
	}
	if err := x.pages(all, projects...); err != nil {
		return err
	}
	var faults []error
	for _, r := range records {
		if err := x.removeFiles(r); err != nil {
			faults = append(faults, failed(err, "removing the files of %s", r.Filename))
		}
	}
	return errors.Join(faults...)
}

// removeFiles removes a wheel and what is its alone: other wheels of a cell may
// share what lies beside it.
func (x *Index) removeFiles(r Record) error {
	folder := filepath.Join(x.dir, filesDir, r.Project)
	faults := []error{remove(filepath.Join(folder, r.Filename)), remove(filepath.Join(folder, r.Filename+metadata))}
	folders := map[string]bool{}
	for _, f := range r.Beside {
		if filepath.IsLocal(f.Path) && strings.HasPrefix(f.Path, r.Filename+".") {
			faults = append(faults, remove(filepath.Join(folder, f.Path)))
			folders[filepath.Dir(f.Path)] = true
		}
	}
	delete(folders, ".")
	for name := range folders {
		_ = os.Remove(filepath.Join(folder, name)) // stays where others have put something into it
	}
	return errors.Join(faults...)
}

// Yank says of a wheel that nobody should take it any more, and why: pip and uv
// pass it over unless its very version is asked for, and it is not taken instead
// of a build. Without a reason that is taken back.
func (x *Index) Yank(ctx context.Context, key, because string) (Record, error) {
	free, err := x.lock(ctx)
	if err != nil {
		return Record{}, err
	}
	defer free()
	all, err := x.All(ctx)
	if err != nil {
		return Record{}, err
	}
	r, err := x.Find(ctx, key)
	if err != nil {
		return r, err
	}
	r.Yanked = because
	return r, x.write(r, all)
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Find returns the record of the cell with a key; where there is none the error
// is [fs.ErrNotExist].
func (x *Index) Find(ctx context.Context, key string) (Record, error) {
	if !hexKey.MatchString(key) {
		return Record{}, fs.ErrNotExist
	}
	data, err := store.Small(ctx, store.Source(filepath.Join(x.dir, keysDir, key+".json")), maxRecord)
	if err != nil {
		return Record{}, err
	}
	return parse(data, key)
}

// All lists every record, by project, version and name. All that cannot be read
// is told together; the others are returned too.
func (x *Index) All(ctx context.Context) ([]Record, error) {
	paths, err := fs.Glob(os.DirFS(x.dir), path.Join(filesDir, "*", "*"+recordEnd))
	faults := []error{err}
	var all []Record
	for _, path := range paths {
		r, err := x.read(ctx, filepath.Join(x.dir, path))
		if err != nil {
			faults = append(faults, err)
			continue
		}
		all = append(all, r)
	}
	slices.SortFunc(all, byName)
	return all, errors.Join(faults...)
}

func byName(a, b Record) int {
	return cmp.Or(strings.Compare(a.Project, b.Project), strings.Compare(a.Filename, b.Filename))
}

// maxRecord bounds what is read of one record, in bytes.
const maxRecord = 4 << 20

// read reads a record and refuses one whose names lead elsewhere.
func (x *Index) read(ctx context.Context, path string) (Record, error) {
	data, err := store.Small(ctx, store.Source(path), maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, err
	}
	var r Record
	if err == nil {
		r, err = parse(data, "")
	}
	if err != nil {
		return Record{}, diag.Errorf(diag.Publish, "%s: %w", path, err).WithHint("restore the file, or remove it and publish its wheel again")
	}
	return r, nil
}

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

// Take copies the wheel of a record and all that goes with it into dir and checks
// every digest. What it says about the wheel is not checked here.
func (x *Index) Take(_ context.Context, r Record, dir string) (artifact.Artifact, error) {
	return r.take(dir, func(f File) (string, error) {
		return filepath.Join(x.dir, filesDir, r.Project, f.Path), nil
	})
}

// take copies the files of a record, from where they are found.
func (r Record) take(dir string, find func(File) (path string, err error)) (artifact.Artifact, error) {
	wheel := artifact.Artifact{Name: r.Filename, Path: filepath.Join(dir, r.Filename), SHA256: r.SHA256, Size: r.Size, Key: r.Key}
	for _, f := range append(slices.Clone(r.Beside), File{r.Filename, r.SHA256, r.Size}) {
		if !filepath.IsLocal(f.Path) {
			return wheel, fmt.Errorf("taking %s: %q leads out of its folder", r.Filename, f.Path)
		}
		path, err := find(f)
		if err != nil {
			return wheel, err
		}
		if err := put(filepath.Join(dir, f.Path), artifact.Artifact{Name: f.Path, Path: path, SHA256: f.SHA256, Size: f.Size}); err != nil {
			return wheel, fmt.Errorf("taking %s: %w", r.Filename, err)
		}
	}
	return wheel, nil
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
