package native

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"builder/internal/base/atomicfile"
	"builder/internal/base/owned"
)

// programs are the programs made by the build, below its directory.
var programs = []string{"bin/dagger", "bin/dialstdio", "bin/engine", "bin/init"}

// programsDir returns the directory of the programs.
func (e *Engine) programsDir() string { return e.path("build-" + buildKey()) }

// intact reports whether the programs are as they were made. It removes others, so that
// they are made again. The caller holds the lock.
func (e *Engine) intact() (bool, error) {
	dir := e.programsDir()
	if !exists(dir) {
		return false, nil
	}
	if err := owned.Intact(dir); err != nil {
		e.log("making the programs of the engine again: %v", err)
		return false, os.RemoveAll(dir)
	}
	return true, nil
}

// take copies the programs of [Options.From] or [Options.Image], which saves minutes of
// building. It copies and does not link, so later changes in one home do not affect
// another. If it rejects programs it logs the reason, and they are built. An image that
// cannot be had is an error.
func (e *Engine) take(ctx context.Context) error {
	if have, err := e.intact(); have || err != nil {
		return err
	}
	if e.opts.From != "" {
		from := New(e.opts.From, e.log, Options{}).programsDir()
		if exists(from) && e.copied(from, func(tmp string) error { return copyPrograms(from, tmp) }) {
			return nil
		}
	}
	if e.opts.Image == nil {
		return nil
	}
	image, err := e.opts.Image(ctx)
	if err == nil {
		e.copied("its image", func(tmp string) error { return unpackImage(image, tmp) })
	}
	return err
}

// copied fills the directory of the programs with fill, and logs the result.
func (e *Engine) copied(from string, fill func(tmp string) error) bool {
	if err := e.appear(fill); err != nil {
		e.log("cannot copy the engine %s from %s: %v", Version, from, err)
		return false
	}
	e.log("copied the engine %s from %s", Version, from)
	return true
}

// copyPrograms copies the programs of a build if no other user can have changed them,
// and compares the copies with their digests.
func copyPrograms(from, to string) error {
	if err := owned.File(owned.Seals(from)); err != nil {
		return err
	}
	for _, name := range programs {
		path, copied := filepath.Join(from, name), filepath.Join(to, name)
		if err := owned.File(path); err != nil {
			return err
		}
		if err := errors.Join(atomicfile.Copy(path, copied), os.Chmod(copied, 0o755)); err != nil {
			return err
		}
	}
	return owned.Match(to, owned.Seals(from), programs...)
}
