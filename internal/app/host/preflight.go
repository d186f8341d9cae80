package host

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"builder/internal/app/home"
	"builder/internal/app/plan"
	"builder/internal/base/diag"
	"builder/internal/input/oci"
	"builder/internal/input/store"
	"builder/internal/machine/doctor"
	"builder/internal/machine/host"
	"builder/internal/plan/assemble"
	"builder/internal/plan/lock"
	"builder/pipelines"
)

// registryTime limits the wait for a registry's answer.
const registryTime = 5 * time.Second

// Preflight returns an error if this host cannot do the work, before anything is fetched.
// entries are those of the run; empty means the lock still lacks pins.
func Preflight(ctx context.Context, s Setup, entries []lock.Entry) error {
	if s.Builder != nil {
		return nil
	}
	work := doctor.Work{Home: s.Keys.Home, Engine: engineState(ctx, s)}
	var errs []error
	network, _ := net.Interfaces() // what is unknown is no reason to refuse
	if err := checkLoopback(network); err != nil {
		errs = append(errs, err)
	}
	for _, lacks := range doctor.Cannot(ctx, host.This(), work) {
		errs = append(errs, diag.Errorf(diag.NoEngine, "this host cannot do the work: %s: %s", lacks.Name, lacks.Found).
			WithHint("%s; `builder doctor` runs all checks", lacks.Remedy))
	}
	if len(errs) == 0 {
		errs = append(errs, checkImages(ctx, s, heldBy(s, work.Engine), imagesOf(entries)))
	}
	return errors.Join(errs...)
}

// checkLoopback returns an error if the loopback interface is down, as in a new network
// namespace. No restart of the engine would help.
func checkLoopback(all []net.Interface) error {
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 && i.Flags&net.FlagUp == 0 {
			return diag.Errorf(diag.NoEngine, "this host cannot do the work: its loopback interface %s is down, and the engine's client listens on it", i.Name).
				WithHint("ip link set %s up", i.Name)
		}
	}
	return nil
}

// heldBy returns a function that reports whether an engine has an image. For an engine
// in Docker or Podman it checks the images pulled for this home. For an engine given by
// address it returns nil: the engine's images are unknown, and it may reach other
// registries than this host.
func heldBy(s Setup, state doctor.EngineState) func(digest string) bool {
	switch state.Kind {
	case doctor.Native:
		return NativeEngine(s).Holds
	case doctor.Container:
		return func(digest string) bool {
			_, err := os.Stat(pipelines.Pulled(filepath.Join(s.Keys.Home, "scratch"), digest))
			return err == nil
		}
	}
	return nil
}

// peek opens the store of a home, which may be missing, to look for files.
func peek(dir string) *store.Store { return store.Peek(home.StoreDir(dir)) }

// checkImages returns an error for each image missing from the engine if its registry does
// not answer or --offline forbids the query. held reports whether the engine has an image;
// nil means that nobody knows.
func checkImages(ctx context.Context, s Setup, held func(digest string) bool, images []lock.ImagePin) error {
	var errs []error
	for _, pin := range images {
		_, stored := oci.Held(peek(s.Keys.Home), pin.Digest)
		if held == nil || held(pin.Digest) || stored {
			continue
		}
		reference := s.Sources.Registries.Reference(pin.Reference())
		if s.Sources.Offline {
			errs = append(errs, diag.Errorf(diag.Fetch, "image %s: --offline, and the engine does not have it", pin.Reference()).
				WithHint("run once without --offline, so that the engine pulls and keeps the image"))
			continue
		}
		asked, done := context.WithTimeout(ctx, registryTime)
		err := oci.Find(asked, reference)
		done()
		switch {
		case errors.Is(err, oci.ErrSilent):
			errs = append(errs, diag.Errorf(diag.Fetch, "image %s: the engine does not have it, and %w", reference, err).
				WithHint("set HTTPS_PROXY, HTTP_PROXY and NO_PROXY, name a mirror with BUILDER_MIRROR_REGISTRY or an engine that reaches the registry with --engine URL, or bring the image with `builder store export` on another host and `builder store import`; nothing was fetched"))
		case errors.Is(err, oci.ErrAbsent):
			errs = append(errs, diag.Errorf(diag.Fetch, "image %s: %w for linux/amd64", reference, oci.ErrAbsent).
				WithHint("copy the image there with this digest, or name another mirror with BUILDER_MIRROR_REGISTRY; nothing was fetched"))
		case diag.Worst(err) == diag.Usage:
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// forecast returns the requirements of the first chosen cell, and the images that it and
// its input cells are built and run in. Nobody knows the images of a cell that the lock
// does not pin.
func forecast(ctx context.Context, s Setup, of plan.Selection) (*doctor.Needs, []lock.ImagePin, error) {
	drafts, err := assemble.Choose(s.Catalogue, of.Recipe, of.Filter)
	if err != nil {
		return nil, nil, err
	}
	asm := s.Sources.Assembler(s.Catalogue, s.Keys.Home)
	asm.Forbids = "--offline" // no network access here
	entries, err := asm.Entries(ctx, of.Recipe, of.Filter, drafts[:1])
	if err != nil && diag.Worst(err) != diag.Drift {
		return nil, nil, err
	}
	cell := drafts[0].Cell
	needs := &doctor.Needs{Name: of.Recipe.Name, Cell: cell.ID}
	if cuda := cell.Axes["cuda"]; cuda != "none" {
		needs.CUDA = cuda
	}
	return needs, imagesOf(entries), nil
}

// imagesOf returns the images of entries that an engine pulls, each once.
func imagesOf(entries []lock.Entry) (images []lock.ImagePin) {
	for _, e := range entries {
		for _, pin := range e.Pulled() {
			if !slices.ContainsFunc(images, func(p lock.ImagePin) bool { return p.Reference() == pin.Reference() }) {
				images = append(images, pin)
			}
		}
	}
	return images
}
