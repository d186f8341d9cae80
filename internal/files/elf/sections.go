package elf

import (
	"cmp"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// A Section is one section of a library's file. A section without bytes in the file
// reads as empty.
type Section struct {
	Name   string
	Offset int64
	Size   int64 // bytes in the file
	SHA256 string
	r      io.ReaderAt
}

// Open returns a reader for the section's bytes in the file, without unpacking.
func (s Section) Open() io.Reader { return io.NewSectionReader(s.r, s.Offset, s.Size) }

// Sections lists the sections of a library in order, each with the digest of its bytes.
func Sections(r io.ReaderAt) ([]Section, error) {
	if !Is(r) { // most files of a wheel need no child process
		return nil, errors.New("not an ELF file: wrong magic")
	}
	all, err := ask[[]Section](r, "sections")
	for i := range all {
		all[i].r = r
	}
	return all, err
}

// readSections is the work of a child.
func readSections(r io.ReaderAt) (all []Section, err error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return nil, err
	}
	for _, s := range f.Sections {
		if s.Type == elf.SHT_NULL {
			continue
		}
		one := Section{Name: s.Name, Offset: int64(s.Offset), r: r}
		if s.Type != elf.SHT_NOBITS {
			one.Size = int64(s.FileSize)
		}
		h := sha256.New()
		if n, err := io.Copy(h, one.Open()); err != nil || n != one.Size {
			return nil, fmt.Errorf("section %s: only %d of %d bytes are readable: %w", s.Name, n, one.Size, cmp.Or(err, io.ErrUnexpectedEOF))
		}
		one.SHA256 = hex.EncodeToString(h.Sum(nil))
		all = append(all, one)
	}
	return all, nil
}

// Whole returns a whole file as one section, for files other than libraries. An
// unreadable file has no bytes.
func Whole(r io.ReaderAt, name string) Section {
	s := Section{Name: name, r: r}
	h := sha256.New()
	n, err := io.Copy(h, io.NewSectionReader(r, 0, 1<<62))
	if err == nil {
		s.Size = n
	}
	s.SHA256 = hex.EncodeToString(h.Sum(nil))
	return s
}
