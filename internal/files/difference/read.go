package difference

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"builder/internal/files/unpack"
	"builder/internal/files/wheel"
)

// Limits of reading: bytes and entries of an archive, bytes of a member searched for
// texts, and bytes of a text.
const (
	maxArchive = 8 << 30
	maxEntries = 100_000
	maxMember  = 512 << 20
	minText    = 5
	maxText    = 200
)

// whole is the name of a file that is its own only member.
const whole = ""

// A member is the content of a member of a build, as it is written to it.
type member struct {
	sum   hash.Hash
	size  int64
	texts map[string]bool // readable texts: symbols, paths, messages; nil if nobody wants them
	run   []byte
}

// membersOf returns all members of a file, or those with the given names and their texts.
func membersOf(file string, each reader, names map[string]bool) (map[string]*member, error) {
	all := map[string]*member{}
	err := each(file, func(name string) io.Writer {
		m := &member{sum: sha256.New()}
		switch {
		case names[name]:
			m.texts = map[string]bool{}
		case names != nil:
			return io.Discard
		}
		all[name] = m
		return m
	})
	return all, err
}

// Write implements [io.Writer].
func (m *member) Write(p []byte) (int, error) {
	m.size += int64(len(p))
	if m.texts == nil {
		return m.sum.Write(p)
	}
	for _, b := range p {
		if b < ' ' || b > '~' || m.size > maxMember {
			m.endText()
		} else if len(m.run) < maxText {
			m.run = append(m.run, b)
		}
	}
	return len(p), nil
}

func (m *member) endText() {
	if len(m.run) >= minText {
		m.texts[string(m.run)] = true
	}
	m.run = m.run[:0]
}

// textsLackingIn returns the texts that another member does not have, sorted.
func (m *member) textsLackingIn(other *member) []string {
	m.endText()
	other.endText()
	lacking := maps.Clone(m.texts)
	maps.DeleteFunc(lacking, func(text string, _ bool) bool { return other.texts[text] })
	return slices.Sorted(maps.Keys(lacking))
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
