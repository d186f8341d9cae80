package wheel

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"builder/internal/base/regular"
)

// An Installation is a distribution that an installer made from a wheel.
type Installation struct {
	Site   string          // directory of packages
	Record []Listed        // its RECORD, nil if it has none
	Others map[string]bool // files below Site that other distributions list
}

// A Comparison holds the differences between a wheel and an installation. Bytecode and
// programs of entry points are made by installers, so there is nothing to compare.
type Comparison struct {
	Same     int // installed files with the bytes of the wheel
	Bytecode int // files in __pycache__
	Programs int // of entry points
	Wrong    []string
}

// Limits of a comparison.
const (
	maxScript    = 16 << 20 // bytes of a script with an adapted first line
	maxInstalled = 1_000_000
	maxWrong     = 20 // shown differences
)

// madeByInstallers are the files that installers add to .dist-info.
var madeByInstallers = []string{"INSTALLER", "REQUESTED", "RECORD", "direct_url.json", "uv_build.json", "uv_cache.json"}

// shebang matches the lines that installers put in place of "#!python". The long form is
// for paths longer than the kernel allows.
var shebang = regexp.MustCompile(`\A(#!/bin/sh\n'''exec' [^\n]+ "\$0" "\$@"\n' '''|#!"?/[^\n]*)\n`)

// Compare compares an installation with the wheel: every member, every further file in
// its RECORD, and every further file in its directories that no other distribution lists.
func (w *Wheel) Compare(ctx context.Context, in Installation) (Comparison, error) {
	c := comparison{Wheel: w, Installation: in, expected: map[string]bool{}, dirs: map[string]bool{}}
	for _, f := range w.Files {
		if err := ctx.Err(); err != nil {
			return c.Comparison, err
		}
		if err := c.member(f.Name); err != nil {
			return c.Comparison, err
		}
	}
	names, err := w.entryPoints()
	if err != nil {
		return c.Comparison, err
	}
	for _, name := range names {
		c.outside = append(c.outside, "bin/"+name)
	}
	for _, l := range in.Record {
		c.listed(l.Path, names)
	}
	for _, dir := range slices.Sorted(maps.Keys(c.dirs)) {
		if err := c.directory(ctx, dir); err != nil {
			return c.Comparison, err
		}
	}
	slices.Sort(c.Wrong)
	c.Wrong = slices.Compact(c.Wrong)
	if n := len(c.Wrong); n > maxWrong {
		c.Wrong = append(c.Wrong[:maxWrong:maxWrong], fmt.Sprintf("and %d more", n-maxWrong))
	}
	return c.Comparison, nil
}

// comparison is a comparison in progress.
type comparison struct {
	*Wheel
	Installation
	Comparison
	expected map[string]bool // paths below Site
	dirs     map[string]bool // directories below Site with files of the wheel
	outside  []string        // ends of paths of files outside Site
	seen     int
}

func (c *comparison) wrong(format string, args ...any) {
	c.Wrong = append(c.Wrong, fmt.Sprintf(format, args...))
}

// member compares the installed file of a member.
func (c *comparison) member(name string) error {
	scheme, below := c.place(name)
	if scheme == "" {
		c.expected[below] = true
		for dir := path.Dir(below); dir != "."; dir = path.Dir(dir) {
			c.dirs[dir] = true
		}
	} else {
		c.outside = append(c.outside, c.below(scheme, below))
	}
	if unhashed(name, c.DistInfo) {
		return nil
	}
	at, err := c.find(scheme, below)
	if errors.Is(err, fs.ErrNotExist) {
		c.wrong("%.300q is missing", below)
		return nil
	}
	if err == nil {
		var same bool
		if same, err = c.same(name, at, scheme == "scripts"); err == nil && !same {
			c.wrong("%.300q was changed", below)
		} else if err == nil {
			c.Same++
		}
	}
	if fault := new(memberError); errors.As(err, &fault) {
		return fault.err
	}
	if err != nil { // such as a pipe, or a file of another user
		c.wrong("%.300q: %v", below, err)
	}
	return nil
}

// below returns the end of the path of a file outside the directory of packages.
func (c *comparison) below(scheme, below string) string {
	switch scheme {
	case "scripts":
		return "bin/" + below
	case "headers":
		return c.Name.Distribution + "/" + below
	}
	return below
}

// find returns the path of an installed file.
func (c *comparison) find(scheme, below string) (string, error) {
	if scheme == "" {
		at := filepath.Join(c.Site, filepath.FromSlash(below))
		_, err := os.Stat(at)
		return at, err
	}
	prefixes := []string{c.Site} // of pip install --target
	if base := filepath.Base(c.Site); base == "site-packages" || base == "dist-packages" {
		prefixes = []string{filepath.Dir(filepath.Dir(filepath.Dir(c.Site)))}
	}
	for _, prefix := range prefixes {
		dirs := []string{prefix}
		if scheme == "headers" {
			dirs, _ = filepath.Glob(filepath.Join(prefix, "include", "python*")) // the pattern is valid
			more, _ := filepath.Glob(filepath.Join(prefix, "include", "site", "python*"))
			dirs = append(dirs, more...)
		}
		for _, dir := range dirs {
			at := filepath.Join(dir, filepath.FromSlash(c.below(scheme, below)))
			if _, err := os.Stat(at); err == nil {
				return at, nil
			}
		}
	}
	return "", fs.ErrNotExist
}

// A memberError is an error of the wheel, and not of the installation.
type memberError struct{ err error }

func (e *memberError) Error() string { return e.err.Error() }

// same reports whether an installed file has the bytes of a member. Installers adapt the
// first line of a script.
func (c *comparison) same(name, at string, script bool) (bool, error) {
	f, err := regular.Follow(at)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if m := c.members[name]; script && m != nil && m.UncompressedSize64 < maxScript {
		text, err := c.ReadFile(name, maxScript)
		if err != nil {
			return false, &memberError{err}
		}
		if _, rest, ok := bytes.Cut(text, []byte("\n")); ok && bytes.HasPrefix(text, []byte("#!python")) {
			installed, err := regular.All(f, maxScript)
			return bytes.Equal(installed[len(shebang.Find(installed)):], rest), err
		}
	}
	line, err := measure(io.Discard, c.members[name])
	if err != nil {
		return false, &memberError{err}
	}
	h := sha256.New()
	n, err := io.Copy(h, f)
	return lineOf(name, h.Sum(nil), n) == line, err
}

// listed checks that a line of RECORD is about a file of the wheel or of an installer.
func (c *comparison) listed(name string, programs []string) {
	clean := path.Clean(name)
	switch {
	case c.expected[clean] || c.byInstaller(clean):
	case strings.HasPrefix(clean, "../") || path.IsAbs(clean) || strings.HasPrefix(clean, "bin/"):
		i := slices.IndexFunc(c.outside, func(end string) bool { return clean == end || strings.HasSuffix(clean, "/"+end) })
		if i < 0 {
			c.wrong("RECORD lists %.300q, which the wheel does not have", name)
		} else if slices.Contains(programs, path.Base(clean)) {
			c.Programs++
		}
	default:
		c.wrong("RECORD lists %.300q, which the wheel does not have", name)
	}
}

// byInstaller reports whether installers make a file below the directory of packages.
func (c *comparison) byInstaller(name string) bool {
	dir, base := path.Split(name)
	return isBytecode(name) || dir == c.DistInfo+"/" && slices.Contains(madeByInstallers, base)
}

func isBytecode(name string) bool {
	return path.Base(path.Dir(name)) == "__pycache__" && path.Ext(name) == ".pyc"
}

// directory finds files in a directory of the wheel that the wheel does not have.
func (c *comparison) directory(ctx context.Context, dir string) error {
	entries, err := os.ReadDir(filepath.Join(c.Site, filepath.FromSlash(dir)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // its files are missing, and reported
	}
	if err != nil {
		c.wrong("%.300q: %v", dir, err)
		return nil
	}
	for _, e := range entries {
		name := dir + "/" + e.Name()
		if c.dirs[name] {
			continue
		}
		err := fs.WalkDir(os.DirFS(c.Site), name, func(name string, e fs.DirEntry, err error) error {
			switch c.seen++; {
			case ctx.Err() != nil:
				return ctx.Err()
			case c.seen > maxInstalled:
				return fmt.Errorf("%s holds more than %d files", c.Site, maxInstalled)
			case err != nil:
				c.wrong("%.300q: %v", name, err)
			case e.IsDir() || c.expected[name] || c.Others[name]:
			case isBytecode(name):
				c.Bytecode++
			case !c.byInstaller(name):
				c.wrong("%.300q is not in the wheel", name)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
