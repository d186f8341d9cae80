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

// programs are what the build makes.
var programs = []string{"dagger", "dialstdio", "dnsname", "engine", "init"}

// sumsName is a file beside the programs that says what was built, for sha256sum -c.
const sumsName = "sums"

// take copies the programs of [Options.From], which saves the minutes that it takes
// to make them. They are copied and not linked: what happens to one home's files
// happens to no other's. Where they cannot be had it says why, and they are made.
func (e *Engine) take() {
	if e.opts.From == "" || exists(e.bin("")) {
		return
	}
	from := New(e.opts.From, e.log, Options{}).path("build-" + buildKey())
	if !exists(from) {
		return
	}
	if err := e.appear(func(tmp string) error { return copyPrograms(from, tmp) }); err != nil {
		e.log("the engine %s in %s is not taken: %v", Version, from, err)
		return
	}
	e.log("took the engine %s from %s", Version, from)
}

// copyPrograms copies the programs of a build that nobody else can have changed, and
// demands that they are what was built.
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
		return errors.Join(err, fmt.Errorf("%s is not what was built", filepath.Join(from, "bin")))
	}
	return nil
}

// writeSums writes down what the programs of a build are.
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

// ours demands a file that nobody but this user and root can change or replace: it
// and all directories above belong to them, and nobody else may write there. In a
// directory as /tmp, whose files can only be removed by their owners, others may.
func ours(path string) error {
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil {
			return err
		}
		if at == path && !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a file", at)
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok || stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
			return fmt.Errorf("%s belongs to another user", at)
		}
		if sticky := info.IsDir() && info.Mode()&os.ModeSticky != 0; info.Mode().Perm()&0o022 != 0 && !sticky {
			return fmt.Errorf("others can write to %s", at)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}
