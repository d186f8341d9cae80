// Package pipelines builds the artifacts of one locked entry in Dagger and provides the
// clean container for its gates.
//
// A pipeline is the list [Steps]. Each step is a function from container to container.
// It runs to completion before the next one starts, so that each error, log and time
// belongs to one step. Steps have no network. They mount only files of the store, and
// the store holds only locked files.
//
// The package handles one engine and one entry at a time. Package fleet selects the
// engine, and package run handles the artifacts.
package pipelines

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"dagger.io/dagger"

	"builder/internal/base/diag"
	"builder/internal/build/run"
	"builder/internal/evidence/sbom"
	"builder/internal/files/artifact"
	"builder/internal/files/wheel"
	"builder/internal/gates/gate"
	"builder/internal/input/oci"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
)

//go:embed scripts
var scripts embed.FS

func script(name string) string {
	data, err := scripts.ReadFile("scripts/" + name)
	if err != nil {
		panic(fmt.Sprintf("pipelines: script %s is not embedded: %v", name, err)) // names are constants of this package
	}
	return string(data)
}

// Revision returns a digest of the steps' scripts, their fixed paths and the format of
// wheels. It is part of every cell's key.
func Revision() string {
	h := sha256.New()
	err := fs.WalkDir(scripts, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			fmt.Fprintf(h, "%s\n%s\n", path, script(filepath.Base(path)))
		}
		return err
	})
	if err != nil {
		panic(fmt.Sprintf("pipelines: walking the embedded scripts: %v", err))
	}
	io.WriteString(h, layout+guestOwner+sbom.Revision+wheel.Packing)
	return hex.EncodeToString(h.Sum(nil))
}

// Paths in a build container. They are fixed: -g puts a path into the wheel, so a
// different path gives a different wheel.
const (
	buildDir  = "/build"
	sourceDir = buildDir + "/src"
	distDir   = buildDir + "/dist"
	venvDir   = "/opt/venv"
	uvPath    = "/opt/builder/uv"
	// repackPath exists if the source is a released wheel.
	repackPath = "/opt/builder/repack.py"
	layout     = sourceDir + distDir + venvDir + uvPath + repackPath
)

// Engine builds entries on one Dagger engine.
type Engine struct {
	Address string // in the notation of the Dagger client
	CLI     string // path of the dagger program, of the SDK's version
	Store   *store.Store
	Scratch string // directory for files exchanged with the engine
	UV      string // path of the uv program to mount into containers
	// Bubblewrap is the directory of the sandbox program for steps and gates.
	Bubblewrap string
	Ccache     string // path of the ccache program for build steps; "" for none
	// StepLimit is the time limit of a step; 0 means no limit.
	StepLimit time.Duration
	// Patience is how long the engine may leave a query unanswered before it counts as
	// lost; 0 means [Patience].
	Patience time.Duration
	// Registries are the mirrors to pull images from.
	Registries oci.Mirrors

	begun   sync.Map // run-times that [Engine.prepare] began; one is enough for all cells that have it
	checked sync.Map // information about archives of [cell.bootstrap] whose digest was checked, by path
}

var _ run.Engine = (*Engine)(nil)

// cell is the shared state of the steps of one entry.
type cell struct {
	*Engine
	*session
	entry  lock.Entry
	inputs []artifact.Artifact // wheels of other cells
	turn   string              // name of the build's exec; see [session.guest]
	image  *dagger.Container   // of the build, before any other step
	canary string
	ccache string // hits of the compiler cache in the build step; "" without it
}

// A Step is a named step of a cell's container, with its own time and log.
type Step struct {
	Name string
	do   func(context.Context, *cell, *dagger.Container) (*dagger.Container, error)
}

// LastStep is the step with the recipe's script.
const LastStep = "build"

// Steps lists the steps of a build in order.
func Steps() []Step {
	return []Step{
		{"image", imageStep},
		{"packages", packagesStep},
		{"source", sourceStep},
		{"patch", patchStep},
		{"canary", canaryStep},
		{LastStep, buildStep},
	}
}

// Build implements [run.Engine]. It runs all steps of an entry, exports its wheel or
// archive with the other files into dir, and makes the box of the gates.
func (e *Engine) Build(ctx context.Context, entry lock.Entry, inputs []artifact.Artifact, dir string, events run.Events, look run.Look) error {
	early := e.prepare(ctx, entry, inputs)
	defer early.stop()
	return e.in(ctx, entry, inputs, func(ctx context.Context, c *cell) error {
		made, err := c.make(ctx, events, dir)
		if err != nil {
			return err
		}
		source, _ := e.Store.Path(entry.Source.Blob())
		built := run.Built{Artifacts: made, Source: source, Canary: c.canary, Ccache: c.ccache, Engine: e.Address}
		err = c.step(ctx, events, "box", func(ctx context.Context) (err error) {
			early.wait(ctx)
			built.Box, err = c.box(ctx, made[0].Path)
			return err
		})
		if err != nil {
			return err
		}
		if entry.Expect.KnowsStock() {
			err = c.step(ctx, events, "stock", func(ctx context.Context) (err error) {
				built.Stock, err = c.stock(ctx)
				return err
			})
			if err != nil {
				return err
			}
		}
		if entry.Tests.SHA256 != "" {
			built.Tests = func(ctx context.Context) (box gate.Box, err error) {
				return box, c.step(ctx, events, "tests", func(ctx context.Context) (err error) {
					box, err = c.tests(ctx, made[0].Path)
					return err
				})
			}
		}
		return look(ctx, built)
	})
}

// Rebuild implements [run.Engine]. It runs the build step again without the cache and
// exports its output into dir.
func (e *Engine) Rebuild(ctx context.Context, entry lock.Entry, inputs []artifact.Artifact, dir string, events run.Events) (made []artifact.Artifact, err error) {
	err = e.in(ctx, entry, inputs, func(ctx context.Context, c *cell) (err error) {
		c.turn = nextTime()
		made, err = c.make(ctx, events, dir)
		return err
	})
	return made, err
}

// make runs all steps and exports their output.
func (c *cell) make(ctx context.Context, events run.Events, dir string) (made []artifact.Artifact, err error) {
	if isStack(c.entry) {
		return c.gather(ctx, events, dir)
	}
	container, err := c.walk(ctx, events, Steps())
	if err != nil {
		return nil, err
	}
	err = c.step(ctx, events, "export", func(ctx context.Context) (err error) {
		made, err = c.export(ctx, container, dir)
		return err
	})
	return made, err
}

// walk runs steps on an empty container.
func (c *cell) walk(ctx context.Context, events run.Events, steps []Step) (*dagger.Container, error) {
	container := c.client.Container(dagger.ContainerOpts{Platform: "linux/amd64"})
	for _, step := range steps {
		err := c.step(ctx, events, step.Name, func(ctx context.Context) (err error) {
			container, err = step.do(ctx, c, container)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return container, nil
}

// step runs one step with its log and time, up to the time limit. When a step ends, the
// engine stops its remaining work.
func (c *cell) step(ctx context.Context, events run.Events, name string, do func(context.Context) error) error {
	log := events.StepStarted(name)
	start := time.Now()
	c.stream.begin(log)
	limited, done := c.limit(ctx)
	defer done()
	err := do(limited)
	cached := c.stream.end()
	if err != nil && limited.Err() != nil {
		err = context.Cause(limited)
	}
	err = c.engines(ctx, err)
	events.StepDone(name, time.Since(start), cached && err == nil, err)
	if err != nil {
		return fmt.Errorf("step %s: %w", name, err)
	}
	return nil
}

// limit applies the time limit of a step.
func (e *Engine) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if e.StepLimit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, e.StepLimit,
		diag.Errorf(diag.Build, "it did not end within %s", e.StepLimit).
			WithHint("the end of its log says where it hangs; a build that needs longer is given more time with --step-limit"))
}

// in runs work in a new session. So one failed cell never affects another, and every
// log line belongs to one cell.
func (e *Engine) in(ctx context.Context, entry lock.Entry, inputs []artifact.Artifact, work func(context.Context, *cell) error) error {
	ctx, s, err := e.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close(ctx)
	return work(ctx, &cell{Engine: e, session: s, entry: entry, inputs: inputs, turn: firstTime})
}
