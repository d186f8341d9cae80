package native

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"builder/internal/base/atomicfile"
)

// programs are the programs made by the build.
var programs = []string{"dagger", "dialstdio", "engine", "init"}

// sumsName is a file beside the programs with their digests, for sha256sum -c.
const sumsName = "sums"

// take copies the programs of [Options.From], which saves minutes of building. It
// copies and does not link, so later changes in one home do not affect another. If it
// rejects programs it logs the reason, and they are built.
func (e *Engine) take() {
	if e.opts.From == "" || exists(e.bin("")) {
		return
	}
	from := New(e.opts.From, e.log, Options{}).path("build-" + buildKey())
	if !exists(from) {
		return
	}
	if err := e.appear(func(tmp string) error { return copyPrograms(from, tmp) }); err != nil {
		e.log("cannot copy the engine %s from %s: %v", Version, from, err)
		return
	}
	e.log("copied the engine %s from %s", Version, from)
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
