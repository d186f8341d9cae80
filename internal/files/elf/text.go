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
	maxName  = 64 << 10 // one text, or one name in PTX
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

// EachSourceText visits the texts of EachText, those for debuggers (names of source files,
// of directories and of the compiler), and those in code for GPUs that is not compressed.
func EachSourceText(r io.ReaderAt, visit func(string)) error {
	return eachText(r, func(string) bool { return true }, visit)
}

func constants(section string) bool {
	return section == ".rodata" || strings.HasPrefix(section, ".rodata.")
}

// textSection is a section with texts. Sections share no bytes of the file, so the time to read them
// is linear in its size.
type textSection struct {
	Section      string
	Offset, Size int64
	Compressed   bool
}

var debugging = []string{".debug_str", ".debug_line_str", ".debug_line", ".comment", hipFatbin, loaded, relocatable}

// eachText visits the texts of the wanted sections.
func eachText(r io.ReaderAt, wanted func(section string) bool, visit func(string)) error {
	b := budgeted(r)
	known, err := read(b)
	if err != nil {
		return err
	}
	for _, p := range known.Texts {
		if !wanted(p.Section) {
			continue
		}
		if p.Compressed {
			return fmt.Errorf("section %q is compressed", p.Section)
		}
		of := bufio.NewReaderSize(io.NewSectionReader(b.ReaderAt, p.Offset, p.Size), 64<<10)
		if err := texts(of, visit); err != nil {
			return fmt.Errorf("reading section %q: %w", p.Section, err)
		}
		if err := b.ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// texts visits the texts in r.
func texts(r io.ByteReader, visit func(string)) error {
	run := make([]byte, 0, maxName)
	for {
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
			return nil
		}
		if err != nil {
			return err
		}
	}
}
