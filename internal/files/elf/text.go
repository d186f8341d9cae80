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

// Limits of texts. A shorter run of printable bytes occurs by chance, and more matches
// add no information.
const (
	minText  = 6
	maxTexts = 1000
)

// Texts returns the constant texts of a library that match the pattern, sorted and
// without duplicates. Such texts include the names opened at run time and the version
// of the library.
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

// EachText visits the printable texts in the constants of a library (.rodata):
// messages, banners, names of registered kernels. It truncates a text to maxName bytes.
func EachText(r io.ReaderAt, visit func(string)) error {
	return eachText(r, constants, visit)
}

// EachSourceText visits the texts of EachText and those for debuggers: names of source
// files, of directories and of the compiler.
func EachSourceText(r io.ReaderAt, visit func(string)) error {
	return eachText(r, func(section string) bool {
		return constants(section) || slices.Contains([]string{".debug_str", ".debug_line_str", ".debug_line", ".comment"}, section)
	}, visit)
}

func constants(section string) bool {
	return section == ".rodata" || strings.HasPrefix(section, ".rodata.")
}

// eachText visits the texts of the wanted sections.
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

// texts visits the texts in r and returns the number of bytes read.
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
