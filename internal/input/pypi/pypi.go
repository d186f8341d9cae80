// Package pypi turns the name, version and digest of a Python package into its
// file. It asks uv, and uv asks the index that is configured on the host: no
// address stands in this code, in a lock or in a log.
//
// Resolving ([Tool.Resolve], [Tool.Sdist], [Tool.Released]) is for locks; locating
// ([Tool.Locate]) is for fetches, and changes nothing: it takes exact digests.
// Nothing that came from an index is ever run on the host but uv itself, whose
// wheel is pinned here beside that of ccache, which runs in builds. The bytes of
// files are brought by internal/build/fetch, and read by internal/files/wheel.
package pypi

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sourcegraph/conc/pool"

	"builder/internal/base/diag"
	"builder/internal/input/store"
)

// File is a wheel or a source distribution, as locks name it.
type File struct {
	Project  string `json:"project"`
	Version  string `json:"version"`
	Filename string `json:"filename"`
	Size     int64  `json:"size"`
	SHA256   string `json:"sha256"`
}

// Blob returns the file as the store knows it.
func (f File) Blob() store.Blob {
	return store.Blob{Name: f.Filename, Size: f.Size, SHA256: f.SHA256}
}

// Requirement is the line of a requirements file that is this file and no other.
func (f File) Requirement() string {
	return fmt.Sprintf("%s==%s --hash=sha256:%s", f.Project, f.Version, f.SHA256)
}

// Request asks for a set of wheels that go together.
type Request struct {
	Requirements []string
	Without      []string // projects that are left out, whoever needs them
	Python       string   // "3.11"
	Platform     string   // "x86_64-manylinux_2_28", as uv writes it
}

// Resolve chooses a version of everything that the request needs and, of each,
// the one wheel that fits best. Source distributions are never taken, because
// their needs are only known by running them.
func (t Tool) Resolve(ctx context.Context, scratch string, req Request) ([]File, error) {
	return t.wheels(ctx, scratch, req)
}

// wheels lets uv choose the versions, and chooses the wheel of each.
func (t Tool) wheels(ctx context.Context, scratch string, req Request, args ...string) ([]File, error) {
	fits, err := newTarget(req.Python, req.Platform)
	if err != nil {
		return nil, diag.Errorf(diag.Usage, "resolving Python packages: %w", err)
	}
	args = append([]string{"--only-binary", ":all:", "--python-version", req.Python, "--python-platform", req.Platform}, args...)
	packages, err := t.compile(ctx, scratch, inputs{req.Requirements, req.Without}, args...)
	if err != nil {
		return nil, err
	}
	chosen := make([]found, len(packages))
	for i, p := range packages {
		if chosen[i], err = fits.best(p); err != nil {
			return nil, diag.Errorf(diag.Fetch, "resolving Python packages: %w", err)
		}
	}
	return measure(ctx, chosen)
}

// Sdist returns the source distribution of a release. It is not unpacked, let
// alone run.
func (t Tool) Sdist(ctx context.Context, scratch, project, version string) (File, error) {
	pin, err := exact(project, version)
	if err != nil {
		return File{}, diag.Errorf(diag.Usage, "resolving source: %w", err)
	}
	packages, err := t.compile(ctx, scratch, inputs{requirements: []string{pin}}, "--no-deps", "--universal", "--python-version", newest)
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

// Released returns the wheel of a release that fits a Python ("3.11") on a platform
// ("x86_64-manylinux_2_28", as uv writes it) best. What it needs is not asked for.
func (t Tool) Released(ctx context.Context, scratch, project, version, python, platform string) (File, error) {
	pin, err := exact(project, version)
	if err != nil {
		return File{}, diag.Errorf(diag.Usage, "resolving source: %w", err)
	}
	files, err := t.wheels(ctx, scratch, Request{Requirements: []string{pin}, Python: python, Platform: platform}, "--no-deps")
	if err != nil {
		return File{}, err
	}
	if len(files) != 1 {
		return File{}, diag.Errorf(diag.Fetch, "the index has no wheel of %s %s", project, version)
	}
	return files[0], nil
}

// measure asks for the sizes that the index did not state, a few at a time, and
// returns the files sorted by name.
func measure(ctx context.Context, all []found) ([]File, error) {
	files, errs := make([]File, len(all)), make([]error, len(all))
	asked := pool.New().WithMaxGoroutines(8)
	for i, f := range all {
		asked.Go(func() {
			if f.Size <= 0 {
				f.Size, errs[i] = store.Size(ctx, f.source)
			}
			files[i] = f.File
		})
	}
	asked.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, diag.Errorf(diag.Fetch, "%s: %w", all[i].Filename, err)
		}
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Project+" "+a.Filename, b.Project+" "+b.Filename) })
	return files, nil
}

var (
	projectPattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	versionPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._!+-]*$`)
)

// exact pins a version, and refuses what would be another requirement, or an
// option, in uv's input.
func exact(project, version string) (string, error) {
	if !projectPattern.MatchString(project) || !versionPattern.MatchString(version) {
		return "", fmt.Errorf("%q %q is not the name and version of a project", project, version)
	}
	return project + "==" + version, nil
}

// newest stands for any Python where the files do not ask for one.
const newest = "3.14"
