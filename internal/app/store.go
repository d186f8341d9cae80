package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"builder/internal/build/daemon"
	"builder/internal/build/native"
	"builder/internal/build/results"
	"builder/internal/input/store"
	"builder/internal/machine/host"
	"builder/internal/plan/recipe"
)

// kept is the store of a session's home with the results in it.
type kept struct {
	*Session
	*store.Store
	results *results.Results
}

func (s *Session) kept() (kept, error) {
	opened, err := store.Open(filepath.Join(s.Home, "store"))
	return kept{s, opened, results.New(opened)}, err
}

// A CollectRequest says how much may stay.
type CollectRequest struct {
	Keep       string // a size or a share of the disk
	KeepEngine bool   // leave the caches of the engines
	DryRun     bool
}

// Collected is what went, or would go.
type Collected struct {
	store.Collected
	Staged []string   `json:"staged"`
	Places []*Holding `json:"places"`
	DryRun bool       `json:"dry-run"`
}

// Collect frees disk: the engines' caches, and what the store has too much. What went is
// returned with what went wrong; there are no places where nothing was begun.
func Collect(ctx context.Context, s *Session, r CollectRequest) (Collected, error) {
	k, err := s.kept()
	if err != nil {
		return Collected{}, err
	}
	most, err := sizeOf(r.Keep, s.Home)
	if err != nil {
		return Collected{}, err
	}
	keepOut := k.Alone
	if r.DryRun {
		keepOut = k.Hold
	}
	release, err := keepOut(ctx, func() { s.Note("another builder uses the store: waiting for it") })
	if err != nil {
		return Collected{}, err
	}
	defer release()
	c := Collected{Places: k.places(ctx), DryRun: r.DryRun}
	for _, p := range c.Places {
		p.Before = p.bytes()
	}
	var err1, err2 error
	c.Collected, err1 = k.Collect(store.Want{Most: most, Made: k.results.Made(), DryRun: r.DryRun})
	c.Staged, err2 = k.Unstage(filepath.Join(s.Home, "scratch"), c.Collected, r.DryRun)
	faults := []error{err1, err2}
	for _, p := range c.Places {
		if p.empty != nil && !r.DryRun && !r.KeepEngine {
			faults = append(faults, p.empty())
		}
		p.After = p.bytes()
	}
	return c, errors.Join(faults...)
}

// A StoreCheck is what came of reading every file.
type StoreCheck struct {
	Files   int      `json:"files"`
	Bytes   int64    `json:"bytes"`
	Damaged []string `json:"damaged"`
}

// VerifyStore reads every file and removes the damaged. Damaged is nil where not all
// were read.
func VerifyStore(ctx context.Context, s *Session) (StoreCheck, error) {
	k, err := s.kept()
	if err != nil {
		return StoreCheck{}, err
	}
	release, err := k.Hold(ctx, func() { s.Note("the store is being collected: waiting for it") })
	if err != nil {
		return StoreCheck{}, err
	}
	defer release()
	all, err := k.Survey(nil)
	if err != nil {
		return StoreCheck{}, err
	}
	report := StoreCheck{Damaged: []string{}}
	var faults []error
	for _, f := range all {
		if f.Kind == store.Partial { // of which nothing is promised
			continue
		}
		if ctx.Err() != nil {
			return StoreCheck{}, context.Cause(ctx)
		}
		report.Files++
		report.Bytes += f.Size
		if err := k.Verify(store.Blob{Name: "file", SHA256: f.SHA256}); err != nil {
			report.Damaged = append(report.Damaged, f.SHA256)
			faults = append(faults, err)
		}
	}
	return report, errors.Join(append(faults, k.results.Check())...)
}

// A StoreList is what the store and the directories beside it hold.
type StoreList struct {
	Store   string       `json:"store"`
	Files   int          `json:"files"`
	Bytes   int64        `json:"bytes"`
	Results int          `json:"results"`
	Kinds   []StoreGroup `json:"kinds"`
	Places  []*Holding   `json:"places"`
}

// A StoreGroup is the files of one kind.
type StoreGroup struct {
	Kind  store.Kind `json:"kind"`
	Files int        `json:"files"`
	Bytes int64      `json:"bytes"`
}

// ListStore says how many files of which kind the store holds.
func ListStore(ctx context.Context, s *Session) (StoreList, error) {
	k, err := s.kept()
	if err != nil {
		return StoreList{}, err
	}
	all, err := k.Survey(k.results.Made())
	if err != nil {
		return StoreList{}, err
	}
	report := StoreList{Store: filepath.Join(s.Home, "store"), Files: len(all), Results: len(k.Store.Results())}
	for _, kind := range store.Kinds() {
		g := StoreGroup{Kind: kind}
		for _, f := range all {
			if f.Kind == kind {
				g.Files++
				g.Bytes += f.Size
			}
		}
		report.Bytes += g.Bytes
		report.Kinds = append(report.Kinds, g)
	}
	report.Places = k.places(ctx)
	for _, p := range report.Places {
		p.Before = p.bytes()
		p.After = p.Before
	}
	return report, nil
}

// A Holding is a directory of the home beside the store that takes disk.
type Holding struct {
	Name   string `json:"place"`
	Before int64  `json:"before"` // bytes
	After  int64  `json:"after"`
	bytes  func() int64
	empty  func() error // nil where it is not emptied as a whole
}

// Emptied reports whether the place is emptied as a whole.
func (h *Holding) Emptied() bool { return h.empty != nil }

// places are scratch and the caches of the engines that builder starts for a home.
func (k kept) places(ctx context.Context) []*Holding {
	own := k.NativeEngine()
	bytes := func(dir string, without ...func(fs.FileInfo) bool) func() int64 {
		return func() int64 {
			n, _ := native.DiskUsage(ctx, dir, without...) // what cannot be read is not counted
			return n
		}
	}
	linked := func(info fs.FileInfo) bool { // to a file of the store, and takes nothing
		stat, ok := info.Sys().(*syscall.Stat_t)
		return ok && info.Mode().IsRegular() && stat.Nlink > 1
	}
	state := own.Look().StateDir
	all := []*Holding{
		{Name: "scratch", bytes: bytes(filepath.Join(k.Home, "scratch"), linked)},
		{Name: "the engine's cache", bytes: bytes(state), empty: func() error { return own.Empty(ctx) }},
	}
	d, found := k.Daemon(ctx)
	if it := daemon.Of(k.Home); found && d.Volume(ctx, it) != "" {
		all = append(all, &Holding{
			Name: "the engine's cache in " + string(d), bytes: bytes(d.Volume(ctx, it)), empty: func() error { return d.Empty(ctx, it) },
		})
	}
	return all
}

// sizeOf reads --keep.
func sizeOf(text, home string) (int64, error) {
	if text == "0" {
		return 0, nil
	}
	disk, _, err := host.Disk(home)
	if err != nil {
		return 0, err
	}
	n, err := recipe.ParseShare(text, disk)
	if err != nil {
		return 0, fmt.Errorf("--keep: %w", err)
	}
	return n, nil
}
