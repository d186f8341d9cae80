// Package difference names the members in which two builds of one artifact differ: those of
// a wheel or an archive. The output helps the user to find out why a build is not
// reproducible. What differs in a member is a question for a tool such as diffoscope.
//
// The package never decides whether two artifacts are the same. Their digests do.
package difference

import (
	"archive/tar"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/regular"
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
	read := archiveMembers
	isWheel := filepath.Ext(first) == ".whl"
	if isWheel {
		read = wheelMembers
	}
	lines, err := compare(first, second, read)
	if err != nil && !isWheel { // what is no archive, or cannot be unpacked, is compared as bytes
		lines, err = compare(first, second, wholeFile)
	}
	if err != nil {
		return nil, fmt.Errorf("comparing %s: %w", filepath.Base(first), err)
	}
	if len(lines) > maxLines {
		lines = append(lines[:maxLines], fmt.Sprintf("and %d more", len(lines)-maxLines))
	}
	return lines, nil
}

// A member is the size and the sha256 of a member.
type member struct {
	size int64
	sum  string
}

// compare compares the members that read returns by name.
func compare(first, second string, read func(file string) (map[string]member, error)) ([]string, error) {
	here, err1 := read(first)
	there, err2 := read(second)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(here)) {
		switch other, both := there[name]; {
		case !both:
			lines = append(lines, "only the first build made "+name)
		case here[name] != other:
			lines = append(lines, describe(cmp.Or(name, filepath.Base(first)), here[name].size, other.size))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if _, both := here[name]; !both {
			lines = append(lines, "only the second build made "+name)
		}
	}
	if _, isWhole := here[whole]; len(lines) == 0 && !isWhole {
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

// wheelMembers leaves out RECORD, which follows from the other members.
func wheelMembers(file string) (map[string]member, error) {
	w, err := wheel.Open(file)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	all := map[string]member{}
	for _, f := range w.Files {
		if f.Name == w.DistInfo+"/RECORD" {
			continue
		}
		sum, err := w.SHA256(f.Name)
		if err != nil {
			return nil, err
		}
		all[f.Name] = member{f.Size, sum}
	}
	return all, nil
}

// archiveMembers puts the target of a link before the content.
func archiveMembers(file string) (map[string]member, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	plain, err := unpack.Reader(f, file)
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	all := map[string]member{}
	r := tar.NewReader(io.LimitReader(plain, maxArchive))
	for range maxEntries {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		size, sum, err := regular.Digest(io.MultiReader(strings.NewReader(h.Linkname), r))
		if err != nil {
			return nil, err
		}
		all[h.Name] = member{size, sum}
	}
	return nil, fmt.Errorf("it holds more than the limit of %d entries", maxEntries)
}

func wholeFile(file string) (map[string]member, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, sum, err := regular.Digest(f)
	return map[string]member{whole: {size, sum}}, err
}
