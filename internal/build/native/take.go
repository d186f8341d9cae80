package native

import (
	"context"
	"os"

	"builder/internal/base/owned"
)

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

// take copies the programs of [Options.Image], which saves minutes of building. If it
// rejects programs it logs the reason, and they are built. An image that cannot be had is
// an error.
func (e *Engine) take(ctx context.Context) error {
	if have, err := e.intact(); have || err != nil || e.opts.Image == nil {
		return err
	}
	image, err := e.opts.Image(ctx)
	if err != nil {
		return err
	}
	if err := e.appear(func(tmp string) error { return unpackImage(image, tmp) }); err != nil {
		e.log("cannot copy the engine %s from its image: %v", Version, err)
		return nil
	}
	e.log("copied the engine %s from its image", Version)
	return nil
}
