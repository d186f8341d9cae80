package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"builder/internal/app/home"
	"builder/internal/base/diag"
	"builder/internal/build/daemon"
	"builder/internal/build/native"
	"builder/internal/build/run"
	"builder/internal/input/pypi"
	"builder/internal/input/store"
	"builder/internal/view/report"
	"builder/pipelines"
)

// engine is the Dagger engine of a run. It is chosen once per run, when the first cell
// needs it.
type engine struct {
	Choice
	Setup
	*home.Workspace

	starting sync.Mutex
	own      *native.Engine                                    // nil unless it is the native engine
	chosen   *pipelines.Engine                                 // nil before the first cell
	wakes    func(context.Context) (address string, err error) // starts the engine if it is not running; nil for an engine given by address
}

// Retrying returns the engine of a run, which is started and repaired as its builds need
// it.
func Retrying(s Setup, w *home.Workspace) *run.Retrying {
	e := &engine{Choice: s.Engines.Choice, Setup: s, Workspace: w}
	return &run.Retrying{
		Name: cmp.Or(e.Address, "here"),
		Up:   e.up, Renew: e.renew, Prune: e.prune, Note: s.Keys.Note,
	}
}

// Engine starts the engine of a setup and returns it.
func Engine(ctx context.Context, s Setup, w *home.Workspace) (*pipelines.Engine, error) {
	e := &engine{Choice: s.Engines.Choice, Setup: s, Workspace: w}
	_, err := e.up(ctx)
	return e.chosen, err
}

// up returns the engine. If builder manages the engine, up starts it when it is not
// running.
func (e *engine) up(ctx context.Context) (run.Engine, error) {
	if e.Builder != nil {
		return e.Builder, nil
	}
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

// choose returns the engine given by address, an engine in a running Docker or Podman,
// or the native engine, and installs the programs for it.
func (e *engine) choose(ctx context.Context) (*pipelines.Engine, error) {
	own := NativeEngine(e.Setup)
	address, client, contained := e.Address, "", false
	var err error
	if address == "" && !e.NativeOnly {
		address, client, contained, err = e.contained(ctx, own)
	}
	if err == nil && address == "" && !contained {
		e.own, e.wakes = own, own.Up
		address, err = own.Up(ctx)
	}
	if err == nil && client == "" {
		client, err = own.Client(ctx)
	}
	if err != nil {
		return nil, err
	}
	uv, err := e.Programs.UV(ctx)
	if err != nil {
		return nil, err
	}
	ccache, err := e.ccache(ctx)
	if err != nil {
		return nil, err
	}
	bubblewrap, err := e.Programs.Install(ctx, pypi.Bubblewrap)
	if err != nil {
		return nil, err
	}
	return &pipelines.Engine{
		Address: address, CLI: client, Store: e.Store, Scratch: e.Scratch, UV: uv.Path, Bubblewrap: bubblewrap, Ccache: ccache,
		StepLimit: e.Engines.StepLimit, Patience: e.Engines.Patience, Registries: e.Sources.Registries,
	}, nil
}

// renew repairs an engine for [run.Retrying]. It restarts the native engine if it does
// not answer. Any other engine has to answer.
func (e *engine) renew(ctx context.Context) error {
	if _, err := e.up(ctx); err != nil {
		return err
	}
	asked, done := context.WithTimeout(ctx, cmp.Or(e.Engines.Patience, pipelines.Patience))
	defer done()
	_, silent := pipelines.Version(asked, e.chosen.Address, e.chosen.CLI)
	if silent == nil || e.own == nil || ctx.Err() != nil {
		return silent
	}
	return e.own.Restart(ctx, silent)
}

// prune makes an engine that builder bounds collect its cache.
func (e *engine) prune(ctx context.Context) error {
	if _, err := e.up(ctx); err != nil || e.wakes == nil {
		return err
	}
	return pipelines.Prune(ctx, e.chosen.Address, e.chosen.CLI)
}

// ccache returns the path of the compiler cache program, or "" if it was not requested.
func (e *engine) ccache(ctx context.Context) (string, error) {
	if !e.Engines.Ccache {
		return "", nil
	}
	dir, err := e.Programs.Install(ctx, pypi.Ccache)
	return pypi.Ccache.Path(dir), err
}

// contained starts the engine in a running Docker or Podman. The client program comes
// from the engine's image. there is false if no daemon runs. It is also false if this
// host supports the native engine, which is used instead, and the image cannot be pulled
// or started, or would have to be pulled although the native engine exists.
func (e *engine) contained(ctx context.Context, own *native.Engine) (address, client string, there bool, err error) {
	d, found := e.Engines.Daemon()
	if !found {
		return "", "", false, nil
	}
	image, holds := imageIn(ctx, d)
	if !holds && own.Look().Built && native.Supported() == nil {
		return "", "", false, nil
	}
	c := daemon.Of(e.Keys.Home)
	c.Args, c.Image = native.Bound(e.Engines.Native.Cache), image
	switch {
	case !holds && e.Engines.Image.Place != "":
		c.Image, err = native.ImageName, e.load(ctx, d)
		if diag.CodeOf(err) == diag.Fetch {
			return "", "", false, err
		}
	case !holds:
		err = e.pull(ctx, d, image)
	}
	if err == nil {
		if client, err = own.ClientIn(ctx, d, c.Image); err != nil {
			return "", "", false, err
		}
		address, err = d.Up(ctx, c)
	}
	switch {
	case err == nil:
		e.wakes = func(ctx context.Context) (string, error) { return d.Up(ctx, c) }
		return address, client, true, nil
	case native.Supported() == nil && ctx.Err() == nil:
		e.Keys.Note("%v: using the native engine", err)
		return "", client, false, nil
	}
	return "", client, false, err
}

// load loads BUILDER_ENGINE_IMAGE into a daemon that has no image of the engine.
func (e *engine) load(ctx context.Context, d daemon.Daemon) error {
	image, err := fetchImage(ctx, e.Setup)
	if err != nil {
		return err
	}
	e.Keys.Note("%s loads the engine's image from %s, once", d, e.Engines.Image.Place)
	switch err := d.Load(ctx, image); {
	case err != nil:
		return diag.Errorf(diag.NoEngine, "%s cannot load the engine's image from %s: %w", d, e.Engines.Image.Place, err)
	case !d.Has(ctx, native.ImageName):
		return diag.Errorf(diag.NoEngine, "%s does not hold %s, the engine of this builder", e.Engines.Image.Place, native.ImageName).
			WithHint("make it with this version: builder engine image")
	}
	return nil
}

// pull pulls the engine's image into a daemon that has none.
func (e *engine) pull(ctx context.Context, d daemon.Daemon, image string) error {
	if e.Sources.Offline {
		return diag.Errorf(diag.NoEngine, "%s has no image of the engine, and --offline pulls none", d).WithHint("%s", loadHint(d))
	}
	e.Keys.Note("%s pulls the image %s of the engine, once", d, image)
	if err := d.Pull(ctx, image); err != nil {
		return diag.Errorf(diag.NoEngine, "%s has no image of the engine and cannot pull it: %w", d, err).
			WithHint("%s", loadHint(d))
	}
	return nil
}

// loadHint explains how to load the engine's image into a daemon without a registry.
func loadHint(d daemon.Daemon) string {
	return fmt.Sprintf("make the image on a host where you are root, and load it here: builder engine image --to engine.tar && %s load -i engine.tar", d)
}

// Describe returns the facts known about the engine before it starts.
func (e Engines) Describe() report.Engine {
	return report.Engine{Kind: "dagger", Version: native.Version, Address: e.Choice.Address}
}

// NativeEngine returns the native engine of the home.
func NativeEngine(s Setup) *native.Engine {
	o := s.Engines.Native
	o.NoInstall = s.NoInstall
	if s.Engines.Image.Place != "" {
		o.Image = func(ctx context.Context) (string, error) { return fetchImage(ctx, s) }
	}
	return native.New(s.Keys.Home, s.Keys.Note, o)
}

// fetchImage brings BUILDER_ENGINE_IMAGE into the store and returns its path there.
func fetchImage(ctx context.Context, s Setup) (string, error) {
	kept, err := store.Open(home.StoreDir(s.Keys.Home))
	if err != nil {
		return "", err
	}
	return s.Engines.Image.Fetch(ctx, kept, s.Sources.Offline)
}

// WriteEngineImage writes the engine to a file that does not exist yet.
func WriteEngineImage(ctx context.Context, s Setup, to string) (native.EngineImage, error) {
	if err := home.AbsentFile(to); err != nil {
		return native.EngineImage{}, err
	}
	if err := NativeEngine(s).Image(ctx, to); err != nil {
		return native.EngineImage{}, err
	}
	b, err := store.Of(to)
	return native.EngineImage{Place: store.Place(to), SHA256: b.SHA256}, err
}

// StopEngine stops the native engine. It also removes the home's engine container from
// Docker or Podman.
func StopEngine(ctx context.Context, s Setup) error {
	err := NativeEngine(s).Down(ctx)
	if d, found := s.Engines.Daemon(); found {
		err = errors.Join(err, d.Down(ctx, daemon.Of(s.Keys.Home)))
	}
	return err
}
