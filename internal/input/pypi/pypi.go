// Package pypi finds the file of a Python package by name, version and digest. It calls
// uv, and uv asks the index configured on the host. No address of an index is in this
// code, in a lock or in a log.
//
// Locks use [Tool.Resolve], [Tool.Sdist] and [Tool.Released]. Fetches use
// [Tool.Locate], which takes exact digests. [Tool.Publish] uploads a wheel. The host
// runs no program from an index other than uv. The wheels of uv and of ccache, which
// runs in builds, are pinned here. internal/build/fetch downloads the files and
// internal/files/wheel reads them.
package pypi

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sourcegraph/conc/iter"

	"builder/internal/base/diag"
	"builder/internal/input/store"
)

// File is a wheel or a source distribution in a lock.
type File struct {
	Project  string `json:"project"`
	Version  string `json:"version"`
	Filename string `json:"filename"`
	Size     int64  `json:"size"`
	SHA256   string `json:"sha256"`
	Index    string `json:"index,omitempty"` // name of the index that alone may have it, or "" for the host's
}

// Blob returns the file's name, size and digest for the store.
func (f File) Blob() store.Blob {
	return store.Blob{Name: f.Filename, Size: f.Size, SHA256: f.SHA256}
}

// Requirement returns the requirements line for exactly this file of an index.
func (f File) Requirement() string {
	return fmt.Sprintf("%s==%s --hash=sha256:%s", f.Project, f.Version, f.SHA256)
}

// Exact returns the requirements line for exactly this file of an index that also has
// the release with a local part: dotprod==1.1 matches 1.1+openmp too, which pip then
// prefers and uv refuses for its digest (seen with pip 25.3 and uv 0.13.9).
func (f File) Exact() string { return f.Pin() + " --hash=sha256:" + f.SHA256 }

// Pin is like Exact, without the digest.
func (f File) Pin() string {
	if strings.Contains(f.Version, "+") {
		return f.Project + "==" + f.Version
	}
	return f.Project + "===" + f.Version
}

// Request asks for a compatible set of wheels.
type Request struct {
	Requirements []string // "torch==2.8.0 from rocm6.4" takes torch from that index and nowhere else
	Python       string   // "3.11"
	Platform     string   // "x86_64-manylinux_2_28", in uv's format
}

// Resolve chooses a version of every required project and the best matching wheel of
// each version. It never takes source distributions, because it would have to run them
// to learn their dependencies.
func (t Tool) Resolve(ctx context.Context, scratch string, req Request, args ...string) ([]File, error) {
	if err := checkTarget(req.Python, req.Platform); err != nil {
		return nil, err
	}
	args = append([]string{"--only-binary", ":all:", "--python-version", req.Python, "--python-platform", req.Platform}, args...)
	packages, err := t.compile(ctx, scratch, req.Requirements, args...)
	if err != nil {
		return nil, err
	}
	chosen := make([]found, len(packages))
	for i, p := range packages {
		if chosen[i], err = best(p); err != nil {
			return nil, diag.Errorf(diag.Fetch, "resolving Python packages: %w", err)
		}
	}
	return measure(ctx, chosen)
}

// Sdist returns the source distribution of a release. It neither unpacks nor runs it.
func (t Tool) Sdist(ctx context.Context, scratch, project, version string) (File, error) {
	pin, err := exact(project, version)
	if err != nil {
		return File{}, diag.Errorf(diag.Usage, "resolving source: %w", err)
	}
	packages, err := t.compile(ctx, scratch, []string{pin}, "--no-deps", "--universal", "--python-version", python3(newest))
	if err != nil {
		return File{}, err
	}
	for _, p := range packages {
		for _, f := range p.files {
			if !strings.HasSuffix(f.Filename, ".whl") {
				files, err := measure(ctx, []found{f})
				if err != nil {
					return File{}, err
				}
				return files[0], nil
			}
		}
	}
	return File{}, diag.Errorf(diag.Fetch, "the index has no source distribution of %s %s", project, version)
}

// Released returns the best matching wheel of a release for a Python ("3.11") and a
// platform ("x86_64-manylinux_2_28", in uv's format). It ignores the release's
// dependencies.
func (t Tool) Released(ctx context.Context, scratch, project, version, python, platform string) (File, error) {
	pin, err := exact(project, version)
	if err != nil {
		return File{}, diag.Errorf(diag.Usage, "resolving source: %w", err)
	}
	files, err := t.Resolve(ctx, scratch, Request{Requirements: []string{pin}, Python: python, Platform: platform}, "--no-deps")
	if err != nil {
		return File{}, err
	}
	if len(files) != 1 {
		return File{}, diag.Errorf(diag.Fetch, "the index has no wheel of %s %s", project, version)
	}
	return files[0], nil
}

// measure requests the sizes missing in the index, at most eight at a time, and returns
// the files sorted by name.
func measure(ctx context.Context, all []found) ([]File, error) {
	files, err := iter.Mapper[found, File]{MaxGoroutines: 8}.MapErr(all, func(f *found) (file File, err error) {
		file = f.File
		if file.Size <= 0 {
			file.Size, err = store.Size(ctx, f.source)
		}
		if err != nil {
			err = diag.Errorf(diag.Fetch, "%s: %w", file.Filename, err)
		}
		return file, err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Project+" "+a.Filename, b.Project+" "+b.Filename) })
	return files, nil
}

var (
	projectPattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	versionPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._!+-]*$`)
)

// exact returns a requirement on one version. It refuses names and versions that uv
// could read as another requirement or as an option.
func exact(project, version string) (string, error) {
	if !projectPattern.MatchString(project) || !versionPattern.MatchString(version) {
		return "", fmt.Errorf("%q %q is not the name and version of a project", project, version)
	}
	return project + "==" + version, nil
}

// newest is the minor version of the Python for files supporting any Python.
const newest = 14

func python3(minor int) string { return fmt.Sprintf("3.%d", minor) }
