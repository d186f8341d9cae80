package native

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"builder/internal/base/diag"
	"builder/internal/base/owned"
)

// programs are the engine's programs of this version in a home, made or not. Whoever makes
// them holds the lock.
type programs struct {
	dir string // HOME/engine/build-KEY
	log func(format string, args ...any)
}

// bin returns the path of a program. An empty name gives their directory.
func (p programs) bin(name string) string { return filepath.Join(p.dir, "bin", name) }

// intact reports whether the programs are as they were made. It removes others, so that
// they are made again.
func (p programs) intact() (bool, error) {
	if !exists(p.dir) {
		return false, nil
	}
	if err := owned.Intact(p.dir); err != nil {
		p.log("making the programs of the engine again: %v", err)
		return false, os.RemoveAll(p.dir)
	}
	return true, nil
}

// take copies the programs of [Options.Image], which saves minutes of building. If it
// rejects programs it logs the reason, and they are built. An image that cannot be had is
// an error.
func (p programs) take(ctx context.Context, image func(context.Context) (path string, err error)) error {
	if have, err := p.intact(); have || err != nil || image == nil {
		return err
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
