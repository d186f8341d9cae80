// Package pipelines builds the artifacts of one locked entry in Dagger and provides the
// clean container for its gates.
//
// A pipeline is the list [Steps]. Each step is a function from container to container.
// It runs to completion before the next one starts, so that each error, log and time
// belongs to one step. Steps have no network. They mount only files of the store, and
// the store holds only locked files.
//
// The package handles one engine and one entry at a time. Package run handles the artifacts.
package pipelines

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
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
	all, _ := scripts.ReadDir("scripts") // embedded, so it can be read
	for _, d := range all {
		fmt.Fprintf(h, "scripts/%s\n%s\n", d.Name(), script(d.Name()))
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
	checked sync.Map // information about archives whose digest was checked, by path
}

var _ run.Engine = (*Engine)(nil)

// cell is the shared state of the steps of one entry.
type cell struct {
	images
	entry  lock.Entry
	inputs []artifact.Artifact // wheels of other cells
	events run.Events          // of the steps
	turn   string              // name of the build's exec; see [session.guest]
	// prepared waits until [Engine.prepare] has made the run-time, if it does.
	prepared func(context.Context)
	image    *dagger.Container // of the build, before any other step
	canary   string
	ccache   string // hits of the compiler cache in the build step; "" without it
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

// Names returns the names of the steps of a build in order.
func Names() []string {
	var names []string
	for _, s := range Steps() {
		names = append(names, s.Name)
	}
	return names
}

// Build implements [run.Engine]. It runs all steps of an entry, exports its wheel or
// archive with the other files, and makes the box of the gates.
func (e *Engine) Build(ctx context.Context, job run.Job, events run.Events, look run.Look) error {
	wait, stop := e.prepare(ctx, job)
	defer stop()
	ctx, c, err := e.open(ctx, job, events)
	if err != nil {
		return err
	}
	defer c.close(ctx)
	c.prepared = wait
	container, err := c.walk(ctx, Steps())
	if err != nil {
		return err
	}
	limited, end := c.step(ctx, "export")
	made, err := c.export(limited, container, job.Dir)
	if err = end(err); err != nil {
		return err
	}
	source, _ := e.Store.Path(c.entry.Source.Blob())
	built := run.Built{Artifacts: made, Source: source, Canary: c.canary, Ccache: c.ccache, Engine: e.Address}
	if job.Again {
		return look(ctx, built)
	}
	limited, end = c.step(ctx, "box")
	built.Box, err = c.box(limited, made[0].Path)
	if err = end(err); err != nil {
		return err
	}
	if c.entry.Expect.KnowsStock() {
		limited, end := c.step(ctx, "stock")
		built.Stock, err = c.stock(limited)
		if err = end(err); err != nil {
			return err
		}
	}
	if c.entry.Tests.SHA256 != "" {
		built.Tests = func(ctx context.Context) (gate.Box, error) {
			limited, end := c.step(ctx, "tests")
			box, err := c.tests(limited, made[0].Path)
			return box, end(err)
		}
	}
	return look(ctx, built)
}

// open opens a session for one cell. So one failed cell never affects another, and every
// log line belongs to one cell. All work in the session uses the returned context.
func (e *Engine) open(ctx context.Context, job run.Job, events run.Events) (context.Context, *cell, error) {
	ctx, s, err := e.connect(ctx)
	c := &cell{images: images{e, s}, entry: job.Entry, inputs: job.Inputs, events: events, turn: firstTime, prepared: func(context.Context) {}}
	if job.Again {
		c.turn = nextTime()
	}
	return ctx, c, err
}

// walk runs steps on an empty container.
func (c *cell) walk(ctx context.Context, steps []Step) (*dagger.Container, error) {
	container := c.client.Container(dagger.ContainerOpts{Platform: "linux/amd64"})
	for _, step := range steps {
		limited, end := c.step(ctx, step.Name)
		next, err := step.do(limited, c, container)
		if err = end(err); err != nil {
			return nil, err
		}
		container = next
	}
	return container, nil
}

// step starts a step with its log and time, up to the time limit. The work of the step
// uses the returned context. end ends the step with the error of the work, and the engine
// stops its remaining work.
func (c *cell) step(ctx context.Context, name string) (limited context.Context, end func(error) error) {
	log, start := c.events.StepStarted(name), time.Now()
	c.stream.begin(log)
	limited, stop := limit(ctx, c.StepLimit)
	return limited, func(err error) error {
		defer stop()
		cached := c.stream.end()
		if err != nil && limited.Err() != nil {
			err = context.Cause(limited)
		}
		err = c.engines(ctx, err)
		c.events.StepDone(name, time.Since(start), cached && err == nil, err)
		if err != nil {
			return fmt.Errorf("step %s: %w", name, err)
		}
		return nil
	}
}

// limit applies the time limit of a step; 0 is none.
func limit(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	if after <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, after,
		diag.Errorf(diag.Build, "it did not end within %s", after).
			WithHint("the end of its log says where it hangs; a build that needs longer is given more time with --step-limit"))
}
