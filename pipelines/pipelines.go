// Package pipelines turns one locked entry into artifacts, in Dagger, and hands
// out the clean container in which the gates look at them.
//
// A pipeline is the list [Steps]. Each step is a function from container to
// container; it is forced before the next one starts, so that an error, a log and a
// time belong to one step. Nothing here reaches the network: a step can mount only
// what the store holds, and the store holds only what the lock names.
//
// It knows one engine and one entry at a time: which engine is a matter of fleet,
// what becomes of the artifacts one of run.
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
	"time"

	"dagger.io/dagger"

	"builder/internal/base/diag"
	"builder/internal/build/run"
	"builder/internal/evidence/sbom"
	"builder/internal/files/artifact"
	"builder/internal/files/wheel"
	"builder/internal/gates/gate"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
)

//go:embed scripts
var scripts embed.FS

func script(name string) string {
	data, err := scripts.ReadFile("scripts/" + name)
	if err != nil {
		panic(fmt.Sprintf("pipelines: script %s is not embedded: %v", name, err)) // a name in this package's own code
	}
	return string(data)
}

// Revision is the digest of the scripts that steps run, of the places that they know and
// of how wheels are written; it is part of every cell's key.
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

// The places in a build container. They are fixed: a path leaks into a wheel
// through -g, so another path is another wheel.
const (
	buildDir  = "/build"
	sourceDir = buildDir + "/src"
	distDir   = buildDir + "/dist"
	venvDir   = "/opt/venv"
	uvPath    = "/opt/builder/uv"
	// repackPath is there where the source is a released wheel.
	repackPath = "/opt/builder/repack.py"
	layout     = sourceDir + distDir + venvDir + uvPath + repackPath
)

// Engine builds entries on one Dagger engine.
type Engine struct {
	Address string // as the Dagger client takes it; "" lets the client provision one in Docker
	CLI     string // path of the dagger program of the SDK's version
	Store   *store.Store
	Scratch string // directory for what is handed to and taken from the engine
	UV      string // path of the uv program that is mounted into containers
	// Bubblewrap is the directory of the program that shuts steps and gates off.
	Bubblewrap string
	Ccache     string // path of the ccache that build steps take objects from; "" is none
	// StepLimit is how long one step may take; 0 is without a bound.
	StepLimit time.Duration
	// Patience is how long the engine may take to say that it is there before it
	// is lost; 0 is [Patience].
	Patience time.Duration
}

var _ run.Engine = (*Engine)(nil)

// cell is the state that the steps of one entry share.
type cell struct {
	*Engine
	*session
	entry  lock.Entry
	inputs []artifact.Artifact // wheels of other cells
	turn   string              // name of the build's exec; see [session.guest]
	canary string
}

// A Step is one named, timed, logged move of a cell's container.
type Step struct {
	Name string
	do   func(context.Context, *cell, *dagger.Container) (*dagger.Container, error)
}

// LastStep is the step that runs the recipe's script.
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

// Build implements [run.Engine]: it runs all steps of an entry, exports its wheel
// or archive and what lies beside it into dir, and makes the box of the gates.
func (e *Engine) Build(ctx context.Context, entry lock.Entry, inputs []artifact.Artifact, dir string, events run.Events, look run.Look) error {
	return e.in(ctx, entry, inputs, func(ctx context.Context, c *cell) error {
		made, err := c.make(ctx, events, dir)
		if err != nil {
			return err
		}
		source, _ := e.Store.Path(entry.Source.Blob())
		built := run.Built{Artifacts: made, Source: source, Canary: c.canary, Engine: e.Address}
		err = c.step(ctx, events, "box", func(ctx context.Context) (err error) {
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

// Rebuild implements [run.Engine]: it runs the build step once more, whatever the
// cache knows, and leaves in dir what came of it.
func (e *Engine) Rebuild(ctx context.Context, entry lock.Entry, inputs []artifact.Artifact, dir string, events run.Events) (made []artifact.Artifact, err error) {
	err = e.in(ctx, entry, inputs, func(ctx context.Context, c *cell) (err error) {
		c.turn = fmt.Sprintf("again-%d", time.Now().UnixNano())
		made, err = c.make(ctx, events, dir)
		return err
	})
	return made, err
}

// make runs all steps and takes what they left out of the engine.
func (c *cell) make(ctx context.Context, events run.Events, dir string) (made []artifact.Artifact, err error) {
	if c.isStack() {
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

// walk takes an empty container through steps.
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

// step runs one step with its log and its time, for no longer than the limit of a
// step. What an ended step has started the engine ends.
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

// limit bounds the time of a step.
func (e *Engine) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if e.StepLimit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, e.StepLimit,
		diag.Errorf(diag.Build, "it did not end within %s", e.StepLimit).
			WithHint("the end of its log says where it hangs; a build that needs longer is given more time with --step-limit"))
}

// in does work in a session of its own: so one bad cell never takes another with
// it, and every log line has one owner.
func (e *Engine) in(ctx context.Context, entry lock.Entry, inputs []artifact.Artifact, work func(context.Context, *cell) error) error {
	ctx, s, err := e.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close(ctx)
	return work(ctx, &cell{Engine: e, session: s, entry: entry, inputs: inputs, turn: firstTime})
}
