package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/urfave/cli/v2"

	"builder/internal/app/catalogue"
	"builder/internal/base/diag"
	"builder/internal/build/daemon"
	"builder/internal/build/native"
	"builder/internal/build/results"
	"builder/internal/input/store"
	"builder/internal/machine/host"
	"builder/internal/plan/recipe"
	"builder/internal/view/term"
)

func storeCommand(cat catalogue.Catalogue, fault error, out printer) *cli.Command {
	return &cli.Command{
		Name: "store", Usage: "the files that builds are made of: carry, collect, verify and list them",
		OnUsageError: usageError, Action: unknownCommand, HideHelpCommand: true,
		Subcommands: []*cli.Command{
			exportCommand(cat, fault, out),
			importCommand(cat, fault, out),
			{
				Name: "gc", Usage: "free disk: the engine's cache, and what the store has too much", OnUsageError: usageError,
				Description: "Empties the cache of the engine that builder starts: the next builds make it\nagain from the store. Of the store goes what was not wanted for the longest time:\nfirst what is half fetched, then what can be fetched again, and last what cells\nmade. Scratch loses what nobody used for a day. Waits until no other builder uses\nthe store.",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "keep", Value: "10%", Usage: "until the store holds at most `SIZE`, such as 50GB or 0, or a share of the disk"},
					&cli.BoolFlag{Name: "keep-engine", Usage: "leave the engine's cache, which keeps its own bound (--engine-cache)"},
					&cli.BoolFlag{Name: "dry-run", Usage: "say what would go, and remove nothing"},
					jsonFlag(),
				},
				Action: func(c *cli.Context) error { return collect(c, out) },
			},
			{
				Name: "verify", Usage: "read every file and remove the damaged: exit 8 if there are any", OnUsageError: usageError,
				Flags:  []cli.Flag{jsonFlag()},
				Action: func(c *cli.Context) error { return verifyStore(c, out) },
			},
			{
				Name: "list", Usage: "how many files of which kind the store holds", OnUsageError: usageError,
				Flags:  []cli.Flag{jsonFlag()},
				Action: func(c *cli.Context) error { return listStore(c, out) },
			},
		},
	}
}

// kept is the store of this home with the results in it.
type kept struct {
	*store.Store
	results *results.Results
	home    string
}

// openKept opens the store for a verb that takes no other argument than flags.
func openKept(c *cli.Context) (kept, error) {
	if err := unexpected(c, 0); err != nil {
		return kept{}, err
	}
	home, err := homeDir()
	if err != nil {
		return kept{}, err
	}
	s, err := store.Open(filepath.Join(home, "store"))
	return kept{s, results.New(s), home}, err
}

func collect(c *cli.Context, out printer) error {
	k, err := openKept(c)
	if err != nil {
		return err
	}
	most, err := sizeOf(c.String("keep"), k.home)
	if err != nil {
		return err
	}
	dry := c.Bool("dry-run")
	keepOut := k.Alone
	if dry {
		keepOut = k.Hold
	}
	release, err := keepOut(c.Context, func() { out.note("another builder uses the store: waiting for it") })
	if err != nil {
		return err
	}
	defer release()
	places := k.places(c, out)
	for _, p := range places {
		p.Before = p.bytes()
	}
	done, err1 := k.Collect(store.Want{Most: most, Made: k.results.Made(), DryRun: dry})
	staged, err2 := k.Unstage(filepath.Join(k.home, "scratch"), done, dry)
	faults := []error{err1, err2}
	for _, p := range places {
		if p.empty != nil && !dry && !c.Bool("keep-engine") {
			faults = append(faults, p.empty())
		}
		p.After = p.bytes()
	}
	if c.Bool("json") {
		return errors.Join(append(faults, printJSON(out, struct {
			store.Collected
			Staged []string   `json:"staged"`
			Places []*holding `json:"places"`
			DryRun bool       `json:"dry-run"`
		}{done, staged, places, dry}))...)
	}
	verb := "removed"
	if dry {
		verb = "would remove"
	}
	for _, f := range done.Files {
		out.say("%s %s %s, %s, last used %s", verb, f.Kind, f.SHA256, megabytes(f.Size), f.Used.Format("2006-01-02"))
	}
	for _, name := range staged {
		out.say("%s scratch/%s", verb, name)
	}
	out.say("%s %d files and %d results; the store has %s, had %s", verb, len(done.Files), len(done.Results), megabytes(done.After), megabytes(done.Before))
	for _, p := range places {
		would := ""
		if p.empty != nil && dry && !c.Bool("keep-engine") {
			would = ", and would be emptied"
		}
		out.say("%s has %s, had %s%s", p.Name, megabytes(p.After), megabytes(p.Before), would)
	}
	return errors.Join(faults...)
}

// holding is a directory of the home beside the store that takes disk.
type holding struct {
	Name   string `json:"place"`
	Before int64  `json:"before"` // bytes
	After  int64  `json:"after"`
	bytes  func() int64
	empty  func() error // nil where it is not emptied as a whole
}

// places are scratch and the caches of the engines that builder starts for a home.
func (k kept) places(c *cli.Context, out printer) []*holding {
	ctx, own := c.Context, native.New(k.home, out.note, nativeOptions(c, k.home))
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
	all := []*holding{
		{Name: "scratch", bytes: bytes(filepath.Join(k.home, "scratch"), linked)},
		{Name: "the engine's cache", bytes: bytes(state), empty: func() error { return own.Empty(ctx) }},
	}
	d, found := daemon.Find(ctx)
	if it := daemon.Of(k.home); found && d.Volume(ctx, it) != "" {
		all = append(all, &holding{
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

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

func verifyStore(c *cli.Context, out printer) error {
	k, err := openKept(c)
	if err != nil {
		return err
	}
	release, err := k.hold(c.Context, out)
	if err != nil {
		return err
	}
	defer release()
	all, err := k.Survey(nil)
	if err != nil {
		return err
	}
	report := struct {
		Files   int      `json:"files"`
		Bytes   int64    `json:"bytes"`
		Damaged []string `json:"damaged"`
	}{Damaged: []string{}}
	var faults []error
	for _, f := range all {
		if f.Kind == store.Partial { // of which nothing is promised
			continue
		}
		if c.Err() != nil {
			return context.Cause(c.Context)
		}
		report.Files++
		report.Bytes += f.Size
		if err := k.Verify(store.Blob{Name: "file", SHA256: f.SHA256}); err != nil {
			report.Damaged = append(report.Damaged, f.SHA256)
			faults = append(faults, err)
		}
	}
	faults = append(faults, k.results.Check())
	if c.Bool("json") {
		return errors.Join(append(faults, printJSON(out, report))...)
	}
	out.say("read %d files, %s: %d damaged", report.Files, megabytes(report.Bytes), len(report.Damaged))
	return errors.Join(faults...)
}

// hold keeps collections away.
func (k kept) hold(ctx context.Context, out printer) (release func(), err error) {
	return k.Hold(ctx, func() { out.note("the store is being collected: waiting for it") })
}

func listStore(c *cli.Context, out printer) error {
	k, err := openKept(c)
	if err != nil {
		return err
	}
	all, err := k.Survey(k.results.Made())
	if err != nil {
		return err
	}
	type group struct {
		Kind  store.Kind `json:"kind"`
		Files int        `json:"files"`
		Bytes int64      `json:"bytes"`
	}
	report := struct {
		Store   string     `json:"store"`
		Files   int        `json:"files"`
		Bytes   int64      `json:"bytes"`
		Results int        `json:"results"`
		Kinds   []group    `json:"kinds"`
		Places  []*holding `json:"places"`
	}{Store: filepath.Join(k.home, "store"), Files: len(all), Results: len(k.Results())}
	var rows [][]string
	for _, kind := range store.Kinds() {
		g := group{Kind: kind}
		for _, f := range all {
			if f.Kind == kind {
				g.Files++
				g.Bytes += f.Size
			}
		}
		report.Bytes += g.Bytes
		report.Kinds = append(report.Kinds, g)
		rows = append(rows, []string{string(kind), fmt.Sprint(g.Files), megabytes(g.Bytes)})
	}
	report.Places = k.places(c, out)
	for _, p := range report.Places {
		p.Before = p.bytes()
		p.After = p.Before
	}
	if c.Bool("json") {
		return printJSON(out, report)
	}
	term.Table(out.stdout, term.Width(out.stdout), []string{"kind", "files", "size"}, rows)
	out.say("%d files, %s, %d results in %s", report.Files, megabytes(report.Bytes), report.Results, report.Store)
	for _, p := range report.Places {
		out.say("%s has %s", p.Name, megabytes(p.Before))
	}
	return nil
}

// absentPath refuses to write over what is there.
func absentPath(to string) error {
	if to == "" {
		return diag.Errorf(diag.Usage, "--to is missing: where shall it be written?").WithHint("--to DIR names a place that does not exist yet")
	}
	if _, err := os.Lstat(to); err == nil {
		return diag.Errorf(diag.Usage, "--to: %s exists already", to).WithHint("name a place that does not exist, or remove it first")
	}
	return nil
}
