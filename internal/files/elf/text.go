package elf

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// Bounds of texts: a shorter run of printable bytes is chance, and more matches
// than these say nothing more.
const (
	minText  = 6
	maxTexts = 1000
)

// Texts returns the constant texts of a library that match, sorted and each
// once. A name that the library opens at run time is such a text, and so is its
// version.
func Texts(r io.ReaderAt, pattern *regexp.Regexp) ([]string, error) {
	var found []string
	err := EachText(r, func(text string) {
		if len(found) < maxTexts && pattern.MatchString(text) {
			found = append(found, text)
		}
	})
	slices.Sort(found)
	return slices.Compact(found), err
}

// EachText visits the printable texts among the constants of a library
// (.rodata): messages, banners, the names under which kernels are registered.
// Longer ones than a name can be are cut.
func EachText(r io.ReaderAt, visit func(string)) error {
	return eachText(r, constants, visit)
}

// EachSourceText visits what EachText does, and the texts that are there for
// debuggers: names of source files, of directories and of the compiler.
func EachSourceText(r io.ReaderAt, visit func(string)) error {
	return eachText(r, func(section string) bool {
		return constants(section) || slices.Contains([]string{".debug_str", ".debug_line_str", ".debug_line", ".comment"}, section)
	}, visit)
}

func constants(section string) bool {
	return section == ".rodata" || strings.HasPrefix(section, ".rodata.")
}

// eachText visits the texts of the sections that are wanted.
func eachText(r io.ReaderAt, wanted func(section string) bool, visit func(string)) error {
	img, err := openSectioned(r)
	if err != nil {
		return err
	}
	for i := range img.sections {
		s := &img.sections[i]
		if !wanted(s.name) {
			continue
		}
		raw, err := img.open(s)
		if err != nil {
			return err
		}
		size, err := texts(bufio.NewReaderSize(weighed{raw, img.r, weighText}, 64<<10), func(text string) error {
			visit(text)
			return img.r.spend(1, weighVisit)
		})
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
func texts(r io.ByteReader, visit func(string) error) (size uint64, err error) {
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
			if err := visit(string(run)); err != nil {
				return size, err
			}
		}
		run = run[:0]
		if errors.Is(err, io.EOF) {
			return size, nil
		}
		if err != nil {
			return size, err
		}
	}
}
