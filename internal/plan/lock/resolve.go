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

// A Resolver resolves names on the network. It is the only part of builder allowed to.
type Resolver struct {
	Scratch string          // directory for files of the resolvers
	Mirrors func() []string // base addresses of the Debian archive; only the first is used
	// Registries are the mirrors of registries.
	Registries oci.Mirrors
	// Overrides lists, by project, repositories on this host to use instead.
	Overrides map[string][]string
	UV        func(context.Context) (pypi.Tool, error)
	Now       func() time.Time
}

// Resolve returns pins for everything missing. If some names cannot be resolved, it
// returns an error together with the pins of the others.
func (r Resolver) Resolve(ctx context.Context, recipeName string, m Missing) (File, error) {
	f := File{Schema: Schema, Recipe: recipeName}
	var errs [3]error
	f.Images, errs[0] = each(ctx, m.Images, r.image, func(img image.Image) string { return "image " + img.Name })
	f.Sources, errs[1] = each(ctx, m.Sources, r.source, func(s SourceNeed) string { return "source " + s.Project + " " + s.Version })
	f.Python, errs[2] = each(ctx, m.Python, r.python, func(PythonPin) string { return "Python packages" })
	err := errors.Join(errs[:]...)
	if f.None() && err != nil {
		return File{}, err
	}
	return f, err
}

// each resolves the needs one after the other and stops when the context ends. name
// returns the name of a need in errors.
func each[N, P any](ctx context.Context, needs []N, resolve func(context.Context, N) (P, error), name func(N) string) (pins []P, _ error) {
	var errs []error
	for _, need := range needs {
		pin, err := resolve(ctx, need)
		if err != nil {
			errs = append(errs, fmt.Errorf("locking %s: %w", name(need), err))
		}
		if ctx.Err() != nil {
			break
		}
		if err == nil {
			pins = append(pins, pin)
		}
	}
	return pins, errors.Join(errs...)
}

// python resolves a set of requirements with the index. Without requirements it does
// not use the index.
func (r Resolver) python(ctx context.Context, pin PythonPin) (PythonPin, error) {
	if pin.Files = []pypi.File{}; len(pin.Requirements) == 0 {
		return pin, nil
	}
	uv, err := r.UV(ctx)
	if err != nil {
		return pin, err
	}
	pin.Files, err = uv.Resolve(ctx, r.Scratch, pypi.Request{Requirements: pin.Requirements, Python: pin.Python, Platform: platform})
	return pin, err
}

// source resolves a source distribution or a wheel with the index, or a commit with its
// repository.
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

// git resolves the commit of a tag and makes its archive once, to compute the digest.
// If the recipe also states the commit and the tag has another, the tag was moved, and
// git returns an error.
func (r Resolver) git(ctx context.Context, s SourceNeed) (SourcePin, error) {
	from, err := git.Source(s.Repository, r.Overrides[s.Project])
	if err != nil {
		return SourcePin{}, err
	}
	commit := s.Commit
	if s.Tag != "" {
		commit, err = git.Resolve(ctx, from, s.Tag)
	}
	if err != nil {
		return SourcePin{}, err
	}
	if s.Commit != "" && commit != s.Commit {
		return SourcePin{}, diag.Errorf(diag.Drift, "the tag %s of %s names commit %s, but the recipe has %s", s.Tag, s.Project, commit, s.Commit).
			WithHint("upstream moved the tag to another source: find out why, then correct from.commit")
	}
	pin := SourcePin{
		File: pypi.File{Project: s.Project, Version: s.Version, Filename: s.Project + "-" + s.Version + ".tar"},
		Tag:  s.Tag, Commit: commit, Under: s.Under, Root: s.Root,
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

// Tree returns the tree from which the archive of a commit is made.
func (p SourcePin) Tree() git.Tree {
	return git.Tree{Commit: p.Commit, Under: p.Under, Root: p.Root, Folder: p.Folder()}
}

// Folder returns the name of the top folder in the archive of a commit.
func (p SourcePin) Folder() string { return p.Project + "-" + p.Version }

// platform is the platform for which wheels are resolved. Every image supports it.
const platform = "x86_64-manylinux_2_28"

func (r Resolver) image(ctx context.Context, img image.Image) (ImagePin, error) {
	if img.Registry != "" {
		digest, err := oci.Resolve(ctx, r.Registries.Reference(img.Registry))
		return ImagePin{Name: img.Name, Registry: img.Registry, Digest: digest}, err
	}
	mirror, err := deb.Mirror(r.Mirrors())
	if err != nil {
		return ImagePin{}, err
	}
	req := deb.Request{Mirror: mirror, Suites: img.Debian.Suites, Packages: img.Debian.Packages, Unpack: img.Debian.Unpack}
	packages, err := deb.Resolve(ctx, r.Scratch, req)
	date := r.Now().UTC().Format("20060102T150405Z")
	return ImagePin{Name: img.Name, Date: date, Debian: img.Debian, Packages: packages}, err
}
