package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"builder/internal/app/doctor"
	"builder/internal/app/needs"
	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
	"builder/internal/build/fetch"
	"builder/internal/build/history"
	"builder/internal/input/oci"
	"builder/internal/input/store"
	"builder/internal/machine/host"
	"builder/internal/plan/lock"
	"builder/pipelines"
)

// rooms counts the cache and disk space of one engine used by running cells.
type rooms struct {
	mu     sync.Mutex
	taken  int64 // expected cache use of the running cells in bytes
	cells  int
	shared bool             // cells have overlapped since the engine was last idle
	took   map[string]int64 // by cell: cache use of cells that ran alone
}

// room makes room for a cell in the cache of an engine started by builder. It collects
// cache beyond the bound first, then all unused cache. The caller calls ended when the
// cell has ended. For other engines room does nothing: they bound their own cache.
func (e *engine) room(ctx context.Context, entry lock.Entry) (ended func(), err error) {
	if e.disk == "" {
		return func() {}, nil
	}
	need, how := e.need(ctx, entry)
	e.rooms.mu.Lock()
	defer e.rooms.mu.Unlock()
	had := int64(-1)
	// A question to the engine takes a session, and with it a third of a second of a
	// processor.
	if how != needs.Measured && !e.made(entry.Image) || !e.fits(need+e.rooms.taken) {
		if had, err = e.collect(ctx, need+e.rooms.taken); err != nil { // the build will report an engine error
			e.Note("cannot measure the free space for %s: %v", entry.ID, err)
			return func() {}, nil
		}
	}
	if err := e.enough(need, how, entry); err != nil {
		return nil, err
	}
	e.rooms.taken += need
	e.rooms.shared = e.rooms.cells > 0 || e.rooms.shared
	e.rooms.cells++
	return func() { e.leave(ctx, entry, need, had) }, nil
}

// fits reports whether the disk has room for more bytes, even if all that it holds were
// the engine's cache.
func (e *engine) fits(more int64) bool {
	size, left, err := host.Disk(e.disk)
	return err == nil && left >= more && (e.Native.Cache == 0 || size-left+more <= e.Native.Cache)
}

// made reports whether the engine has made the image of a cell before. The use of a
// further cell says little then: see [workspace.rememberDisk].
func (e *engine) made(img lock.Image) bool {
	_, err := os.Stat(imageMark(e.scratch, img))
	return err == nil
}

// imageMark returns the path of the file that marks an image as made.
func imageMark(scratch string, img lock.Image) string {
	return filepath.Join(scratch, "made-"+img.Key()[:16])
}

// need returns the cache use of a cell in bytes, and the source of the figure.
func (e *engine) need(ctx context.Context, entry lock.Entry) (bytes int64, how string) {
	bytes, how, _ = e.estimator(ctx, e.heldHere).Cache(ctx, entry)
	return bytes, how
}

// heldHere reports whether an engine that builder starts has an image.
func (s *Session) heldHere(digest string) bool {
	return s.heldBy(doctor.EngineState{Kind: doctor.Native})(digest) || s.heldBy(doctor.EngineState{Kind: doctor.Container})(digest)
}

// estimator returns the estimator of this host. held reports whether the engine has an
// image.
func (s *Session) estimator(ctx context.Context, held func(digest string) bool) needs.Estimator {
	past, _ := history.Read(ctx, s.Home)
	return needs.Estimator{Home: s.Home, Overrides: s.Places(), Past: past, Held: held, Stored: s.stored, Size: s.imageSize, Registries: s.Registries}
}

// stored reports whether the store of the home has an image.
func (s *Session) stored(digest string) bool {
	_, held := s.imageBlobs(digest)
	return held
}

// imageBlobs returns the blobs of an image in the store of the home.
func (s *Session) imageBlobs(digest string) ([]store.Blob, bool) {
	return oci.Held(store.Peek(filepath.Join(s.Home, "store")), digest)
}

// imageSize returns the bytes of an image's layers, from the store if it has the image.
// Otherwise a session asks its registry once.
func (s *Session) imageSize(ctx context.Context, image string) (int64, error) {
	_, digest, _ := strings.Cut(image, "@")
	if blobs, held := s.imageBlobs(digest); held {
		var bytes int64
		for _, b := range blobs {
			bytes += b.Size
		}
		return bytes, nil
	}
	s.sizing.Lock()
	defer s.sizing.Unlock()
	if known, asked := s.sizes[image]; asked {
		return known.bytes, known.err
	}
	if s.Offline {
		return 0, errors.New("--offline")
	}
	asked, done := context.WithTimeout(ctx, registryTime)
	defer done()
	bytes, err := oci.Size(asked, s.Registries.Reference(image))
	if s.sizes == nil {
		s.sizes = map[string]imageSize{}
	}
	s.sizes[image] = imageSize{bytes, err}
	return bytes, err
}

// imageSize is the answer of a registry.
type imageSize struct {
	bytes int64
	err   error
}

// collect tries to make room for wanted bytes and returns the size of the cache
// afterwards.
func (e *engine) collect(ctx context.Context, wanted int64) (has int64, err error) {
	for _, all := range []bool{false, true} {
		if has, err = e.chosen.CacheBytes(ctx); err != nil {
			return 0, err
		}
		_, left, err := host.Disk(e.disk)
		if bound := e.Native.Cache; err != nil || left >= wanted && (bound == 0 || has+wanted <= bound) || has == 0 {
			return has, err
		}
		which := "old entries"
		if all {
			which = "all unused entries"
		}
		e.Note("the engine's cache has %s, the next cell needs about %s, and the disk has %s free: removing %s", gigabytes(has), gigabytes(wanted), gigabytes(left), which)
		if err := e.chosen.Prune(ctx, all); err != nil {
			return 0, err
		}
	}
	return e.chosen.CacheBytes(ctx)
}

// enough returns an error if a cell still has too little room after collecting.
func (e *engine) enough(need int64, how string, entry lock.Entry) error {
	if err := e.within(need, how, entry); err != nil {
		return err
	}
	_, left, err := host.Disk(e.disk)
	if err == nil && left < need {
		err = tooLittle(e.disk, left, fmt.Sprintf("%s needs about %s of the engine's cache (%s)", entry.ID, gigabytes(need), how))
	}
	return err
}

// within returns an error if a cell needs more than the limit of the cache.
func (e *engine) within(need int64, how string, entry lock.Entry) error {
	if limit := e.Native.Cache; limit > 0 && need > limit {
		return diag.Errorf(diag.NoEngine, "%s needs about %s of the engine's cache (%s), whose limit is %s", entry.ID, gigabytes(need), how, gigabytes(limit)).
			WithHint("%s", doctor.RaiseLimit(need))
	}
	return nil
}

// leave ends the reservation of room. It records the cell's cache use if no other cell
// ran at the same time. had is the size of the cache before, or -1 if nobody asked.
func (e *engine) leave(ctx context.Context, entry lock.Entry, need, had int64) {
	e.rooms.mu.Lock()
	defer e.rooms.mu.Unlock()
	alone := !e.rooms.shared
	e.rooms.taken -= need
	if e.rooms.cells--; e.rooms.cells == 0 {
		e.rooms.shared = false
	}
	if !alone || had < 0 || ctx.Err() != nil {
		return
	}
	asked, done := context.WithTimeout(ctx, engineTime)
	defer done()
	if has, err := e.chosen.CacheBytes(asked); err == nil && has > had {
		if e.rooms.took == nil {
			e.rooms.took = map[string]int64{}
		}
		e.rooms.took[entry.ID] = has - had
	}
}

// rememberDisk stores the cache use of a cell, unless its image was already in the
// cache, and marks the image as made.
func (w *workspace) rememberDisk(ctx context.Context, entry lock.Entry, steps map[string]float64) error {
	mark := func() error { return atomicfile.Write(imageMark(w.scratch, entry.Image), nil) }
	if _, cold := steps["image"]; !cold {
		if _, built := steps[pipelines.LastStep]; built { // with an image from the cache
			return mark()
		}
		return nil
	}
	for _, e := range w.engines {
		e.rooms.mu.Lock()
		bytes := e.rooms.took[entry.ID]
		e.rooms.mu.Unlock()
		if bytes > 0 {
			return errors.Join(history.AddDisk(ctx, w.Home, entry.Recipe, entry.ID, bytes), mark())
		}
	}
	return nil
}

// tooLittle returns the error for a disk with too little free space.
func tooLittle(disk string, left int64, wanted string) error {
	return diag.Errorf(diag.NoEngine, "the disk of %s has %s free: %s", disk, gigabytes(left), wanted).
		WithHint("free space: `builder store gc` empties the engine's cache, with --keep 0 the store too; or set BUILDER_HOME to a larger disk")
}

// makeRoom checks the disk space before the first fetch. The disk needs room for the
// files of all cells to build and for the cache of the largest cell. If it has too
// little, makeRoom collects the engine's cache. If there is only one engine, each cell
// must fit the limit of its cache.
func (w *workspace) makeRoom(ctx context.Context, build []lock.Entry) error {
	i := slices.IndexFunc(w.engines, func(e *engine) bool { return e.Address == "" })
	if len(build) == 0 {
		return nil
	}
	var files, cache int64
	for _, b := range fetch.Blobs(build...) {
		if _, here := w.store.Path(b); !here {
			files += b.Size
		}
	}
	wanted := fmt.Sprintf("the run fetches %s", gigabytes(files))
	if i >= 0 {
		here := w.engines[i].here(ctx)
		var large []error
		for _, entry := range build {
			need, how := w.engines[i].need(ctx, entry)
			if len(w.engines) == 1 {
				large = append(large, w.engines[i].within(need, how, entry))
			}
			if here && need > cache {
				cache = need
				wanted = fmt.Sprintf("the run fetches %s, and %s needs about %s of the engine's cache (%s)", gigabytes(files), entry.ID, gigabytes(need), how)
			}
		}
		if err := errors.Join(large...); err != nil {
			return err
		}
	}
	_, left, err := host.Disk(w.Home)
	if err != nil || left >= files+cache {
		return nil // if the free space is unknown, a later error reports a full disk
	}
	if cache > 0 {
		left, err = w.engines[i].free(ctx, files+cache, left)
	}
	if err == nil && left < files+cache {
		err = tooLittle(w.Home, left, wanted)
	}
	return err
}

// here reports whether the engine keeps its cache in the home.
func (e *engine) here(ctx context.Context) bool {
	if e.NativeOnly {
		return true
	}
	_, found := e.Daemon(ctx)
	return !found
}

// free collects the engine's cache for a run and returns the free disk space
// afterwards. It does not collect if the cache is too small to help.
func (e *engine) free(ctx context.Context, wanted, left int64) (int64, error) {
	if has, err := e.NativeEngine().CacheBytes(ctx); err != nil || left+has < wanted {
		return left, err
	}
	if _, err := e.up(ctx); err != nil {
		return left, err
	}
	if _, err := e.collect(ctx, wanted); err != nil {
		return left, err
	}
	_, left, err := host.Disk(e.Home)
	return left, err
}

func gigabytes(n int64) string { return fmt.Sprintf("%.1f GB", float64(n)/1e9) }
