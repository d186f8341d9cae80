package gate

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/files/unpack"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var archive = Gate{
	Name:   "archive",
	Asks:   "the archive beside the wheel holds the same library, byte for byte, in upstream's layout",
	Remedy: "the recipe's script packs two different builds, or leaves a file out: pack the library checked by the gates into the archive",
	Promise: recipe.Promise{
		Of:   "",
		Says: "name of the file beside the wheel that holds the same in upstream's layout",
	},
	Wants: func(e recipe.Expect) bool { return states("archive")(e) && e.Library != "" },
	check: checkArchive,
}

func checkArchive(_ context.Context, s Subject) verdict.Verdict {
	name := settings[string](s.Expect, "archive")
	at := slices.IndexFunc(s.Beside, func(p string) bool { return filepath.Base(p) == name })
	if at < 0 {
		return verdict.Failed("%s is missing beside the wheel", name)
	}
	digests, err := digestsOf(s.Artifact, s.Expect.Library)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	found, err := readArchive(s.Beside[at], name, maxArchive)
	if err != nil {
		return verdict.Failed("%s: %v", name, err)
	}
	library := path.Base(s.Expect.Library)
	return verdict.Judge(append(found.problems, found.differs(library, digests[s.Expect.Library])...),
		[]string{fmt.Sprintf("%s: %d files, lib/%s as in the wheel", name, len(found.files), library)})
}

// maxArchive bounds the unpacked size of an archive in bytes, and maxArchived the
// number of its entries.
const (
	maxArchive  = 8 << 30
	maxArchived = 10_000
)

// readArchive reads an archive. The compression follows from name, because a file in the
// store has no suffix.
func readArchive(file, name string, limit int64) (*contents, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	plain, err := unpack.Reader(f, name)
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	found := newContents(limit)
	if err := found.read(&io.LimitedReader{R: plain, N: limit + 1}); err != nil {
		return nil, fmt.Errorf("reading it after %d entries: %w", found.count, err)
	}
	return found, nil
}

// contents holds the content of an archive and its problems.
type contents struct {
	files    map[string]string // regular files to their sha256
	programs map[string]bool   // regular files executable by their owner
	links    map[string]string // symbolic links to their targets
	names    map[string]bool   // names of all entries
	count    int               // number of entries
	top      string            // the common top directory
	left     int64             // number of bytes still allowed
	problems []string
}

func newContents(limit int64) *contents {
	return &contents{files: map[string]string{}, programs: map[string]bool{}, links: map[string]string{}, names: map[string]bool{}, left: limit}
}

func (c *contents) read(r *io.LimitedReader) error {
	for entries := tar.NewReader(r); ; {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = c.add(h, entries)
		}
		if err != nil {
			return err
		}
	}
	if c.count == 0 {
		return errors.New("it is empty")
	}
	// Only at the end of the stream does a decompressor check its sums and detect a
	// truncated file.
	_, err := io.Copy(zeros{}, r)
	if err == nil && r.N == 0 {
		return errors.New("it unpacks to more than the limit")
	}
	return err
}

// zeros takes what may follow the end of an archive.
type zeros struct{}

func (zeros) Write(data []byte) (int, error) {
	if len(bytes.Trim(data, "\x00")) > 0 {
		return 0, errors.New("it has bytes after the end of the archive")
	}
	return len(data), nil
}

// add records one entry and its problems. Root may unpack the archive, so owners and
// modes are checked too.
func (c *contents) add(h *tar.Header, r io.Reader) error {
	name := strings.TrimSuffix(h.Name, "/")
	if c.count++; c.count > maxArchived {
		return fmt.Errorf("it holds more than the limit of %d entries", maxArchived)
	}
	if c.left -= h.Size; h.Size < 0 || c.left < 0 {
		return fmt.Errorf("%s has %d bytes, above the limit", name, h.Size)
	}
	if fault := c.placeFault(name); fault != "" {
		c.problem("%s", fault)
	}
	c.names[name] = true
	if (h.Uid != 0 || h.Gid != 0) || !ofRoot(h.Uname) || !ofRoot(h.Gname) {
		c.problem("%s belongs to %d:%d %s:%s, not to root", name, h.Uid, h.Gid, h.Uname, h.Gname)
	}
	if h.Typeflag != tar.TypeSymlink && h.Mode&0o6002 != 0 {
		c.problem("%s has mode %o", name, h.Mode)
	}
	return c.addKind(name, h, r)
}

func (c *contents) addKind(name string, h *tar.Header, r io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
	case tar.TypeReg:
		sum := sha256.New()
		if _, err := io.Copy(sum, r); err != nil {
			return err
		}
		c.files[name], c.programs[name] = hex.EncodeToString(sum.Sum(nil)), h.Mode&0o100 != 0
	case tar.TypeSymlink:
		// Through links between directories even a name without .. can lead outside.
		if strings.Contains(h.Linkname, "/") || h.Linkname == "." || h.Linkname == ".." {
			c.problem("%s leads to %s, out of its directory", name, h.Linkname)
		}
		c.links[name] = h.Linkname
	default:
		c.problem("%s is not a file, a directory or a symbolic link", name)
	}
	return nil
}

func (c *contents) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// ofRoot reports whether tar maps this owner's name to root.
func ofRoot(name string) bool { return name == "" || name == "root" }

// placeFault describes the problem of an entry's path. All entries must be below one
// directory, each once.
func (c *contents) placeFault(name string) string {
	top, _, _ := strings.Cut(name, "/")
	switch {
	case !filepath.IsLocal(name) || path.Clean(name) != name:
		return fmt.Sprintf("%q leads out of the archive, or is not a plain path", name)
	case c.names[name]:
		return name + " is in the archive twice"
	case c.top == "":
		c.top = top
	case top != c.top:
		return fmt.Sprintf("%s lies beside %s, not below it", name, c.top)
	}
	return ""
}

// differs compares the library found by a linker or a loader in the archive with the
// wheel's library, by its soname and by its name without a version.
func (c *contents) differs(soname, want string) (problems []string) {
	development, _, _ := strings.Cut(soname, ".so")
	for _, name := range []string{soname, development + ".so"} {
		if have := c.resolve(c.top + "/lib/" + name); have != want {
			problems = append(problems, fmt.Sprintf("lib/%s is %s, and sha256 %s in the wheel", name, cmp.Or(have, "missing"), want))
		}
	}
	return problems
}

// resolve follows links to a regular file and returns its sha256, or "" if there is
// none.
func (c *contents) resolve(name string) string {
	for range len(c.links) + 1 {
		if sum := c.files[name]; sum != "" {
			return sum
		}
		name = path.Join(path.Dir(name), c.links[name])
	}
	return ""
}
