package host

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"builder/internal/app/plan"
	"builder/internal/base/diag"
	"builder/internal/build/fetch"
	"builder/internal/input/oci"
	"builder/internal/input/pypi"
	"builder/internal/input/store"
	"builder/internal/machine/doctor"
	"builder/internal/plan/assemble"
	"builder/internal/plan/lock"
	"builder/internal/plan/recipe"
)

// configTime limits the query for the configuration of pip or go.
const configTime = 20 * time.Second

// forecast returns the requirements of the first chosen cell and its input cells. Files
// in the store need no fetch, and images held by the engine need no pull.
func (h forecaster) forecast(ctx context.Context, asm *assemble.Assembler, of plan.Selection) (*doctor.Needs, error) {
	r, chosen := of.Recipe, of.Filter
	drafts, err := assemble.Choose(asm.Locks.Catalogue, r, chosen)
	if err != nil {
		return nil, err
	}
	d := drafts[0]
	needs := &doctor.Needs{
		Name: r.Name, Cell: d.Cell.ID, Memory: d.Memory,
	}
	if cuda := d.Cell.Axes["cuda"]; cuda != "none" {
		needs.CUDA = cuda
	}
	var debian, python bool
	entries, err := asm.Entries(ctx, r, chosen, drafts[:1])
	switch {
	case diag.Worst(err) == diag.Drift:
		needs.Unpinned, _, _ = strings.Cut(err.Error(), "\n")
		needs.Pin = asm.Locks.PinCommand(r.Name, chosen)
		debian = d.Image.Debian != nil || d.Runtime.Debian != nil || d.Source.Kind == recipe.Archive
		python = d.Source.Kind == recipe.Sdist || d.Source.Kind == recipe.Wheel || len(d.Settings.Requires.Build)+len(d.Settings.Requires.Run) > 0
		h.addSource(needs, d.Source.Project, d.Source.Repository)
		err = errors.Join(h.addImage(needs, d.Image.Registry, d.Image.Digest), h.addImage(needs, d.Runtime.Registry, d.Runtime.Digest))
	case err == nil:
		for _, e := range entries {
			kind := e.Source.Kind()
			debian = debian || kind == recipe.Archive || len(e.Image.Pin.Packages)+len(e.Runtime.Pin.Packages) > 0
			python = python || kind == recipe.Sdist || kind == recipe.Wheel || len(e.Image.Wheels)+len(e.Runtime.Wheels) > 0
		}
		err = h.addEntries(needs, entries)
	}
	programs := len(h.missingPrograms()) > 0
	fetches := needs.Fetch > 0 || needs.Unpinned != ""
	if debian && fetches {
		needs.Places = append(needs.Places, h.mirrors()...)
	}
	if python && fetches || programs {
		needs.Places = append(needs.Places, indexes(ctx)...)
	}
	return needs, err
}

// missingPrograms names the programs of builder that pip has still to fetch.
func (h forecaster) missingPrograms() []string {
	return pypi.Missing(h.home, pypi.Options{Store: h.store})
}

// mirrors returns the configured Debian archives.
func (h forecaster) mirrors() []doctor.Place {
	const what = "Debian packages"
	var places []doctor.Place
	for _, m := range h.sources.Mirrors {
		places = append(places, doctor.Place{For: what, URL: strings.TrimSuffix(m, "/") + "/"})
	}
	if len(places) == 0 {
		none := func(context.Context) error {
			return errors.New("names no Debian archive: set BUILDER_MIRROR_DEBIAN to the address of a mirror")
		}
		places = append(places, doctor.Place{For: what, URL: "the apt configuration", Ask: none})
	}
	return places
}

// indexes returns the Python package indexes in the configuration of uv and pip. Without
// one, pip asks its default index.
func indexes(ctx context.Context) []doctor.Place {
	configured, cancel := context.WithTimeout(ctx, configTime)
	defer cancel()
	var places []doctor.Place
	for i, index := range pypi.Indexes(configured) {
		places = append(places, doctor.Place{For: fmt.Sprintf("Python packages, index %d", i+1), URL: index}) // uv needs each of them
	}
	if len(places) == 0 {
		ask := func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 2*configTime) // a busy host takes seconds to start pip
			defer cancel()
			return pypi.Ask(ctx)
		}
		places = append(places, doctor.Place{For: "Python packages", URL: "the default index", Ask: ask, Cached: !pypi.HasPip(configured)})
	}
	return places
}

// ofEntries returns the combined requirements of entries.
func (h forecaster) ofEntries(entries []lock.Entry) (*doctor.Needs, error) {
	last := entries[len(entries)-1]
	needs := &doctor.Needs{Name: last.Recipe, Cell: last.ID}
	return needs, h.addEntries(needs, entries)
}

// addEntries adds up the files of entries, and adds the places of files missing from
// the store.
func (h forecaster) addEntries(needs *doctor.Needs, entries []lock.Entry) error {
	for _, b := range fetch.Blobs(entries...) {
		if _, here := h.store.Path(b); !here {
			needs.Fetch += b.Size
		}
	}
	for _, e := range entries {
		needs.Memory = max(needs.Memory, e.Memory)
		if _, here := h.store.Path(e.Source.Blob()); !here {
			h.addSource(needs, e.Source.Project, e.Source.Repository)
		}
		for _, pin := range e.Pulled() {
			if err := h.addImage(needs, pin.Registry, pin.Digest); err != nil {
				return err
			}
		}
	}
	return nil
}

// addSource adds the repository of a source, or the addresses of --set in its place. ""
// is no repository.
func (h forecaster) addSource(needs *doctor.Needs, project, repository string) {
	places := []string{repository}
	if other := h.sources.Places()[project]; len(other) > 0 {
		places = other
	}
	for _, p := range places {
		if strings.Contains(p, "://") {
			needs.Places = append(needs.Places, doctor.Place{For: "source of " + project, URL: p})
		}
	}
}

// addImage adds the registry of an image or its mirror; "" is none.
func (h forecaster) addImage(needs *doctor.Needs, reference, digest string) error {
	if reference == "" {
		return nil
	}
	endpoint, err := oci.Endpoint(h.sources.Registries.Reference(reference))
	if err != nil {
		return err
	}
	name := reference
	if digest != "" {
		name += "@" + digest
	}
	place := doctor.Place{
		For: "image " + name, URL: endpoint, Image: name,
		Cached: h.held == nil || h.held(digest) || stored(h.home, digest),
	}
	if !slices.ContainsFunc(needs.Places, func(p doctor.Place) bool { return p.Image == name }) {
		needs.Places = append(needs.Places, place)
	}
	return nil
}

// A forecaster adds up requirements. It knows what is still to be fetched.
type forecaster struct {
	home    string
	store   *store.Store
	sources plan.Sources
	held    func(digest string) bool // whether the engine has an image; nil is unknown
}

func forecastOf(s Setup, held func(digest string) bool) forecaster {
	return forecaster{s.Keys.Home, peek(s.Keys.Home), s.Sources, held}
}

// modules returns the first Go module proxy in this host's configuration, for the
// modules of the engine.
func modules(ctx context.Context) []doctor.Place {
	ctx, cancel := context.WithTimeout(ctx, configTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "env", "GOPROXY").Output()
	if err != nil {
		return nil // the check of the engine reports a missing go
	}
	for _, address := range strings.FieldsFunc(string(out), func(r rune) bool { return strings.ContainsRune(",| \n", r) }) {
		if strings.HasPrefix(address, "http") {
			return []doctor.Place{{For: "Go modules of the engine", URL: address, Cached: true}}
		}
	}
	return nil
}
