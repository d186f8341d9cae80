package lock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"builder/internal/base/diag"
	"builder/internal/input/deb"
	"builder/internal/input/git"
	"builder/internal/input/oci"
	"builder/internal/input/pypi"
	"builder/internal/input/store"
	"builder/internal/plan/image"
	"builder/internal/plan/recipe"
)

// A Resolver asks the outside for what names mean today. It is the only part of
// the tool that may.
type Resolver struct {
	Scratch string   // directory for what the resolvers write
	Mirrors []string // base addresses of the Debian archive, the first is asked
	// Overrides are places on this host to ask instead, by project.
	Overrides map[string][]string
	UV        func(context.Context) (pypi.Tool, error)
	Now       func() time.Time
}

// Resolve returns pins for everything that is missing. What cannot be resolved is
// an error, with the pins of the rest.
func (r Resolver) Resolve(ctx context.Context, recipeName string, m Missing) (File, error) {
	f := File{Schema: Schema, Recipe: recipeName}
	var errs [3]error
	f.Images, errs[0] = each(ctx, m.Images, func(img image.Image) (ImagePin, error) {
		pin, err := r.image(ctx, img)
		return pin, within(err, "locking image %s", img.Name)
	})
	f.Sources, errs[1] = each(ctx, m.Sources, func(s SourceNeed) (SourcePin, error) {
		pin, err := r.source(ctx, s)
		return pin, within(err, "locking source %s %s", s.Project, s.Version)
	})
	f.Python, errs[2] = each(ctx, m.Python, func(need PythonNeed) (PythonPin, error) {
		files, err := r.python(ctx, need)
		return PythonPin{need.Python, need.Requirements, need.Without, files}, within(err, "locking Python packages")
	})
	err := errors.Join(errs[:]...)
	if f.None() && err != nil {
		return File{}, err
	}
	return f, err
}

// each resolves one need after the other. After the end of the context it asks no
// further.
func each[N, P any](ctx context.Context, needs []N, resolve func(N) (P, error)) (pins []P, _ error) {
	var faults []error
	for _, need := range needs {
		pin, err := resolve(need)
		faults = append(faults, err)
		if ctx.Err() != nil {
			break
		}
		if err == nil {
			pins = append(pins, pin)
		}
	}
	return pins, errors.Join(faults...)
}

// within says what was being done when an error came, if one did.
func within(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

// python asks the index for the files of a set of requirements; where nothing is
// asked for there is nothing to ask.
func (r Resolver) python(ctx context.Context, need PythonNeed) ([]pypi.File, error) {
	if len(need.Requirements) == 0 {
		return []pypi.File{}, nil
	}
	uv, err := r.UV(ctx)
	if err != nil {
		return nil, err
	}
	return uv.Resolve(ctx, r.Scratch, pypi.Request{Requirements: need.Requirements, Without: need.Without, Python: need.Python, Platform: platform})
}

// source asks the index for a source distribution or a wheel, or the repository
// for the commit of a tag.
func (r Resolver) source(ctx context.Context, s SourceNeed) (SourcePin, error) {
	if s.Kind == recipe.Git {
		return r.git(ctx, s)
	}
	uv, err := r.UV(ctx)
	if err != nil {
		return SourcePin{}, err
	}
	if s.Kind == recipe.Wheel {
		file, err := uv.Released(ctx, r.Scratch, s.Project, s.Version, s.Python, platform)
		return SourcePin{File: file, Python: s.Python}, err
	}
	file, err := uv.Sdist(ctx, r.Scratch, s.Project, s.Version)
	return SourcePin{File: file}, err
}

// git finds the commit of a tag and makes its archive once, for its digest. A tag
// that leads elsewhere than the recipe says was moved.
func (r Resolver) git(ctx context.Context, s SourceNeed) (SourcePin, error) {
	from := git.Repository(s.Repository)
	if local := r.Overrides[s.Project]; len(local) > 0 {
		from = git.Repository(local[0])
	}
	commit, err := s.Commit, error(nil)
	if s.Tag != "" {
		commit, err = git.Resolve(ctx, from, s.Tag)
	}
	if err != nil {
		return SourcePin{}, err
	}
	if s.Commit != "" && commit != s.Commit {
		return SourcePin{}, diag.Errorf(diag.Drift, "the tag %s of %s leads to commit %s, the recipe says %s", s.Tag, s.Project, commit, s.Commit).
			WithHint("a tag that was moved is another source: find out why, then correct from.commit")
	}
	pin := SourcePin{
		File: pypi.File{Project: s.Project, Version: s.Version, Filename: s.Project + "-" + s.Version + ".tar"},
		Tag:  s.Tag, Commit: commit, Under: s.Under,
	}
	dir, err := os.MkdirTemp(r.Scratch, "commit-*") // another process may make the same archive
	if err != nil {
		return SourcePin{}, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, pin.Filename)
	if pin.Epoch, err = git.Make(ctx, r.Scratch, from, pin.Tree(), file); err != nil {
		return SourcePin{}, err
	}
	blob, err := store.Of(file)
	pin.Size, pin.SHA256 = blob.Size, blob.SHA256
	return pin, err
}

// Tree is what the archive of a commit is made of.
func (p SourcePin) Tree() git.Tree {
	return git.Tree{Commit: p.Commit, Under: p.Under, Folder: p.Folder()}
}

// Folder is the name of the only folder at the top of an archive that is made
// of a commit.
func (p SourcePin) Folder() string { return p.Project + "-" + p.Version }

// platform is the floor that every image stands on.
const platform = "x86_64-manylinux_2_28"

func (r Resolver) image(ctx context.Context, img image.Image) (ImagePin, error) {
	if img.Registry != "" {
		digest, err := oci.Resolve(ctx, img.Registry)
		return ImagePin{Name: img.Name, Registry: img.Registry, Digest: digest}, err
	}
	mirror, err := deb.Mirror(r.Mirrors)
	if err != nil {
		return ImagePin{}, err
	}
	req := deb.Request{Mirror: mirror, Packages: img.Debian.Packages, Architecture: "amd64"}
	for _, s := range img.Debian.Suites {
		req.Suites = append(req.Suites, deb.Suite(s))
	}
	packages, err := deb.Resolve(ctx, r.Scratch, req)
	date := r.Now().UTC().Format("20060102T150405Z")
	return ImagePin{Name: img.Name, Date: date, Debian: img.Debian, Packages: packages}, err
}
