package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"builder/internal/app/home"
	"builder/internal/base/size"
	"builder/internal/build/daemon"
	"builder/internal/build/native"
	"builder/internal/build/results"
	"builder/internal/input/store"
	"builder/internal/machine/host"
)

// A CollectRequest sets the limits for collecting.
type CollectRequest struct {
	Keep   string // a size or a percentage of the disk
	DryRun bool
}

// Collected lists the removed files; with DryRun the files to remove.
type Collected struct {
	store.Collected
	Results []string   `json:"results"` // keys
	Staged  []string   `json:"staged"`
	Places  []*Holding `json:"places"`
	DryRun  bool       `json:"dry-run"`
}

// Collect frees disk space: it empties the engines' caches and removes files of the
// store beyond the limit. On an error it still reports the removed files. Places is
// empty if nothing was started.
func Collect(ctx context.Context, s Setup, r CollectRequest) (Collected, error) {
	kept, err := store.Open(home.StoreDir(s.Keys.Home))
	if err != nil {
		return Collected{}, err
	}
	most, err := sizeOf(r.Keep, s.Keys.Home)
	if err != nil {
		return Collected{}, err
	}
	keepOut := kept.Alone
	if r.DryRun {
		keepOut = kept.Hold
	}
	release, err := keepOut(ctx, func() { s.Keys.Note("another builder uses the store: waiting for it") })
	if err != nil {
		return Collected{}, err
	}
	defer release()
	c := Collected{Places: placesOf(ctx, s), DryRun: r.DryRun}
	for _, p := range c.Places {
		p.Before, _ = native.DiskUsage(ctx, p.dir) // an unknown size changes nothing
	}
	var err1, err2, err3 error
	c.Collected, err1 = kept.Collect(most, r.DryRun)
	c.Results, err2 = results.New(kept).Without(c.Files, r.DryRun)
	c.Staged, err3 = store.Unstage(filepath.Join(s.Keys.Home, "scratch"), r.DryRun)
	errs := []error{err1, err2, err3}
	for _, p := range c.Places {
		if !r.DryRun {
			errs = append(errs, p.empty())
		}
		p.After, _ = native.DiskUsage(ctx, p.dir)
	}
	return c, errors.Join(errs...)
}

// A StoreCheck is the result of reading every file.
type StoreCheck struct {
	Files   int      `json:"files"`
	Bytes   int64    `json:"bytes"`
	Damaged []string `json:"damaged"`
}

// VerifyStore reads every file and removes damaged ones. Damaged is nil if it did not
// read all files.
func VerifyStore(ctx context.Context, s Setup) (StoreCheck, error) {
	w, err := home.Open(ctx, s.Keys, s.NoInstall)
	if err != nil {
		return StoreCheck{}, err
	}
	defer w.Close()
	all, err := w.Store.Survey()
	if err != nil {
		return StoreCheck{}, err
	}
	report := StoreCheck{Damaged: []string{}}
	var errs []error
	for _, f := range all {
		if f.Partial { // an unfinished download has no digest to check
			continue
		}
		if ctx.Err() != nil {
			return StoreCheck{}, context.Cause(ctx)
		}
		report.Files++
		report.Bytes += f.Size
		if err := w.Store.Verify(store.Blob{Name: "file", SHA256: f.SHA256}); err != nil {
			report.Damaged = append(report.Damaged, f.SHA256)
			errs = append(errs, err)
		}
	}
	return report, errors.Join(append(errs, results.New(w.Store).Check())...)
}

// A Holding is the cache of an engine, which collecting empties.
type Holding struct {
	Name   string `json:"place"`
	Before int64  `json:"before"` // bytes
	After  int64  `json:"after"`
	dir    string
	empty  func() error
}

// placesOf returns the caches of a home's engines that builder starts.
func placesOf(ctx context.Context, s Setup) []*Holding {
	own := NativeEngine(s)
	all := []*Holding{{Name: "the engine's cache", dir: own.Look().StateDir, empty: func() error { return own.Empty(ctx) }}}
	d, found := s.Engines.Daemon()
	if !found {
		return all
	}
	it := daemon.Of(s.Keys.Home)
	if volume := d.Volume(ctx, it); volume != "" {
		all = append(all, &Holding{Name: "the engine's cache in " + string(d), dir: volume, empty: func() error { return d.Empty(ctx, it) }})
	}
	return all
}

// sizeOf parses --keep.
func sizeOf(text, home string) (int64, error) {
	if text == "0" {
		return 0, nil
	}
	disk, err := host.DiskOf(home)
	if err != nil {
		return 0, err
	}
	n, err := size.Share(text, disk.Size)
	if err != nil {
		return 0, fmt.Errorf("--keep: %w", err)
	}
	return n, nil
}
