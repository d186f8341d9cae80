package native

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
	if err != nil {
		return err
	}
	e.copied("its image", func(tmp string) error { return unpackImage(image, tmp) })
	return image.Close()
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

// unpackImage writes the programs of an image to the directory to. It returns an error
// if the image has other programs than this builder would build.
func unpackImage(image io.Reader, to string) error {
	for archive := tar.NewReader(image); ; {
		h, err := archive.Next()
		if err != nil {
			return fmt.Errorf("reading an image of `builder engine image`: %w", err)
		}
		if strings.HasSuffix(h.Name, ".tar") {
			return unpackLayer(tar.NewReader(archive), to)
		}
	}
}

// unpackLayer writes the programs in the layer of an image.
func unpackLayer(layer *tar.Reader, to string) error {
	wanted := maps.Clone(imagePrograms)
	wanted[imageBuild] = ""
	for len(wanted) > 0 {
		h, err := layer.Next()
		if err != nil {
			return fmt.Errorf("reading the layer of the image, which lacks %s: %w", strings.Join(slices.Sorted(maps.Keys(wanted)), ", "), err)
		}
		name, is := wanted[h.Name]
		switch {
		case !is || h.Typeflag != tar.TypeReg:
			continue
		case h.Name == imageBuild:
			err = sameBuild(layer)
		case h.Size > maxProgram:
			err = fmt.Errorf("%s in the image has %d bytes", h.Name, h.Size)
		default:
			err = unpackProgram(layer, filepath.Join(to, "bin", name))
		}
		if err != nil {
			return err
		}
		delete(wanted, h.Name)
	}
	return nil
}

// maxProgram limits the size of a program in an image, in bytes. The largest has 0.13
// GB.
const maxProgram = 1 << 30

// sameBuild returns an error unless r holds the buildKey of this builder.
func sameBuild(r io.Reader) error {
	key, err := io.ReadAll(io.LimitReader(r, 100))
	if got := strings.TrimSpace(string(key)); err == nil && got != buildKey() {
		err = fmt.Errorf("another version of builder made it: it has build %q, this builder needs %q", got, buildKey())
	}
	return err
}

func unpackProgram(r io.Reader, path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Chmod(0o755), f.Close()) // the umask may be stricter
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
