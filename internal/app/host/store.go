package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

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
		p.Before = p.bytes()
	}
	var err1, err2, err3 error
	c.Collected, err1 = kept.Collect(most, r.DryRun)
	c.Results, err2 = results.New(kept).Without(c.Files, r.DryRun)
	c.Staged, err3 = kept.Unstage(filepath.Join(s.Keys.Home, "scratch"), r.DryRun)
	errs := []error{err1, err2, err3}
	for _, p := range c.Places {
		if p.empty != nil && !r.DryRun {
			errs = append(errs, p.empty())
		}
		p.After = p.bytes()
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
	kept, err := store.Open(home.StoreDir(s.Keys.Home))
	if err != nil {
		return StoreCheck{}, err
	}
	release, err := kept.Hold(ctx, func() { s.Keys.Note("the store is being collected: waiting for it") })
	if err != nil {
		return StoreCheck{}, err
	}
	defer release()
	all, err := kept.Survey()
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
		if err := kept.Verify(store.Blob{Name: "file", SHA256: f.SHA256}); err != nil {
			report.Damaged = append(report.Damaged, f.SHA256)
			errs = append(errs, err)
		}
	}
	return report, errors.Join(append(errs, results.New(kept).Check())...)
}

// A Holding is a directory beside the store that uses disk space.
type Holding struct {
	Name   string `json:"place"`
	Before int64  `json:"before"` // bytes
	After  int64  `json:"after"`
	bytes  func() int64
	empty  func() error // nil if collecting does not empty it
}

// Emptied reports whether collecting empties the place.
func (h *Holding) Emptied() bool { return h.empty != nil }

// placesOf returns the scratch directory and the caches of a home's engines, if builder
// starts them.
func placesOf(ctx context.Context, s Setup) []*Holding {
	own := NativeEngine(s)
	bytes := func(dir string, without ...func(fs.FileInfo) bool) func() int64 {
		return func() int64 {
			n, _ := native.DiskUsage(ctx, dir, without...) // unreadable files are not counted
			return n
		}
	}
	linked := func(info fs.FileInfo) bool { // a hard link to a file of the store uses no space
		stat, ok := info.Sys().(*syscall.Stat_t)
		return ok && info.Mode().IsRegular() && stat.Nlink > 1
	}
	state := own.Look().StateDir
	all := []*Holding{
		{Name: "scratch", bytes: bytes(filepath.Join(s.Keys.Home, "scratch"), linked)},
		{Name: "the engine's cache", bytes: bytes(state), empty: func() error { return own.Empty(ctx) }},
	}
	d, found := s.Engines.Daemon()
	if it := daemon.Of(s.Keys.Home); found && d.Volume(ctx, it) != "" {
		all = append(all, &Holding{
			Name: "the engine's cache in " + string(d), bytes: bytes(d.Volume(ctx, it)), empty: func() error { return d.Empty(ctx, it) },
		})
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
