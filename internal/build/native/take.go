package native

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"builder/internal/base/atomicfile"
)

// programs are the programs made by the build.
var programs = []string{"dagger", "dialstdio", "engine", "init"}

// sumsName is a file beside the programs with their digests, for sha256sum -c.
const sumsName = "sums"

// take copies the programs of [Options.From] or [Options.Image], which saves minutes of
// building. It copies and does not link, so later changes in one home do not affect
// another. If it rejects programs it logs the reason, and they are built. An image that
// cannot be had is an error.
func (e *Engine) take(ctx context.Context) error {
	if exists(e.bin("")) {
		return nil
	}
	if e.opts.From != "" {
		from := New(e.opts.From, e.log, Options{}).path("build-" + buildKey())
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
			if err := unpackLayer(tar.NewReader(archive), to); err != nil {
				return err
			}
			return writeSums(to)
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
// and compares them with their digests.
func copyPrograms(from, to string) error {
	sums, err := readOurs(filepath.Join(from, sumsName))
	if err != nil {
		return err
	}
	for _, name := range programs {
		path := filepath.Join(from, "bin", name)
		if err := ours(path); err != nil {
			return err
		}
		copied := filepath.Join(to, "bin", name)
		if err := errors.Join(atomicfile.Copy(path, copied), os.Chmod(copied, 0o755)); err != nil {
			return err
		}
	}
	if err := writeSums(to); err != nil {
		return err
	}
	if got, err := os.ReadFile(filepath.Join(to, sumsName)); err != nil || string(got) != sums {
		return errors.Join(err, fmt.Errorf("%s does not have the digests of its build", filepath.Join(from, "bin")))
	}
	return nil
}

// writeSums writes the digests of a build's programs.
func writeSums(dir string) error {
	var text strings.Builder
	for _, name := range programs {
		f, err := os.Open(filepath.Join(dir, "bin", name))
		if err != nil {
			return err
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s  bin/%s\n", hex.EncodeToString(h.Sum(nil)), name)
	}
	return atomicfile.Write(filepath.Join(dir, sumsName), []byte(text.String()))
}

func readOurs(path string) (string, error) {
	if err := ours(path); err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	return string(text), err
}

// ours returns an error unless only this user and root can change or replace a file.
// They must own the file and all directories above it, and others must not have write
// permission. Others may write to a sticky directory such as /tmp, because only owners
// can remove files there.
func ours(path string) error {
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil {
			return err
		}
		if at == path && !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a regular file", at)
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok || stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
			return fmt.Errorf("%s belongs to another user", at)
		}
		if sticky := info.IsDir() && info.Mode()&os.ModeSticky != 0; info.Mode().Perm()&0o022 != 0 && !sticky {
			return fmt.Errorf("other users can write to %s", at)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}
