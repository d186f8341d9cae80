package elf

import (
	"bufio"
	"errors"
	"fmt"
	"io"
<<<<<<< HEAD
	"regexp"
	"slices"
	"strings"
)

// Bounds of [Texts]: a longer text is no message, and more matches than these
// say nothing more.
const (
	maxText  = 4 << 10
	maxTexts = 1000
)

// Texts returns the constant texts of a library that match, sorted and each
// once: what stands between zero bytes in its read-only data. A name that the
// library opens at run time is such a text, and so is its version.
func Texts(r io.ReaderAt, pattern *regexp.Regexp) ([]string, error) {
	img, err := openImage(r)
	if err != nil {
		return nil, err
	}
	var found []string
	for i := range img.sections {
		s := &img.sections[i]
		if !strings.HasPrefix(s.name, ".rodata") || s.Size == 0 {
			continue
		}
		data, err := img.open(s)
		if err != nil {
			return nil, err
		}
		if found, err = texts(data, pattern, found); err != nil {
			return nil, fmt.Errorf("reading section %q: %w", s.name, err)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// texts adds to found what matches between zero bytes. A text longer than
// maxText is looked at in pieces that do not overlap.
func texts(r io.Reader, pattern *regexp.Regexp, found []string) ([]string, error) {
	in := bufio.NewReaderSize(r, maxText)
	for len(found) < maxTexts {
		text, err := in.ReadSlice(0)
		if trimmed := strings.TrimRight(string(text), "\x00"); trimmed != "" && pattern.MatchString(trimmed) {
			found = append(found, trimmed)
		}
		switch {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
	return found, nil
=======
	"strings"
)

// minText is the length from which a run of printable bytes is a text.
const minText = 6

// Texts visits the printable texts among the constants of a library (.rodata):
// messages, banners, the names under which kernels are registered. Longer ones
// than a name can be are cut.
func Texts(r io.ReaderAt, visit func(string)) error {
	img, err := openImage(r)
	if err != nil {
		return err
	}
	for i := range img.sections {
		s := &img.sections[i]
		if s.name != ".rodata" && !strings.HasPrefix(s.name, ".rodata.") {
			continue
		}
		raw, err := img.open(s)
		if err != nil {
			return err
		}
		size, err := texts(bufio.NewReaderSize(raw, 64<<10), visit)
		if err != nil {
			return fmt.Errorf("reading section %q: %w", s.name, err)
		}
		if size != s.Size {
			return fmt.Errorf("section %q runs past the end of the file", s.name)
		}
	}
	return nil
}

// texts returns how many bytes it read.
func texts(r io.ByteReader, visit func(string)) (size uint64, err error) {
	run := make([]byte, 0, maxName)
	for ; ; size++ {
		b, err := r.ReadByte()
		if err == nil && b >= ' ' && b <= '~' {
			if len(run) < maxName {
				run = append(run, b)
			}
			continue
		}
		if len(run) >= minText {
			visit(string(run))
		}
		run = run[:0]
		if errors.Is(err, io.EOF) {
			return size, nil
		}
		if err != nil {
			return size, err
		}
	}
>>>>>>> h-d
}
