package wheel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A Comparison holds the differences between a wheel and an installation.
type Comparison struct {
	Same        int // installed files with the digest in the wheel's RECORD
	NotCompared int // bytecode, headers, and programs that an installer makes
	Wrong       []string
}

// Limits of a comparison.
const (
	maxInstalled = 1_000_000 // files in the directories of the wheel
	maxScript    = 16 << 20  // bytes of a script with an adapted first line
	maxWrong     = 20        // shown differences
)

// madeByInstallers are the files that installers add to .dist-info, or write again.
var madeByInstallers = []string{"INSTALLER", "REQUESTED", "RECORD", "direct_url.json", "uv_build.json", "uv_cache.json"}

// Compare compares an installation with the RECORD of the wheel. Every file of it must
// have the same bytes. Every other file in the directories of the wheel, and in the
// RECORD of the installation, must be that of an installer or of another distribution.
func (w *Wheel) Compare(ctx context.Context, in Installed) (Comparison, error) {
	text, err := w.ReadFile(w.DistInfo+"/RECORD", maxRecord)
	if err != nil {
		return Comparison{}, err
	}
	record, err := ParseRecord(text)
	if err != nil {
		return Comparison{}, err
	}
	programs, err := w.entryPoints()
	if err != nil {
		return Comparison{}, err
	}
	c := comparison{Wheel: w, Installed: in, expected: map[string]string{}}
	for _, name := range programs {
		c.outside = append(c.outside, "bin/"+name)
		c.NotCompared++
	}
	for _, l := range record {
		if err := ctx.Err(); err != nil {
			return c.Comparison, err
		}
		c.signed(l)
	}
	for _, l := range in.record {
		c.listed(l)
	}
	for _, top := range c.directories() {
		if err := c.extra(ctx, top); err != nil {
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
	Installed
	Comparison
	expected map[string]string // path in the directory of packages to digest
	outside  []string          // ends of the paths of files outside of it
	seen     int
}

func (c *comparison) wrong(format string, args ...any) {
	c.Wrong = append(c.Wrong, fmt.Sprintf(format, args...))
}

// signed compares the installed file of a line of the wheel's RECORD.
func (c *comparison) signed(l Listed) {
	scheme, below := c.place(l.Path)
	at := filepath.Join(c.site, filepath.FromSlash(below))
	switch scheme {
	case "":
		c.expected[below] = l.SHA256
	case "headers": // their directory depends on the installer
		c.outside = append(c.outside, c.Name.Distribution+"/"+below)
		c.NotCompared++
		return
	default:
		if scheme == "scripts" {
			below = "bin/" + below
		}
		c.outside = append(c.outside, below)
		at = filepath.Join(c.prefix(), filepath.FromSlash(below))
	}
	if unhashed(l.Path, c.DistInfo) {
		return
	}
	switch sum, err := digestOf(at); {
	case errors.Is(err, fs.ErrNotExist):
		c.wrong("%.300q is missing", below)
	case err != nil: // such as a pipe, or a file of another user
		c.wrong("%.300q: %v", below, err)
	case scheme == "scripts" && c.isPython(l.Path):
		c.NotCompared++
	case sum != l.SHA256:
		c.wrong("%.300q was changed", below)
	default:
		c.Same++
	}
}

// isPython reports whether a member is a script of which an installer writes the first
// line.
func (c *comparison) isPython(name string) bool {
	text, err := c.ReadFile(name, maxScript)
	return err == nil && bytes.HasPrefix(text, []byte("#!python"))
}

// prefix returns the directory above bin. A directory of `pip install --target` has it
// inside.
func (c *comparison) prefix() string {
	if base := filepath.Base(c.site); base == "site-packages" || base == "dist-packages" {
		return filepath.Dir(filepath.Dir(filepath.Dir(c.site)))
	}
	return c.site
}

// listed checks that a line of the installed RECORD is about a file of the wheel, with
// the same digest, or of an installer.
func (c *comparison) listed(l Listed) {
	clean := path.Clean(l.Path)
	sum, signed := c.expected[clean]
	isProgram := func(end string) bool { return clean == end || strings.HasSuffix(clean, "/"+end) }
	switch {
	case c.byInstaller(clean):
	case signed && l.SHA256 != "" && l.SHA256 != sum:
		c.wrong("RECORD has another digest for %.300q than the wheel", l.Path)
	case signed, slices.ContainsFunc(c.outside, isProgram):
	default:
		c.wrong("RECORD lists %.300q, which the wheel does not have", l.Path)
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

// directories lists the directories of the wheel in the directory of packages.
func (c *comparison) directories() (tops []string) {
	for name := range c.expected {
		if top, _, inside := strings.Cut(name, "/"); inside {
			tops = append(tops, top)
		}
	}
	return sortedSet(tops)
}

// extra finds files below a directory of the wheel that nobody may have put there.
func (c *comparison) extra(ctx context.Context, top string) error {
	return fs.WalkDir(os.DirFS(c.site), top, func(name string, e fs.DirEntry, err error) error {
		_, signed := c.expected[name]
		switch c.seen++; {
		case ctx.Err() != nil:
			return ctx.Err()
		case c.seen > maxInstalled:
			return fmt.Errorf("%s holds more than %d files", c.site, maxInstalled)
		case errors.Is(err, fs.ErrNotExist): // its files are missing, and reported
		case err != nil:
			c.wrong("%.300q: %v", name, err)
		case e.IsDir() || signed || c.others[name]:
		case isBytecode(name):
			c.NotCompared++
		case !c.byInstaller(name):
			c.wrong("%.300q is not in the wheel", name)
		}
		return nil
	})
}
