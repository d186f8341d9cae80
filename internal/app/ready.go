package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"builder/internal/machine/doctor"
	"builder/internal/app/needs"
	"builder/internal/base/diag"
	"builder/internal/build/native"
	"builder/internal/input/oci"
	"builder/internal/input/store"
	"builder/internal/machine/host"
	"builder/internal/plan/lock"
	"builder/pipelines"
)

// registryTime limits the wait for a registry's answer.
const registryTime = 5 * time.Second

// ready returns an error if this host cannot do the work, before anything is fetched.
// entries are those of the run; empty means the lock still lacks pins.
func (w *workspace) ready(ctx context.Context, entries []lock.Entry) error {
	if w.Builder != nil {
		return nil
	}
	work := doctor.Work{Home: w.Home, Engine: w.engineState(ctx)}
	if len(entries) > 0 {
		var err error
		work.Recipe, err = w.host(w.heldBy(work.Engine)).OfEntries(entries, store.Peek(filepath.Join(w.Home, "store")))
		if err != nil {
			return err
		}
	}
	var errs []error
	for _, lacks := range cannot(ctx, work) {
		errs = append(errs, diag.Errorf(diag.NoEngine, "this host cannot do the work: %s: %s", lacks.Name, lacks.Found).
			WithHint("%s; `builder doctor` runs all checks", lacks.Remedy))
	}
	if len(errs) == 0 && work.Recipe != nil {
		errs = append(errs, w.pullable(ctx, work.Recipe.Places))
	}
	return errors.Join(errs...)
}

// cannot returns the failed checks of the host. Of several engines given by address,
// one working engine is enough: it builds the cells of the others.
func cannot(ctx context.Context, work doctor.Work) []doctor.Result {
	if len(work.Engine.Addresses) > 1 {
		for _, address := range work.Engine.Addresses {
			one := work
			one.Engine.Addresses = []string{address}
			if failed := doctor.Cannot(ctx, host.This(), one); len(failed) == 0 {
				return nil
			}
		}
	}
	return doctor.Cannot(ctx, host.This(), work)
}

// heldBy returns a function that reports whether an engine has an image. For an engine
// in Docker or Podman it checks the images pulled for this home. For an engine given by
// address it returns nil: the engine's images are unknown, and it may reach other
// registries than this host.
func (s *Session) heldBy(state doctor.EngineState) func(digest string) bool {
	switch state.Kind {
	case doctor.Native:
		return native.New(s.Home, func(string, ...any) {}, s.Native).Holds
	case doctor.Container:
		return func(digest string) bool {
			_, err := os.Stat(pipelines.Pulled(filepath.Join(s.Home, "scratch"), digest))
			return err == nil
		}
	}
	return nil
}

// heldHere reports whether an engine that builder starts has an image.
func (s *Session) heldHere(digest string) bool {
	return s.heldBy(doctor.EngineState{Kind: doctor.Native})(digest) || s.heldBy(doctor.EngineState{Kind: doctor.Container})(digest)
}

// host returns the state of this host that decides what a run fetches. held reports
// whether the engine has an image.
func (s *Session) host(held func(digest string) bool) needs.Host {
	return needs.Host{Home: s.Home, Overrides: s.Places(), Held: held, Stored: s.stored, Registries: s.Registries}
}

// stored reports whether the store of the home has an image.
func (s *Session) stored(digest string) bool {
	_, held := oci.Held(store.Peek(filepath.Join(s.Home, "store")), digest)
	return held
}

// find asks the registry of an image for it.
func (s *Session) find(ctx context.Context, image string) error {
	asked, done := context.WithTimeout(ctx, registryTime)
	defer done()
	return oci.Find(asked, s.Registries.Reference(image))
}

// pullable returns an error for each image missing from the engine if its registry does
// not answer or --offline forbids the query.
func (w *workspace) pullable(ctx context.Context, places []doctor.Place) error {
	asked := map[string]error{}
	var errs []error
	for _, p := range places {
		image := p.Image
		if image == "" || p.Cached {
			continue
		}
		if w.Offline {
			errs = append(errs, diag.Errorf(diag.Fetch, "image %s: --offline, and the engine does not have it", image).
				WithHint("run once without --offline, so that the engine pulls and keeps the image"))
			continue
		}
		if _, done := asked[p.URL]; !done {
			asked[p.URL] = answers(ctx, p.URL)
		}
		if err := asked[p.URL]; err != nil {
			errs = append(errs, diag.Errorf(diag.Fetch, "image %s: the engine does not have it, and its registry does not answer: %w", w.Registries.Reference(image), err).
				WithHint("set HTTPS_PROXY, HTTP_PROXY and NO_PROXY, name a mirror with BUILDER_MIRROR_REGISTRY or an engine that reaches the registry with --engine URL, or bring the image with `builder store export` on another host and `builder store import`; nothing was fetched"))
			continue
		}
		if err := w.find(ctx, image); errors.Is(err, oci.ErrAbsent) {
			errs = append(errs, diag.Errorf(diag.Fetch, "image %s: %w for linux/amd64", w.Registries.Reference(image), oci.ErrAbsent).
				WithHint("copy the image there with this digest, or name another mirror with BUILDER_MIRROR_REGISTRY; nothing was fetched"))
		}
	}
	return errors.Join(errs...)
}

// answers queries the server at url. A timeout is no error: the server may be slow.
func answers(ctx context.Context, url string) error {
	asked, done := context.WithTimeout(ctx, registryTime)
	defer done()
	status, err := host.This().Ask(asked, url)
	switch {
	case err != nil && asked.Err() == nil:
		return err
	case status == 407:
		return errors.New("the proxy requires a password (407)")
	}
	return nil
}
