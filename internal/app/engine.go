package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"

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

// Revision is a digest of the parts of a build outside the recipe: the scripts of the
// steps, uv, bubblewrap (it isolates steps), and the engine.
func Revision() string {
	sum := sha256.Sum256([]byte(pipelines.Revision() + " uv " + pypi.Pin().SHA256 + " bubblewrap " + pypi.BubblewrapPin().SHA256 + " dagger " + native.Version))
	return hex.EncodeToString(sum[:])
}

// engine is one Dagger engine of a run. It is chosen once per run, when the first cell
// needs it.
type engine struct {
	EngineChoice
	*Session
	store   *store.Store
	scratch string
	uv      func(context.Context) (pypi.Tool, error)

	starting sync.Mutex
	own      *native.Engine                                    // nil unless it is the native engine
	chosen   *pipelines.Engine                                 // nil before the first cell
	wakes    func(context.Context) (address string, err error) // starts the engine if it is not running; nil for an engine given by address
}

// fleet returns the engines shared by the cells of a run.
func (w *workspace) fleet() *fleet.Fleet {
	var members []fleet.Member
	if w.Builder != nil {
		up := func(context.Context) (run.Engine, error) { return w.Builder, nil }
		members = append(members, fleet.Member{Name: "here", Jobs: 1, Up: up})
		return fleet.New(members, w.Note)
	}
	for _, e := range w.engines {
		members = append(members, fleet.Member{
			Name: cmp.Or(e.Address, "here"), Jobs: e.Jobs, Memory: e.Memory,
			Up:    func(ctx context.Context) (run.Engine, error) { return e.up(ctx) },
			Renew: e.renew,
		})
	}
	return fleet.New(members, w.Note)
}

// up returns the engine. If builder manages the engine, up starts it when it is not
// running.
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

// choose returns the engine given by address, an engine in a running Docker or Podman,
// or the native engine, and installs the programs for it.
func (e *engine) choose(ctx context.Context) (*pipelines.Engine, error) {
	own := e.NativeEngine()
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
	uv, err := e.uv(ctx)
	if err != nil {
		return nil, err
	}
	ccache, err := e.ccache(ctx)
	if err != nil {
		return nil, err
	}
	bubblewrap, err := pypi.EnsureBubblewrap(ctx, e.Home, e.Note, e.pypiOptions(e.store))
	if err != nil {
		return nil, err
	}
	return &pipelines.Engine{
		Address: address, CLI: client, Store: e.store, Scratch: e.scratch, UV: uv.Path, Bubblewrap: bubblewrap, Ccache: ccache,
		StepLimit: e.StepLimit, Patience: e.Patience, Registries: e.Registries,
	}, nil
}

// renew repairs an engine for a [fleet.Member]. It restarts the native engine if it does
// not answer. Any other engine has to answer.
func (e *engine) renew(ctx context.Context) error {
	p, err := e.up(ctx)
	if err != nil {
		return err
	}
	asked, done := context.WithTimeout(ctx, cmp.Or(e.Patience, pipelines.Patience))
	defer done()
	_, silent := pipelines.Version(asked, p.Address, p.CLI)
	if silent == nil || e.own == nil || ctx.Err() != nil {
		return silent
	}
	return e.own.Restart(ctx, silent)
}

// ccache returns the path of the compiler cache program, or "" if it was not requested.
func (e *engine) ccache(ctx context.Context) (string, error) {
	if !e.Ccache {
		return "", nil
	}
	return pypi.EnsureCcache(ctx, e.Home, e.Note, e.pypiOptions(e.store))
}

// contained starts the engine in a running Docker or Podman. The client program comes
// from the engine's image. there is false if no daemon runs. It is also false if this
// host supports the native engine, which is used instead, and the image cannot be pulled
// or started, or would have to be pulled although the native engine exists.
func (e *engine) contained(ctx context.Context, own *native.Engine) (address, client string, there bool, err error) {
	d, found := e.Daemon(ctx)
	if !found {
		return "", "", false, nil
	}
	image, holds := e.heldImage(ctx, d)
	if !holds && own.Look().Built && native.Supported() == nil {
		return "", "", false, nil
	}
	c := daemon.Of(e.Home)
	c.Args, c.Image = native.Bound(e.Native.Cache), image
	switch {
	case !holds && e.Image.Place != "":
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
		e.Note("%v: using the native engine", err)
		return "", client, false, nil
	}
	return "", client, false, err
}

// load loads the setting engine-image into a daemon that has no image of the engine.
func (e *engine) load(ctx context.Context, d daemon.Daemon) error {
	image, err := e.fetchImage(ctx)
	if err != nil {
		return err
	}
	e.Note("%s loads the engine's image from %s, once", d, e.Image.Place)
	switch err := d.Load(ctx, image); {
	case err != nil:
		return diag.Errorf(diag.NoEngine, "%s cannot load the engine's image from %s: %w", d, e.Image.Place, err)
	case !d.Has(ctx, native.ImageName):
		return diag.Errorf(diag.NoEngine, "%s does not hold %s, the engine of this builder", e.Image.Place, native.ImageName).
			WithHint("make it with this version: builder engine image")
	}
	return nil
}

// pull pulls the engine's image into a daemon that has none.
func (e *engine) pull(ctx context.Context, d daemon.Daemon, image string) error {
	if e.Offline {
		return diag.Errorf(diag.NoEngine, "%s has no image of the engine, and --offline pulls none", d).WithHint("%s", loadHint(d))
	}
	e.Note("%s pulls the image %s of the engine, once", d, image)
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

// describe returns the facts known about the engines before they start.
func (s *Session) describe() report.Engine {
	return report.Engine{Kind: "dagger", Version: native.Version, Address: strings.Join(s.addresses(), ",")}
}

func (s *Session) addresses() []string {
	var addresses []string
	for _, e := range s.Choices {
		addresses = append(addresses, e.Address)
	}
	return addresses
}

// NativeEngine returns the native engine of the session's home.
func (s *Session) NativeEngine() *native.Engine {
	o := s.Native
	if s.Image.Place != "" {
		o.Image = s.fetchImage
	}
	return native.New(s.Home, s.Note, o)
}

// StopEngine stops the native engine. It also removes the home's engine container from
// Docker or Podman.
func StopEngine(ctx context.Context, s *Session) error {
	err := s.NativeEngine().Down(ctx)
	if d, found := s.Daemon(ctx); found {
		err = errors.Join(err, d.Down(ctx, daemon.Of(s.Home)))
	}
	return err
}
