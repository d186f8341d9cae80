package gate

import (
	"archive/tar"
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

	"builder/internal/recipe"
	"builder/internal/unpack"
	"builder/internal/wheel"
)

var archive = Gate{
	Name:   "archive",
	Asks:   "the archive beside the wheel holds the same library, byte for byte, in upstream's layout",
	Remedy: "the recipe's script packs two different builds, or leaves a file out: the archive must hold what the gates looked at",
	Wants:  func(e recipe.Expect) bool { return e.Archive != "" && e.Library != "" },
	check:  checkArchive,
}

// maxArchive bounds what an archive may unpack to, in bytes, and maxArchived how
// many files it may hold.
const (
	maxArchive  = 8 << 30
	maxArchived = 10_000
)

func checkArchive(_ context.Context, s Subject) answer {
	at := slices.IndexFunc(s.Beside, func(p string) bool { return filepath.Base(p) == s.Expect.Archive })
	if at < 0 {
		return failed("there is no %s beside the wheel", s.Expect.Archive)
	}
	want, err := s.librarySum()
	if err != nil {
		return unmeasured("%v", err)
	}
	found, err := readArchive(s.Beside[at])
	if err != nil {
		return failed("%s: %v", s.Expect.Archive, err)
	}
	faults := found.faults
	library := path.Base(s.Expect.Library) // the soname; the file has the whole version
	i := slices.IndexFunc(found.files, func(f archived) bool { return f.sum == want && strings.HasPrefix(path.Base(f.name), library) })
	if i < 0 {
		return judge(append(faults, fmt.Sprintf("%s holds no %s with the bytes of the wheel's, sha256 %s", s.Expect.Archive, library, want)), nil)
	}
	return judge(faults, []string{fmt.Sprintf("%s: %d files, %s is the wheel's %s", s.Expect.Archive, len(found.files), found.files[i].name, library)})
}

// librarySum is the sha256 of the wheel's library.
func (s Subject) librarySum() (string, error) {
	h := sha256.New()
	err := s.withLibrary(func(r wheel.Member) error {
		_, err := io.Copy(h, io.NewSectionReader(r, 0, 1<<62))
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// archived is a regular file of an archive.
type archived struct{ name, sum string }

// contents is what an archive holds, and what is wrong with it.
type contents struct {
	files  []archived
	faults []string
}

func readArchive(file string) (contents, error) {
	f, err := os.Open(file)
	if err != nil {
		return contents{}, err
	}
	defer f.Close()
	plain, err := unpack.Reader(f, file)
	if err != nil {
		return contents{}, err
	}
	defer plain.Close()
	bounded := &io.LimitedReader{R: plain, N: maxArchive}
	var found contents
	for entries := tar.NewReader(bounded); ; {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err == nil {
			err = found.add(h, entries)
		}
		if err != nil {
			return contents{}, fmt.Errorf("reading it after %d files: %w", len(found.files), err)
		}
	}
}

// add notes one entry. All of them lie below one directory, belong to root and
// lead nowhere else: what is unpacked by root must not surprise.
func (c *contents) add(h *tar.Header, r io.Reader) error {
	if len(c.files) >= maxArchived {
		return fmt.Errorf("it holds more than %d files", maxArchived)
	}
	if !filepath.IsLocal(h.Name) || h.Typeflag == tar.TypeSymlink && !filepath.IsLocal(path.Join(path.Dir(h.Name), h.Linkname)) {
		c.faults = append(c.faults, fmt.Sprintf("%s leads out of the archive", h.Name))
	}
	if h.Uid != 0 || h.Gid != 0 || h.Mode&0o6002 != 0 {
		c.faults = append(c.faults, fmt.Sprintf("%s belongs to %d:%d with mode %o", h.Name, h.Uid, h.Gid, h.Mode))
	}
	switch h.Typeflag {
	case tar.TypeDir, tar.TypeSymlink:
		return nil
	case tar.TypeReg:
		sum := sha256.New()
		if _, err := io.Copy(sum, r); err != nil {
			return err
		}
		c.files = append(c.files, archived{h.Name, hex.EncodeToString(sum.Sum(nil))})
		return nil
	}
	c.faults = append(c.faults, fmt.Sprintf("%s is neither a file, a directory nor a symbolic link", h.Name))
	return nil
}
