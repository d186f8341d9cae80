package index

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"builder/internal/base/diag"
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

// A Conflict is a different file with the name of a published one.
type Conflict struct{ Filename, Have, Want string }

func (c *Conflict) Error() string {
	return fmt.Sprintf("%s is already published with sha256 %s, this file has %s", c.Filename, c.Have, c.Want)
}

// An Added is the result of [Index.Add].
type Added struct {
	Record   Record
	Existed  bool     // the wheel was published before
	Repaired []string // published files that were damaged or missing, by their paths
	More     int      // files that the publication added to a published wheel, such as statements
}

// Add publishes a wheel in channels. For a published wheel, it adds the channels. The
// same name with other bytes is a [Conflict]. A damaged file that only another publisher
// has is an error after everything else was added.
func (x *Index) Add(ctx context.Context, p Publication) (Added, error) {
	if problem := p.problem(); problem != "" {
		return Added{}, diag.Errorf(diag.Publish, "publishing %s: %s", p.Wheel.Name, problem)
	}
	free, err := x.lock(ctx)
	if err != nil {
		return Added{}, err
	}
	defer free()
	added, damaged, all, err := x.add(ctx, p, writing)
	if err != nil {
		return Added{}, err
	}
	if err := x.write(added.Record, all); err != nil {
		return Added{}, err
	}
	if len(damaged) > 0 {
		return Added{}, lost(added.Record, damaged)
	}
	return added, nil
}

// Preview returns the result or the error that [Index.Add] would have, and changes
// nothing.
func (x *Index) Preview(ctx context.Context, p Publication) (Added, error) {
	if problem := p.problem(); problem != "" {
		return Added{}, diag.Errorf(diag.Publish, "publishing %s: %s", p.Wheel.Name, problem)
	}
	added, damaged, _, err := x.add(ctx, p, looking)
	if err == nil && len(damaged) > 0 {
		err = lost(added.Record, damaged)
	}
	return added, err
}

// lost returns the error for damaged files that the publication cannot repair.
func lost(r Record, damaged []string) error {
	return diag.Errorf(diag.Publish, "publishing %s: of the files from other hosts, these are damaged or missing: %s", r.Filename, strings.Join(damaged, ", ")).
		WithHint("publish the cell again from the host that has them, or restore them from a copy")
}

// add puts the files of a publication and returns its record, the damaged files of other
// publishers, and all records before.
func (x *Index) add(ctx context.Context, p Publication, by putter) (added Added, damaged []string, all []Record, err error) {
	if all, err = x.All(ctx); err != nil { // fail before any change: the pages need all records
		return Added{}, nil, nil, err
	}
	r, existed, err := p.merged(all)
	if err == nil {
		err = p.clash(r, all)
	}
	if err != nil {
		return Added{}, nil, nil, err
	}
	if r.Published.IsZero() {
		r.Published = time.Now().UTC().Truncate(time.Second)
	}
	before := len(r.Beside)
	if by.writes {
		err = x.sweep(r.Project, r.Filename)
	}
	repaired, damaged, err2 := x.files(ctx, &r, p, by)
	if err := errors.Join(err, err2); err != nil {
		return Added{}, nil, nil, failed(err, "publishing %s", r.Filename)
	}
	if !existed {
		repaired = nil // left by an interrupted publisher
	}
	return Added{r, existed, repaired, len(r.Beside) - before}, damaged, all, nil
}

// merged returns the new record of a publication, given all records. An existing record
// keeps its builder and its provenance, even if another builder publishes the same
// bytes. merged adds the channels, and for the same key the gates.
func (p Publication) merged(all []Record) (r Record, existed bool, err error) {
	r = p.Record
	r.Schema, r.Filename, r.SHA256, r.Size = schema, p.Wheel.Name, p.Wheel.SHA256, p.Wheel.Size
	i := slices.IndexFunc(all, r.sameFile)
	if i < 0 {
		return r, false, nil
	}
	have := all[i]
	if have.SHA256 != r.SHA256 {
		return r, true, conflict(r.Filename, have.SHA256, r.SHA256)
	}
	have.Channels = union(have.Channels, r.Channels)
	if have.Key == r.Key { // the statements of other publishers stay, so their gates do too
		have.Gates, have.Evidence = joined(have.Gates, r.Gates), joined(have.Evidence, r.Evidence)
	}
	return have, true, nil
}

func conflict(name, have, want string) error {
	hint := "give the build another version"
	if !ends.MatchString(name) { // a file beside the wheel, such as the requirements
		hint = "this file has the name of the cell, so put the new version, or what else differs, into `id` of the recipe"
	}
	return diag.Errorf(diag.Publish, "%w", &Conflict{name, have, want}).
		WithHint("a published file never changes: %s, or publish to another place", hint)
}

// clash returns a [Conflict] for a file beside the wheel whose name another record has.
func (p Publication) clash(r Record, all []Record) error {
	for _, name := range slices.Sorted(maps.Keys(p.Beside)) {
		if other, ok := claimed(all, r.Project, name); ok && !p.older(r, name) && other.SHA256 != p.Beside[name].SHA256 {
			return conflict(name, other.SHA256, p.Beside[name].SHA256)
		}
	}
	return nil
}

// older reports whether the record keeps its own file with a name.
func (p Publication) older(r Record, name string) bool {
	i := slices.IndexFunc(r.Beside, func(f File) bool { return f.Path == name })
	return r.Key != p.Record.Key || i >= 0 && r.Beside[i].SHA256 != p.Beside[name].SHA256
}

// problem returns the first invalid name of the publication, or "".
func (p Publication) problem() string {
	r := p.Record
	switch {
	case !project.MatchString(r.Project):
		return fmt.Sprintf("%q is not a normalised project name", r.Project)
	case !base.MatchString(p.Wheel.Name) || !ends.MatchString(p.Wheel.Name):
		return fmt.Sprintf("%q is not the name of a wheel or an archive", p.Wheel.Name)
	case !hexKey.MatchString(r.Key) || !hexKey.MatchString(p.Wheel.SHA256):
		return "its key or digest is not a sha256"
	case len(r.Channels) == 0:
		return "it has no channel"
	}
	for name := range p.Beside {
		for part := range strings.SplitSeq(name, "/") {
			if !base.MatchString(part) {
				return fmt.Sprintf("%q is not a file name", name)
			}
		}
	}
	return ""
}

// files copies the wheel and the files beside it, and checks each digest on the way. It
// replaces a file without a record, which an interrupted publisher left. It returns the
// replaced files, and the damaged files of the record that the publication lacks.
func (x *Index) files(ctx context.Context, r *Record, p Publication, by putter) (repaired, damaged []string, err error) {
	folder := filepath.Join(x.dir, filesDir, r.Project)
	if r.IsWheel() {
		var wrote bool
		if r.Metadata, wrote, err = by.bytes(x.PathOf(*r)+metadata, p.Metadata); err != nil {
			return nil, nil, err
		}
		if wrote {
			repaired = append(repaired, r.Filename+metadata)
		}
	}
	intact := map[string]bool{}
	for name, a := range p.Beside {
		if p.older(*r, name) {
			continue
		}
		i := slices.IndexFunc(r.Beside, func(f File) bool { return f.Path == name })
		to := filepath.Join(folder, filepath.FromSlash(name))
		wrote, err := by.file(ctx, to, a)
		if err != nil {
			return nil, nil, err
		}
		intact[name] = true
		switch {
		case i < 0:
			r.Beside = append(r.Beside, File{name, a.SHA256, a.Size})
		case wrote:
			repaired = append(repaired, name)
		}
	}
	slices.SortFunc(r.Beside, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	wrote, err := by.file(ctx, filepath.Join(folder, r.Filename), p.Wheel) // after all that can conflict
	if err != nil {
		return nil, nil, err
	}
	if wrote {
		repaired = append(repaired, r.Filename)
	}
	slices.Sort(repaired)
	for _, f := range r.Beside {
		if !intact[f.Path] && x.damaged(*r, f) {
			damaged = append(damaged, f.Path)
		}
	}
	return repaired, damaged, nil
}

// claimed returns the file at a path, if a record of the project lists it.
func claimed(all []Record, project, path string) (File, bool) {
	for _, r := range all {
		i := slices.IndexFunc(r.Beside, func(f File) bool { return f.Path == path })
		if r.Project == project && i >= 0 {
			return r.Beside[i], true
		}
	}
	return File{}, false
}

// joined returns the entries of both maps. Those of newer count.
func joined(older, newer map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, older)
	maps.Copy(all, newer)
	return all
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// sweep removes temporary files of killed publishers from the folders a publication
// writes to: hidden files without a link in a page. The lock excludes other writers.
func (x *Index) sweep(project, filename string) error {
	var errs []error
	for _, folder := range []string{
		".", keysDir, simpleDir, path.Join(simpleDir, project), path.Join(filesDir, project), path.Join(filesDir, project, filename+".*"),
	} {
		left, err := fs.Glob(os.DirFS(x.dir), path.Join(folder, ".*.tmp"))
		errs = append(errs, err)
		for _, name := range left {
			errs = append(errs, remove(filepath.Join(x.dir, name)))
		}
	}
	return errors.Join(errs...)
}
