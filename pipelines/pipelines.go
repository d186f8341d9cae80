// Package pipelines turns one locked entry into an artifact, in Dagger, and
// hands out the clean container in which the gates look at it.
//
// A pipeline is the list [Steps]: image, packages, source, patch, canary,
// build. Each
// step is a function from container to container; it is forced before the next
// one starts, so that an error, a log and a time belong to one step. Nothing
// here reaches the network: a step can mount only what the store holds, and the
// store holds only what the lock names.
package pipelines

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dagger.io/dagger"

	"builder/internal/artifact"
	"builder/internal/atomicfile"
	"builder/internal/diag"
	"builder/internal/lock"
	"builder/internal/run"
	"builder/internal/sbom"
	"builder/internal/store"
	"builder/internal/wheel"
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

// Revision is the digest of everything in this package that a step runs; it is
// part of every cell's key.
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
	io.WriteString(h, layout+sbom.Revision)
	return hex.EncodeToString(h.Sum(nil))
}

// The places in a build container. They are fixed: a path leaks into a wheel
// through -g, so another path is another wheel.
const (
	sourceDir = "/build/src"
	distDir   = "/build/dist"
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
	Ccache  string // path of the ccache that build steps take objects from; "" is none
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
	turn   string              // name of the build's exec; see offline
	canary string
}

// A Step is one named, timed, logged move of a cell's container.
type Step struct {
	Name string
	do   func(context.Context, *cell, *dagger.Container) (*dagger.Container, error)
}

// Steps lists the steps of a build in order.
func Steps() []Step {
	return []Step{
		{"image", imageStep},
		{"packages", packagesStep},
		{"source", sourceStep},
		{"patch", patchStep},
		{"canary", canaryStep},
		{"build", buildStep},
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

// LastStep is the step that runs the recipe's script.
const LastStep = "build"

// Rootfs writes the file system as a step finds it to dir, and returns the
// environment and the script of the build step: what is needed to go through a
// failed build by hand.
func (e *Engine) Rootfs(ctx context.Context, entry lock.Entry, inputs []artifact.Artifact, before, dir string, events run.Events) (env map[string]string, script string, err error) {
	steps := Steps()
	i := slices.IndexFunc(steps, func(s Step) bool { return s.Name == before })
	if i < 1 {
		return nil, "", fmt.Errorf("no file system stands before the step %q", before)
	}
	err = e.in(ctx, entry, inputs, func(ctx context.Context, c *cell) error {
		container, err := c.walk(ctx, events, steps[:i])
		if err != nil {
			return err
		}
		return c.step(ctx, events, "export", func(ctx context.Context) error { return c.unpack(ctx, container, dir) })
	})
	return buildEnv(entry), entry.Script, err
}

// unpack writes a container's file system to dir by way of one archive: the
// export of a whole root file system as a directory stops for good in the middle
// (engine v0.19.10, 5 GB of 100,000 files).
func (c *cell) unpack(ctx context.Context, container *dagger.Container, dir string) error {
	const inside = "/builder-rootfs.tar"
	pack := "tar --one-file-system --numeric-owner -C / -c -f " + inside + " --exclude=." + inside + " .\n"
	done, _, err := c.exec(ctx, container, c.entry.Image, installCaps, shell(pack))
	if err != nil {
		return err
	}
	archive := filepath.Join(c.Scratch, fmt.Sprintf("rootfs-%d.tar", os.Getpid()))
	defer os.Remove(archive)
	if _, err := done.File(inside).Export(ctx, archive); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "tar", "-x", "-p", "--numeric-owner", "-C", dir, "-f", archive).CombinedOutput()
	if err != nil {
		return fmt.Errorf("unpacking the file system: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
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

// useClient tells the SDK which client program to use, which only the environment
// can; without one the SDK downloads it.
func useClient(program string) error {
	os.Setenv("DO_NOT_TRACK", "1")
	if program == "" {
		return nil
	}
	return os.Setenv("_EXPERIMENTAL_DAGGER_CLI_BIN", program)
}

// export takes what the build left out of the engine: one wheel or, where the
// entry promises one in its place, one archive, which comes first, and the files
// beside it. The wheel is normalised: entries in a fixed order with fixed times and
// modes, so that equal content is equal bytes. The other files are what the
// recipe's script made of them.
func (c *cell) export(ctx context.Context, container *dagger.Container, dir string) ([]artifact.Artifact, error) {
	raw, err := os.MkdirTemp(c.Scratch, "dist-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(raw)
	if _, err := container.Directory(distDir).Export(ctx, raw); err != nil {
		return nil, err
	}
	first, beside, err := sortDist(raw, c.entry.Expect.Tree)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var a artifact.Artifact
	if c.entry.Expect.Tree == "" {
		a, err = normalise(first, dir, c.entry)
	} else {
		a, err = move(first, dir, c.entry.Key())
	}
	made := []artifact.Artifact{a}
	for _, file := range beside {
		if err != nil {
			break
		}
		a, err = move(file, dir, c.entry.Key())
		made = append(made, a)
	}
	if err == nil && len(c.entry.Profile) > 0 {
		a, err = writeProfile(c.entry, dir)
		made = append(made, a)
	}
	return made, err
}

// writeProfile writes the environment that the artifact is to run in.
func writeProfile(e lock.Entry, dir string) (artifact.Artifact, error) {
	path := filepath.Join(dir, e.ID+".env")
	if err := os.WriteFile(path, profileText(e), 0o644); err != nil {
		return artifact.Artifact{}, err
	}
	return artifact.Of(path, e.Key())
}

// profileText is that environment as lines that a shell, Docker and systemd read
// alike, nothing where there is none.
func profileText(e lock.Entry) []byte {
	if len(e.Profile) == 0 {
		return nil
	}
	var text strings.Builder
	fmt.Fprintf(&text, "# Run-time environment of %s.\n", e.ID)
	for _, v := range e.Profile {
		fmt.Fprintf(&text, "\n# %s\n# %s\n%s=%s\n", v.Because, v.Source, v.Name, v.Value)
	}
	return []byte(text.String())
}

// sortDist tells the artifact in the directory of results, the archive called tree
// or without one the only wheel, from the files beside it, in the order of their
// names.
func sortDist(dir, tree string) (first string, beside []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", nil, err
	}
	var wheels, trees []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case !e.Type().IsRegular():
			return "", nil, diag.Errorf(diag.Build, "the build left %s in $BUILDER_DIST, which is no regular file", e.Name())
		case filepath.Ext(path) == ".whl":
			wheels = append(wheels, path)
		case e.Name() == tree:
			trees = append(trees, path)
		default:
			beside = append(beside, path)
		}
	}
	switch {
	case tree == "" && len(wheels) != 1:
		return "", nil, diag.Errorf(diag.Build, "the build left %d wheels in $BUILDER_DIST, 1 is wanted", len(wheels))
	case tree != "" && len(trees) != 1:
		return "", nil, diag.Errorf(diag.Build, "the build left no %s in $BUILDER_DIST", tree)
	case tree != "" && len(wheels) > 0:
		return "", nil, diag.Errorf(diag.Build, "the build left a wheel in $BUILDER_DIST, and the artifact is %s", tree)
	}
	return append(trees, wheels...)[0], beside, nil
}

// move puts a file into dir as it is.
func move(from, dir, key string) (artifact.Artifact, error) {
	path := filepath.Join(dir, filepath.Base(from))
	if err := atomicfile.Copy(from, path); err != nil {
		return artifact.Artifact{}, err
	}
	return artifact.Of(path, key)
}

// normalise writes the wheel into dir with fixed order, times and modes, and with
// the document that says what is in it.
func normalise(from, dir string, e lock.Entry) (artifact.Artifact, error) {
	w, err := wheel.Open(from)
	if err != nil {
		return artifact.Artifact{}, diag.Errorf(diag.Build, "reading the wheel: %w", err)
	}
	defer w.Close()
	spdx, err := sbom.Of(e, w)
	if err != nil {
		return artifact.Artifact{}, diag.Errorf(diag.Build, "reading the wheel: %w", err)
	}
	path := filepath.Join(dir, filepath.Base(from))
	err = atomicfile.Fill(path, func(dst io.Writer) error {
		return wheel.Normalise(dst, w, wheel.Options{
			Epoch:   time.Unix(e.Epoch, 0),
			Replace: map[string][]byte{w.DistInfo + "/" + sbom.Member: spdx},
		})
	})
	if err != nil {
		return artifact.Artifact{}, fmt.Errorf("writing the wheel: %w", err)
	}
	return artifact.Of(path, e.Key())
}

// stage lays blobs out in a directory of the engine's client, so that one mount
// carries them all.
func (c *cell) stage(name string, blobs []store.Blob) (*dagger.Directory, error) {
	dir, err := c.lay(name, blobs)
	if err != nil {
		return nil, err
	}
	return c.client.Host().Directory(dir), nil
}

// lay lays blobs out by their names in a directory of this host.
func (c *cell) lay(name string, blobs []store.Blob) (string, error) {
	var list strings.Builder
	for _, b := range blobs {
		fmt.Fprintln(&list, b.Name, b.SHA256)
	}
	dir := filepath.Join(c.Scratch, name+"-"+shortDigest(list.String()))
	if err := c.Store.Stage(dir, blobs); err != nil {
		return "", fmt.Errorf("staging %s: %w", name, err)
	}
	return dir, nil
}

// shortDigest tells apart what is staged under one name.
func shortDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// withEnv sets variables in a fixed order: the order is part of the cache key.
func withEnv(ctr *dagger.Container, env map[string]string) *dagger.Container {
	for _, k := range slices.Sorted(maps.Keys(env)) {
		ctr = ctr.WithEnvVariable(k, env[k])
	}
	return ctr
}
