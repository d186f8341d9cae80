// Package needs adds up the requirements of a recipe's preferred cell on a host:
// memory, files, and the places to fetch them from. It resolves no name and fetches
// nothing. Package doctor checks whether the host meets the requirements.
package needs

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"time"

	"builder/internal/app/assemble"
	"builder/internal/app/doctor"
	"builder/internal/base/diag"
	"builder/internal/build/fetch"
	"builder/internal/build/history"
	"builder/internal/input/oci"
	"builder/internal/input/pypi"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
)

// configTime limits the query for the configuration of pip or go.
const configTime = 20 * time.Second

// Of returns the requirements of the first chosen cell and its input cells. Files in
// the store need no fetch, and images held by the engine need no pull.
func Of(ctx context.Context, asm *assemble.Assembler, r *recipe.Recipe, chosen matrix.Filter, s *store.Store, est Estimator) (*doctor.Needs, error) {
	drafts, _, err := assemble.Choose(asm.Locks.Catalogue, r, chosen)
	if err != nil {
		return nil, err
	}
	d := drafts[0]
	needs := &doctor.Needs{
		Name: r.Name, Cell: d.Cell.ID, Memory: d.Memory,
		CUDA: releaseOf(d.Cell.Axes["cuda"]), ROCm: releaseOf(d.Cell.Axes["rocm"]),
	}
	entries, err := asm.Entries(ctx, r, chosen, drafts[:1])
	switch {
	case diag.Worst(err) == diag.Drift:
		needs.Unpinned, _, _ = strings.Cut(err.Error(), "\n")
		needs.Pin = asm.Locks.PinCommand(r.Name, chosen)
		needs.Debian = d.Image.Debian != nil || d.Runtime.Debian != nil || d.Source.Kind == recipe.Archive
		needs.Python = d.Source.Kind == recipe.Sdist || d.Source.Kind == recipe.Wheel || len(d.Settings.Requires.Build)+len(d.Settings.Requires.Run) > 0
		est.addSource(needs, d.Source.Project, d.Source.Repository)
		err = errors.Join(est.addImage(needs, d.Image.Registry, d.Image.Digest), est.addImage(needs, d.Runtime.Registry, d.Runtime.Digest))
	case err == nil:
		err = est.addEntries(needs, entries, s)
		addCache(ctx, needs, entries, est)
	}
	needs.Programs = pypi.Missing(est.Home, pypi.Options{Store: s})
	if err == nil && (needs.Python || len(needs.Programs) > 0) {
		configured, cancel := context.WithTimeout(ctx, configTime)
		defer cancel()
		needs.Python, needs.Pip, needs.Indexes = true, pypi.HasPip(configured), pypi.Indexes(configured)
		if len(needs.Indexes) == 0 && needs.Pip {
			answered, cancel := context.WithTimeout(ctx, 2*configTime) // a busy host takes seconds to start pip
			defer cancel()
			needs.Answer = pypi.Ask(answered)
		}
	}
	return needs, err
}

// OfEntries returns the combined requirements of entries.
func (est Estimator) OfEntries(entries []lock.Entry, s *store.Store) (*doctor.Needs, error) {
	last := entries[len(entries)-1]
	needs := &doctor.Needs{Name: last.Recipe, Cell: last.ID}
	return needs, est.addEntries(needs, entries, s)
}

// releaseOf returns the value of an axis, or "" for none.
func releaseOf(value string) string {
	if value == "none" {
		return ""
	}
	return value
}

// addEntries adds up the files of entries, and adds the places of files missing from
// the store.
func (est Estimator) addEntries(needs *doctor.Needs, entries []lock.Entry, s *store.Store) error {
	for _, b := range fetch.Blobs(entries...) {
		if _, here := s.Path(b); !here {
			needs.Fetch += b.Size
		}
	}
	for _, e := range entries {
		needs.Memory = max(needs.Memory, e.Memory)
		kind := e.Source.Kind()
		needs.Debian = needs.Debian || kind == recipe.Archive || len(e.Image.Pin.Packages)+len(e.Runtime.Pin.Packages) > 0
		needs.Python = needs.Python || kind == recipe.Sdist || kind == recipe.Wheel || len(e.Image.Wheels)+len(e.Runtime.Wheels) > 0
		if _, here := s.Path(e.Source.Blob()); !here {
			est.addSource(needs, e.Source.Project, e.Source.Repository)
		}
		for _, pin := range e.Pulled() {
			if err := est.addImage(needs, pin.Registry, pin.Digest); err != nil {
				return err
			}
		}
	}
	return nil
}

// addSource adds the repository of a source, or the addresses of --set in its place. ""
// is no repository.
func (est Estimator) addSource(needs *doctor.Needs, project, repository string) {
	places := []string{repository}
	if other := est.Overrides[project]; len(other) > 0 {
		places = other
	}
	for _, p := range places {
		if strings.Contains(p, "://") {
			needs.Places = append(needs.Places, doctor.Place{For: doctor.SourcePlace, URL: p})
		}
	}
}

// addImage adds the registry of an image or its mirror; "" is none.
func (est Estimator) addImage(needs *doctor.Needs, reference, digest string) error {
	if reference == "" {
		return nil
	}
	endpoint, err := oci.Endpoint(est.Registries.Reference(reference))
	if err != nil {
		return err
	}
	name := reference
	if digest != "" {
		name += "@" + digest
	}
	place := doctor.Place{For: doctor.ImagePlace + name, URL: endpoint, Cached: est.Held == nil || est.Held(digest) || est.Stored != nil && est.Stored(digest)}
	if !slices.Contains(needs.Places, place) {
		needs.Places = append(needs.Places, place)
	}
	return nil
}

// AddImage adds the registry of an image to pull.
func AddImage(needs *doctor.Needs, image string) error {
	return Estimator{Held: func(string) bool { return false }}.addImage(needs, image, "")
}

// addCache adds the engine cache of the largest cell to build.
func addCache(ctx context.Context, needs *doctor.Needs, entries []lock.Entry, est Estimator) {
	for _, e := range entries {
		bytes, how, unsized := est.Cache(ctx, e)
		if bytes > needs.Cache {
			needs.Cache, needs.CacheFrom = bytes, how
		}
		for _, image := range unsized {
			if !slices.Contains(needs.Unsized, image) {
				needs.Unsized = append(needs.Unsized, image)
			}
		}
	}
}

// An Estimator estimates the engine cache that a cell needs. A run and doctor use the
// same one.
type Estimator struct {
	Home       string              // the state directory
	Overrides  map[string][]string // other places of sources, by project
	Past       history.History
	Held       func(digest string) bool // whether the engine has an image; nil is unknown
	Stored     func(digest string) bool // whether the store has an image
	Registries oci.Mirrors
	// Size returns the bytes of an image's layers.
	Size func(ctx context.Context, image string) (int64, error)
}

// unpackedImage is the ratio of the engine cache of an image to its layers in the
// registry: the cache keeps the layers, and unpacks them. It is an estimate of
// 2026-11-23, not a measurement.
const unpackedImage = 4

// Measured is the source of a figure that an earlier build of the cell left.
const Measured = "measured in an earlier build"

// Cache returns the engine cache that a cell needs in bytes, the source of the figure,
// and the images to pull whose size is unknown.
func (s Estimator) Cache(ctx context.Context, e lock.Entry) (bytes int64, how string, unsized []string) {
	if bytes, known := s.Past.Disk(e.Recipe, e.ID); known {
		return bytes, Measured, nil
	}
	bytes, how = Cache(e), "estimated from the files of its lock"
	for _, pin := range e.Pulled() {
		if s.Held == nil || s.Held(pin.Digest) {
			continue
		}
		layers, err := s.Size(ctx, pin.Reference())
		if err != nil {
			unsized = append(unsized, pin.Reference())
			continue
		}
		bytes, how = bytes+unpackedImage*layers, "estimated from the files of its lock and the layers of its images"
	}
	return bytes, how, unsized
}

// Cache estimates a cell's use of the engine's cache in bytes, from the files in its
// lock: packages and wheels are unpacked, and every step stores its changes.
func Cache(e lock.Entry) int64 {
	var files int64
	for _, b := range fetch.Blobs(e) {
		files += b.Size
	}
	return emptyCell + unpacked*files
}

// unpacked is the ratio of a cell's engine cache to its files. Measured on 2026-11-22:
// 1.15 GB for 109 MB, 1.40 GB for 122 MB. The cache keeps every layer of the image, and
// the container of the gates is a second image.
const unpacked = 10

// emptyCell is the cache use of a cell without files, in bytes.
const emptyCell = 50e6

// Modules returns the first Go module proxy in this host's configuration, for the
// modules of the engine.
func Modules(ctx context.Context) []doctor.Place {
	ctx, cancel := context.WithTimeout(ctx, configTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "env", "GOPROXY").Output()
	if err != nil {
		return nil // the check of the engine reports a missing go
	}
	for _, address := range strings.FieldsFunc(string(out), func(r rune) bool { return strings.ContainsRune(",| \n", r) }) {
		if strings.HasPrefix(address, "http") {
			return []doctor.Place{{For: doctor.ModulePlace, URL: address, Cached: true}}
		}
	}
	return nil
}
