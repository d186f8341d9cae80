// Package owned finds files that another user may have made or changed, and programs
// that are not as they were made.
package owned

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"builder/internal/base/atomicfile"
	"builder/internal/base/regular"
)

// Seals returns the path of the record of a directory. It lies beside the directory, so
// that whoever replaces the directory does not bring a record along.
func Seals(dir string) string { return dir + ".sums" }

// maxRecord limits a record in bytes. A directory of programs has some ten files.
const maxRecord = 1 << 20

// Make replaces a directory by one that fill fills, and records its digests. It appears
// complete or not at all. A killed process leaves a directory DIR.*.tmp, which nothing
// reads.
func Make(dir string, fill func(fresh string) error) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".*.tmp")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	if err := fill(fresh); err != nil {
		return err
	}
	if err := errors.Join(os.Chmod(fresh, 0o755), Seal(fresh, dir), os.RemoveAll(dir)); err != nil {
		return err
	}
	return os.Rename(fresh, dir)
}

// Seal records the digests of all files of a directory in the record of another, to
// which the caller renames it. It takes the right to write from other users, because the
// umask may give it.
func Seal(dir, as string) error {
	var record strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && (d.IsDir() || info.Mode().IsRegular()) {
			err = os.Chmod(path, info.Mode().Perm()&^0o022)
		}
		if err != nil || d.IsDir() {
			return err
		}
		sum, err := digest(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		fmt.Fprintf(&record, "%s  %s\n", sum, filepath.ToSlash(name))
		return err
	})
	if err != nil {
		return err
	}
	return atomicfile.Write(Seals(as), []byte(record.String()))
}

// Intact returns an error unless the files of a directory have the digests of its
// record, and no other user can have changed them. With names it reads only these files.
func Intact(dir string, names ...string) error {
	record := Seals(dir)
	lines, err := regular.Read(record, maxRecord)
	if err != nil {
		return err
	}
	found := 0
	for line := range strings.Lines(string(lines)) {
		sum, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		found++
		if err := unchanged(dir, name, sum); err != nil {
			return err
		}
	}
	if found < max(1, len(names)) {
		return fmt.Errorf("%s does not list all programs of %s", record, dir)
	}
	return nil
}

// unchanged checks one file of a directory, and the directories between them.
func unchanged(dir, name, sum string) error {
	path := filepath.Join(dir, name)
	got, err := digest(path)
	if err != nil {
		return err
	}
	if got != sum {
		return fmt.Errorf("%s does not have the digest that it was made with", path)
	}
	for at := path; len(at) >= len(dir); at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err == nil {
			err = check(at, info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// digest returns the sha256 of a regular file.
func digest(path string) (string, error) {
	f, err := regular.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	_, sum, err := regular.Digest(f)
	return sum, err
}

// Mine returns an error if a file belongs to another user than root and this one.
func Mine(path string, info fs.FileInfo) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user", path)
	}
	return nil
}

// Shared reports whether the mode of a file lets other users write to it.
func Shared(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }

// check returns an error if another user than root may have changed a file. Others may
// write to a sticky directory such as /tmp, because only owners can remove files there.
func check(path string, info fs.FileInfo) error {
	if err := Mine(path, info); err != nil {
		return err
	}
	if sticky := info.IsDir() && info.Mode()&os.ModeSticky != 0; Shared(info) && !sticky {
		return fmt.Errorf("other users can write to %s", path)
	}
	return nil
}
