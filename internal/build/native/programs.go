package native

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"builder/internal/base/diag"
	"builder/internal/base/owned"
)

// The engine's module, ./engine, as text. A go.mod makes its directory a separate
// module, and files of another module cannot be embedded. A test keeps the two equal.
//
//go:generate go test -run TestModule -update .
//go:embed module.txtar
var module []byte

const upstream = "github.com/dagger/dagger/"

// buildFlags are the options of go build, except for the output, and the packages of the
// programs. The linker drops DWARF (-w), so the compiler need not make any.
var buildFlags = []string{
	"-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false",
	"-ldflags=-s -w -X " + upstream + "engine.Version=" + Version + " -X " + upstream + "engine.Tag=" + Version,
	upstream + "cmd/engine", upstream + "cmd/dagger", upstream + "cmd/init", upstream + "cmd/dialstdio",
}

// buildEnv overrides the user's environment in the build.
var buildEnv = []string{"CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off", "GOOS=linux", "GOARCH=" + runtime.GOARCH}

// buildKey identifies the programs by a hash of all their inputs.
func buildKey() string {
	return hash(append(slices.Concat(buildFlags, buildEnv), string(module))...)[:12]
}

// programs are the engine's programs of this version in a home, made or not. Whoever makes
// them holds the lock.
type programs struct {
	dir string // HOME/engine/build-KEY
	log func(format string, args ...any)
}

// bin returns the path of a program. An empty name gives their directory.
func (p programs) bin(name string) string { return filepath.Join(p.dir, "bin", name) }

// take copies the programs of [Options.Image], which saves minutes of building. If it
// rejects programs it logs the reason, and they are built. An image that cannot be had is
// an error. Programs that are not as they were made are removed first.
func (p programs) take(ctx context.Context, image func(context.Context) (path string, err error)) error {
	if exists(p.dir) {
		changed := owned.Intact(p.dir)
		if changed == nil {
			return nil
		}
		p.log("making the programs of the engine again: %v", changed)
		if err := os.RemoveAll(p.dir); err != nil {
			return err
		}
	}
	if image == nil {
		return nil
	}
	path, err := image(ctx)
	if err != nil {
		return err
	}
	if err := p.appear(func(tmp string) error { return unpackImage(path, tmp) }); err != nil {
		p.log("cannot copy the engine %s from its image: %v", Version, err)
		return nil
	}
	p.log("copied the engine %s from its image", Version)
	return nil
}

// goTool returns the path of go. A missing go is an error only if the programs have to
// be built.
func (p programs) goTool() (string, error) {
	goTool, ok := find("go")
	if !ok && !exists(p.bin("")) {
		return "", diag.Errorf(diag.NoEngine, "building the engine %s: go is not in PATH", Version).
			WithHint("install Go 1.25 or newer (go.dev/dl), %s", instead)
	}
	return goTool, nil
}

// build builds the programs if they are missing.
func (p programs) build(ctx context.Context, goTool string) error {
	if exists(p.bin("")) {
		return nil
	}
	p.log("building the engine %s from its Go modules: about 3 minutes, once", Version)
	start := time.Now()
	err := p.appear(func(tmp string) error {
		return compile(ctx, goTool, tmp, filepath.Join(filepath.Dir(p.dir), "build.log"))
	})
	if err == nil {
		p.log("built the engine in %s", time.Since(start).Round(time.Second))
	}
	return err
}

// appear makes the directory of the programs with fill. What a killed process leaves,
// prune removes.
func (p programs) appear(fill func(tmp string) error) error {
	return owned.Make(p.dir, func(tmp string) error {
		if err := os.Mkdir(filepath.Join(tmp, "bin"), 0o755); err != nil {
			return err
		}
		return fill(tmp)
	})
}

// compile writes the engine's module to dir/src and builds its programs into dir/bin. It
// writes the compiler's output to logFile.
func compile(ctx context.Context, goTool, dir, logFile string) error {
	if err := txtar.Write(txtar.Parse(module), filepath.Join(dir, "src")); err != nil {
		return fmt.Errorf("writing the engine's module: %w", err)
	}
	out := filepath.Join(dir, "bin") + string(filepath.Separator) // the separator makes it a directory for go build
	cmd := exec.CommandContext(ctx, goTool, slices.Concat([]string{"build", "-o", out}, buildFlags)...)
	cmd.Dir = filepath.Join(dir, "src")
	// GOGC has no effect on the programs, so it is no part of buildKey. The compiler collects
	// garbage less often than by default: that saves a quarter of the time and needs a third
	// more memory (156 s and 1.48 GB, 119 s and 1.91 GB on two processors).
	cmd.Env = slices.Concat([]string{"GOGC=400"}, os.Environ(), buildEnv)
	cmd.SysProcAttr = interrupted()
	runtime.LockOSThread() // the signal comes when the thread that started the process ends
	defer runtime.UnlockOSThread()
	if err := runLogged(ctx, cmd, logFile); err != nil {
		return fmt.Errorf("building the engine %s: %w", Version, err)
	}
	return nil
}

// prune removes programs of other versions and unfinished builds. They are unused: the
// current engine runs.
func (p programs) prune() {
	home := filepath.Dir(p.dir)
	entries, _ := os.ReadDir(home)
	for _, entry := range entries {
		path := filepath.Join(home, entry.Name())
		if strings.HasPrefix(entry.Name(), "build-") && path != p.dir && path != owned.Seals(p.dir) {
			os.RemoveAll(path)
		}
	}
}
