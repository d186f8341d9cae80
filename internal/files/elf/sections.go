package elf

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"io"
)

// A Section is one section of a library's file. A section without bytes in the file
// reads as empty.
type Section struct {
	Name   string
	Size   int64 // bytes in the file
	SHA256 string
	r      io.ReaderAt
	offset int64
}

// Open returns a reader for the section's bytes in the file, without unpacking.
func (s Section) Open() io.Reader { return io.NewSectionReader(s.r, s.offset, s.Size) }

// Sections lists the sections of a library in order, each with the digest of its bytes.
func Sections(r io.ReaderAt) ([]Section, error) {
	img, _, err := openImage(r)
	if err != nil {
		return nil, err
	}
	var all []Section
	for _, s := range img.sections {
		if s.Type == uint32(elf.SHT_NULL) {
			continue
		}
		one := Section{Name: s.name, r: img.r, offset: int64(s.Off)}
		if s.Type != uint32(elf.SHT_NOBITS) {
			one.Size = int64(s.Size)
		}
		h := sha256.New()
		if n, err := io.Copy(h, one.Open()); err != nil || n != one.Size {
			return nil, fmt.Errorf("section %s: only %d of %d bytes are readable: %w", s.name, n, one.Size, orEOF(err))
		}
		one.SHA256 = hex.EncodeToString(h.Sum(nil))
		all = append(all, one)
	}
	return all, nil
}

func orEOF(err error) error {
	if err == nil {
		return io.ErrUnexpectedEOF
	}
	return err
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
