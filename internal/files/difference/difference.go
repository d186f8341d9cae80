// Package difference names the members in which two builds of one artifact differ: those of
// a wheel or an archive. The output helps the user to find out why a build is not
// reproducible. What differs in a member is a question for a tool such as diffoscope.
//
// The package never decides whether two artifacts are the same. Their digests do.
package difference

import (
	"archive/tar"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/files/unpack"
	"builder/internal/files/wheel"
)

// Limits: lines of output, because longer output does not help the user; bytes and entries
// of an archive.
const (
	maxLines   = 40
	maxArchive = 8 << 30
	maxEntries = 100_000
)

// Of compares two files of one name, of any type, and returns one line per difference.
// It returns no lines for equal files.
func Of(first, second string) ([]string, error) {
	each := eachOfArchive
	isWheel := filepath.Ext(first) == ".whl"
	if isWheel {
		each = eachOfWheel
	}
	lines, err := compare(first, second, each)
	if err != nil && !isWheel { // what is no archive, or cannot be unpacked, is compared as bytes
		lines, err = compare(first, second, eachFile)
	}
	if err != nil {
		return nil, fmt.Errorf("comparing %s: %w", filepath.Base(first), err)
	}
	if len(lines) > maxLines {
		lines = append(lines[:maxLines], fmt.Sprintf("and %d more", len(lines)-maxLines))
	}
	return lines, nil
}

// compare compares the digests of all members.
func compare(first, second string, each reader) ([]string, error) {
	here, err1 := membersOf(first, each)
	there, err2 := membersOf(second, each)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(here)) {
		switch other := there[name]; {
		case other == nil:
			lines = append(lines, "only the first build made "+name)
		case here[name].digest() != other.digest():
			lines = append(lines, describe(cmp.Or(name, filepath.Base(first)), here[name].size, other.size))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if here[name] == nil {
			lines = append(lines, "only the second build made "+name)
		}
	}
	if len(lines) == 0 && here[whole] == nil {
		return []string{"the members are the same: their times, owners, modes, order or compression differ"}, nil
	}
	return lines, nil
}

// describe states how two members of one name differ.
func describe(name string, a, b int64) string {
	if a == b {
		return name + " differs"
	}
	return fmt.Sprintf("%s differs (%d and %d bytes)", name, a, b)
}

// whole is the name of a file that is its own only member.
const whole = ""

// A member is the content of a member of a build, as it is written to it.
type member struct {
	sum  hash.Hash
	size int64
}

// Write implements [io.Writer].
func (m *member) Write(p []byte) (int, error) {
	m.size += int64(len(p))
	return m.sum.Write(p)
}

func (m *member) digest() string { return string(m.sum.Sum(nil)) }

// membersOf returns all members of a file by name.
func membersOf(file string, each reader) (map[string]*member, error) {
	all := map[string]*member{}
	err := each(file, func(name string) io.Writer {
		all[name] = &member{sum: sha256.New()}
		return all[name]
	})
	return all, err
}

// A reader copies every member of a file to the writer for its name.
type reader func(file string, to func(name string) io.Writer) error

// eachOfWheel skips RECORD, which follows from the other members.
func eachOfWheel(file string, to func(string) io.Writer) error {
	w, err := wheel.Open(file)
	if err != nil {
		return err
	}
	defer w.Close()
	for _, f := range w.Files {
		if f.Name == w.DistInfo+"/RECORD" {
			continue
		}
		if err := w.Copy(to(f.Name), f.Name); err != nil {
			return err
		}
	}
	return nil
}

// eachOfArchive copies the target of a link before the content.
func eachOfArchive(file string, to func(string) io.Writer) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	plain, err := unpack.Reader(f, file)
	if err != nil {
		return err
	}
	defer plain.Close()
	r := tar.NewReader(io.LimitReader(plain, maxArchive))
	for range maxEntries {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := io.Copy(to(h.Name), io.MultiReader(strings.NewReader(h.Linkname), r)); err != nil {
			return err
		}
	}
	return fmt.Errorf("it holds more than the limit of %d entries", maxEntries)
}

func eachFile(file string, to func(string) io.Writer) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(to(whole), f)
	return err
}
