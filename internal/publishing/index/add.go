package index

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/files/artifact"
)

// A Publication is the argument of [Index.Add]: a record without the fields the index
// fills in, the wheel with its METADATA or an archive, and the files beside it, by
// their path in the project's folder.
type Publication struct {
	Record   Record
	Wheel    artifact.Artifact
	Metadata []byte
	Beside   map[string]artifact.Artifact
}

// An Added is the result of [Index.Add].
type Added struct {
	Record  Record
	Existed bool // the wheel was published before
	More    int  // files that the publication added to a published wheel, such as statements
}

// Add publishes a wheel in channels. For a published wheel, it adds the channels, the gates
// and the statements, and replaces damaged files. The same name with other bytes is
// an error.
//
// If check is not nil, Add calls it when the files are there and no page names them yet,
// with the new record and the address of pages with this wheel alone. An error of check ends
// the publication.
func (x *Index) Add(ctx context.Context, p Publication, check func(r Record, simple string) error) (Added, error) {
	if err := p.problem(); err != nil { // before the lock makes the directory
		return Added{}, err
	}
	var added Added
	r, err := x.change(ctx, "publishing "+p.Wheel.Name, func(all []Record) (r Record, err error) {
		if r, added.Existed, err = p.merged(all); err == nil {
			err = p.clash(r, all)
		}
		if err != nil {
			return r, err
		}
		before := len(r.Beside)
		r.Beside = p.beside(r)
		added.More = len(r.Beside) - before
		if err := x.writeFiles(r, p); err != nil || check == nil {
			return r, err
		}
		return r, x.try(r, check)
	})
	if err != nil {
		return Added{}, err
	}
	added.Record = r
	return added, nil
}

// newDir holds the pages for a check. Their links are those of [simpleDir].
const newDir = ".new"

// try calls check with pages that have only the wheel of r.
func (x *Index) try(r Record, check func(r Record, simple string) error) error {
	dir := filepath.Join(x.dir, newDir)
	defer os.RemoveAll(dir)
	err := os.RemoveAll(dir) // of a killed publisher
	if err == nil && r.IsWheel() {
		err = x.projectPage(filepath.Join(dir, r.Project), r.Project, []Record{r})
	}
	if err != nil {
		return err
	}
	return check(r, "file://"+dir+"/")
}

// beside returns the files of a record with those of the publication that it lacks.
func (p Publication) beside(r Record) []File {
	all := slices.Clone(r.Beside)
	for name, a := range p.Beside {
		if !p.older(r, name) && !slices.ContainsFunc(r.Beside, func(f File) bool { return f.Path == name }) {
			all = append(all, File{name, a.SHA256, a.Size})
		}
	}
	slices.SortFunc(all, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// merged returns the new record of a publication, given all records. An existing record
// keeps its builder and its provenance, even if another builder publishes the same
// bytes. merged adds the channels, and for the same key the gates.
func (p Publication) merged(all []Record) (r Record, existed bool, err error) {
	r = p.Record
	r.Schema, r.Filename, r.SHA256, r.Size = schema, p.Wheel.Name, p.Wheel.SHA256, p.Wheel.Size
	r.Signers = union(nil, r.Signers)
	if r.IsWheel() {
		r.Metadata = regular.Sum(p.Metadata)
	}
	if r.Published.IsZero() {
		r.Published = time.Now().UTC().Truncate(time.Second)
	}
	i := slices.IndexFunc(all, r.sameFile)
	if i < 0 {
		return r, false, nil
	}
	have := all[i]
	if have.SHA256 != r.SHA256 {
		return r, true, conflict(r.Filename, have.SHA256, r.SHA256)
	}
	have.Metadata, have.Channels = r.Metadata, union(have.Channels, r.Channels)
	if have.Key == r.Key { // the statements of other publishers stay, so their gates do too
		have.Gates, have.Evidence = joined(have.Gates, r.Gates), joined(have.Evidence, r.Evidence)
		have.Signers = union(have.Signers, r.Signers)
	}
	return have, true, nil
}

func conflict(name, have, want string) error {
	hint := "give the build another version"
	if !ends.MatchString(name) { // a file beside the wheel, such as the requirements
		hint = "this file has the name of the cell, so put the new version, or what else differs, into `id` of the recipe"
	}
	return diag.Errorf(diag.Publish, "%s is already published with sha256 %s, this file has %s", name, have, want).
		WithHint("a published file never changes: %s, or publish to another place", hint)
}

// clash returns an error for a file beside the wheel whose name another record has.
func (p Publication) clash(r Record, all []Record) error {
	for _, other := range all {
		for _, f := range other.Beside {
			a, ours := p.Beside[f.Path]
			if ours && other.Project == r.Project && !p.older(r, f.Path) && f.SHA256 != a.SHA256 {
				return conflict(f.Path, f.SHA256, a.SHA256)
			}
		}
	}
	return nil
}

// older reports whether the record keeps its own file with a name.
func (p Publication) older(r Record, name string) bool {
	i := slices.IndexFunc(r.Beside, func(f File) bool { return f.Path == name })
	return r.Key != p.Record.Key || i >= 0 && r.Beside[i].SHA256 != p.Beside[name].SHA256
}

// problem returns an error for a publication with an invalid name.
func (p Publication) problem() error {
	r := p.Record
	r.Filename, r.SHA256 = p.Wheel.Name, p.Wheel.SHA256
	wrong := r.malformed() || !ends.MatchString(r.Filename) || len(r.Channels) == 0
	for name := range p.Beside {
		for part := range strings.SplitSeq(name, "/") {
			wrong = wrong || !base.MatchString(part)
		}
	}
	if wrong {
		return diag.Errorf(diag.Publish, "publishing %s: a name, key or digest of it is malformed, or it has no channel", p.Wheel.Name)
	}
	return nil
}

// writeFiles copies the wheel and the files beside it, and checks each digest on the way.
// It replaces a file without a record, which an interrupted publisher left.
func (x *Index) writeFiles(r Record, p Publication) error {
	if err := x.sweep(r.Project, r.Filename); err != nil {
		return err
	}
	folder := filepath.Join(x.dir, filesDir, r.Project)
	if r.IsWheel() {
		if err := putBytes(filepath.Join(folder, r.Filename+metadata), p.Metadata); err != nil {
			return err
		}
	}
	for name, a := range p.Beside {
		if p.older(r, name) {
			continue
		}
		if err := artifact.Put(a, filepath.Join(folder, filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	return artifact.Put(p.Wheel, filepath.Join(folder, r.Filename)) // after all that can conflict
}

// joined returns the entries of both maps. Those of newer count.
func joined(older, newer map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, older)
	maps.Copy(all, newer)
	return all
}

func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// sweep removes temporary files of killed publishers from the folders a publication
// writes to, however large the index is. The lock excludes other writers.
func (x *Index) sweep(project, filename string) error {
	var errs []error
	for _, folder := range []string{
		".", keysDir, simpleDir, path.Join(simpleDir, project), path.Join(filesDir, project), path.Join(filesDir, project, filename+".*"),
	} {
		left, err := fs.Glob(os.DirFS(x.dir), path.Join(folder, ".*.tmp"))
		errs = append(errs, err)
		for _, name := range left {
			errs = append(errs, os.Remove(filepath.Join(x.dir, name)))
		}
	}
	return errors.Join(errs...)
}
