package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"builder/internal/base/diag"
	"builder/internal/build/daemon"
	"builder/internal/build/fleet"
	"builder/internal/build/native"
	"builder/internal/build/run"
	"builder/internal/input/pypi"
	"builder/internal/input/store"
	"builder/internal/view/report"
	"builder/pipelines"
)

type uvTool = pypi.Tool

// uvOnce finds or fetches uv when somebody first needs it.
func (w *workspace) uvOnce() func(context.Context) (pypi.Tool, error) {
	return once(func(ctx context.Context) (pypi.Tool, error) {
		return pypi.EnsureUV(ctx, w.home, w.note, w.pypiOptions(w.store))
	})
}

// pypiOptions say how the programs that builds use may be brought.
func (o options) pypiOptions(kept *store.Store) pypi.Options {
	return pypi.Options{NoInstall: o.native.NoInstall, Offline: o.offline, Store: kept}
}

// revision names everything that takes part in a build and stands in no recipe:
// the steps' own scripts, the programs that install packages and shut steps off, and
// the engine.
func revision() string {
	sum := sha256.Sum256([]byte(pipelines.Revision() + " uv " + pypi.Pin().SHA256 + " bubblewrap " + pypi.BubblewrapPin().SHA256 + " dagger " + native.Version))
	return hex.EncodeToString(sum[:])
}

// engine is one Dagger engine of a run. It is chosen when the first cell needs it,
// once for the run.
type engine struct {
	engineChoice
	opts    options
	store   *store.Store
	scratch string
	note    func(string, ...any)
	uv      func(context.Context) (pypi.Tool, error)

	starting sync.Mutex
	own      *native.Engine                                    // nil where the engine is somebody else's
	chosen   *pipelines.Engine                                 // nil before the first cell
	wakes    func(context.Context) (address string, err error) // starts an engine of ours, if it does not run
	disk     string                                            // where its cache lies, where builder bounds it; "" elsewhere
	rooms    rooms
}

// fleet is the engines that the cells of a run share.
func (w *workspace) fleet() *fleet.Fleet {
	var members []fleet.Member
	for _, e := range w.engines {
		members = append(members, fleet.Member{
			Name: cmp.Or(e.address, "here"), Jobs: e.jobs, Memory: e.memory,
			Up:    func(ctx context.Context) (run.Engine, error) { return e.up(ctx) },
			Room:  e.room,
			Renew: e.renew,
		})
	}
	return fleet.New(members, w.note)
}

// up returns the engine, started if it is ours and does not run.
func (e *engine) up(ctx context.Context) (*pipelines.Engine, error) {
	e.starting.Lock()
	defer e.starting.Unlock()
	var err error
	switch {
	case e.chosen == nil:
		e.chosen, err = e.choose(ctx)
	case e.wakes != nil:
		_, err = e.wakes(ctx)
	}
	return e.chosen, err
}

// choose takes the engine that was named, one in a running Docker or Podman, or the
// native one, and finds the programs that go with it.
func (e *engine) choose(ctx context.Context) (*pipelines.Engine, error) {
	own := native.New(e.opts.home, e.note, e.opts.native)
	address, client, contained := e.address, "", false
	var err error
	if address == "" && !e.native {
		address, client, contained, err = e.contained(ctx, own)
	}
	if err == nil && address == "" && !contained {
		e.own, e.disk, e.wakes = own, e.opts.home, e.wake
		address, err = e.wake(ctx)
	}
	if err == nil && client == "" {
		client, err = own.Client(ctx)
	}
	if err != nil {
		return nil, err
	}
	uv, err := e.uv(ctx)
	if err != nil {
		return nil, err
	}
	ccache, err := e.ccache(ctx)
	if err != nil {
		return nil, err
	}
	bubblewrap, err := pypi.EnsureBubblewrap(ctx, e.opts.home, e.note, e.opts.pypiOptions(e.store))
	if err != nil {
		return nil, err
	}
	return &pipelines.Engine{
		Address: address, CLI: client, Store: e.store, Scratch: e.scratch, UV: uv.Path, Bubblewrap: bubblewrap, Ccache: ccache,
		StepLimit: e.opts.stepLimit, Patience: e.opts.patience,
	}, nil
}

// renew puts an engine in order for a [fleet.Member]: the native one is started
// again, and begins anew where what it keeps is damaged; another has to answer.
func (e *engine) renew(ctx context.Context, why *run.EngineError) error {
	p, err := e.up(ctx)
	if err != nil {
		return err
	}
	asked, done := context.WithTimeout(ctx, cmp.Or(e.opts.patience, pipelines.Patience))
	defer done()
	_, silent := pipelines.Version(asked, p.Address, p.CLI)
	if e.own == nil || ctx.Err() != nil {
		return silent
	}
	return e.own.Mend(ctx, cmp.Or(silent, why.Err), silent != nil)
}

// ccache returns the path of the compiler cache's program, "" where nobody asked for
// it.
func (e *engine) ccache(ctx context.Context) (string, error) {
	if !e.opts.ccache {
		return "", nil
	}
	return pypi.EnsureCcache(ctx, e.opts.home, e.note, e.opts.pypiOptions(e.store))
}

// wake starts the native engine if it does not run.
func (e *engine) wake(ctx context.Context) (address string, err error) {
	running, err := e.own.Up(ctx)
	if err == nil && running.Started {
		e.note("engine %s started at %s", running.Version, running.Address)
	}
	return running.Address, err
}

// contained starts the engine in a running Docker or Podman, with the client program
// that its image holds. There is none where no daemon runs, and where the native engine
// does its work: the daemon holds no image of the engine, and its registry is out of
// reach.
func (e *engine) contained(ctx context.Context, own *native.Engine) (address, client string, there bool, err error) {
	d, found := daemon.Find(ctx)
	if !found {
		return "", "", false, nil
	}
	c := daemon.Of(e.opts.home)
	c.Args = native.Bound(e.opts.native.Cache)
	if c.Image, err = e.image(ctx, d); err == nil {
		if client, err = own.ClientIn(ctx, string(d), c.Image); err != nil {
			return "", "", false, err
		}
		address, err = d.Up(ctx, c)
	}
	switch {
	case err == nil:
		e.wakes = func(ctx context.Context) (string, error) { return d.Up(ctx, c) }
		e.disk = cmp.Or(d.Volume(ctx, c), e.opts.home)
		return address, client, true, nil
	case native.Supported() == nil && ctx.Err() == nil:
		e.note("%v: the native engine is taken", err)
		return "", client, false, nil
	}
	return "", client, false, err
}

// image returns the name of an image of the engine that the daemon holds, pulled if
// need be.
func (e *engine) image(ctx context.Context, d daemon.Daemon) (string, error) {
	image, holds := heldImage(ctx, d)
	if holds {
		return image, nil
	}
	e.note("%s pulls the engine's image %s, once", d, image)
	if err := d.Pull(ctx, image); err != nil {
		return "", diag.Errorf(diag.NoEngine, "%s holds no image of the engine and cannot pull it: %w", d, err).
			WithHint("%s", loadHint(d))
	}
	return image, nil
}

// loadHint says how a daemon gets the engine's image without a registry.
func loadHint(d daemon.Daemon) string {
	return fmt.Sprintf("make the image where builder may be root, and load it here: builder engine image --to engine.tar && %s load -i engine.tar", d)
}

// describe says what is known of the engines before they are needed.
func describe(o options) report.Engine {
	return report.Engine{Kind: "dagger", Version: native.Version, Address: strings.Join(addressesOf(o.engines), ",")}
}

func addressesOf(engines []engineChoice) []string {
	var addresses []string
	for _, e := range engines {
		addresses = append(addresses, e.address)
	}
	return addresses
}

func engineCommand(out printer) *cli.Command {
	verb := func(name, usage string, do func(*cli.Context, *native.Engine) error, flags ...cli.Flag) *cli.Command {
		return &cli.Command{Name: name, Usage: usage, OnUsageError: usageError, Flags: append(flags, noInstallFlag(), idleFlag(), cacheFlag()), Action: func(c *cli.Context) error {
			if err := unexpected(c, 0); err != nil {
				return err
			}
			home, err := homeDir()
			if err != nil {
				return err
			}
			return do(c, native.New(home, out.note, nativeOptions(c, home)))
		}}
	}
	return &cli.Command{
		Name: "engine", Usage: "the native engine: the Dagger engine on a host without Docker",
		OnUsageError: usageError, Action: unknownCommand, HideHelpCommand: true,
		Subcommands: []*cli.Command{
			verb("up", "build and start it, if it does not run", func(c *cli.Context, e *native.Engine) error {
				r, err := e.Up(c.Context)
				if err == nil {
					out.say("%s", r.Address)
				}
				return err
			}),
			verb("down", "stop it, in Docker and Podman too; its cache stays", func(c *cli.Context, e *native.Engine) error {
				err := e.Down(c.Context)
				if home, fault := homeDir(); fault == nil {
					err = errors.Join(err, removeContainer(c.Context, home))
				}
				return err
			}),
			verb("image", "write it as an image for `docker load` and `podman load`, for sites without its registry", func(c *cli.Context, e *native.Engine) error {
				if err := absentPath(c.String("to")); err != nil {
					return err
				}
				if err := e.Image(c.Context, c.String("to")); err != nil {
					return err
				}
				out.say("%s is %s: docker load -i %s", c.String("to"), native.ImageName, c.String("to"))
				return nil
			}, &cli.StringFlag{Name: "to", Aliases: []string{"o"}, Usage: "write it to `FILE`, which must not exist"}),
			verb("status", "say whether it is built and runs, and where it keeps its cache", func(c *cli.Context, e *native.Engine) error {
				s, err := e.Status(c.Context)
				if err != nil {
					return err
				}
				if c.Bool("json") {
					return printJSON(out, statusOf(s))
				}
				printStatus(out, s)
				return nil
			}, jsonFlag()),
		},
	}
}

// removeContainer removes the container of a home's engine.
func removeContainer(ctx context.Context, home string) error {
	d, found := daemon.Find(ctx)
	if !found {
		return nil
	}
	return d.Down(ctx, daemon.Of(home))
}

// status is what engine status says as JSON.
type status struct {
	Built       bool   `json:"built"`
	Running     bool   `json:"running"`
	Version     string `json:"version"`
	Address     string `json:"address,omitempty"`
	PID         int    `json:"pid,omitempty"`
	Since       string `json:"since,omitempty"`
	Connections int    `json:"connections"`
	Cache       string `json:"cache"`
	CacheBytes  int64  `json:"cache-bytes"`
	Log         string `json:"log"`
}

func statusOf(s native.Status) status {
	v := status{
		Built: s.Built, Running: s.Running, Version: s.Version, Address: s.Address, PID: s.PID,
		Connections: s.Connections, Cache: s.StateDir, CacheBytes: s.StateBytes, Log: s.Log,
	}
	if s.Running {
		v.Since = s.Since.Format(time.RFC3339)
	}
	return v
}

func printStatus(out printer, s native.Status) {
	switch {
	case s.Running:
		out.say("running %s at %s (process %d, since %s, %d connections)", s.Version, s.Address, s.PID, s.Since.Format(time.DateTime), s.Connections)
	case s.Built:
		out.say("built %s, not running", s.Version)
	default:
		out.say("not built: the first run builds it")
	}
	out.say("cache %s, %.1f GB", s.StateDir, float64(s.StateBytes)/1e9)
	out.say("log %s", s.Log)
}
