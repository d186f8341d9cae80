// Package difference describes where two builds of one artifact differ: members of a
// wheel or an archive, sections of a library, and names in those sections. It also
// names the usual cause of such a difference. The output helps the user to find out why
// a build is not reproducible.
//
// The package never decides whether two artifacts are the same. Their digests do.
package difference

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"builder/internal/files/elf"
	"builder/internal/files/wheel"
)

// Limits of the output. Longer output does not help the user, and hostile files can
// differ in many places.
const (
	maxLines   = 40
	maxNames   = 4
	maxSection = 512 << 20 // bytes of a section searched for names
	maxText    = 200       // bytes of a name
)

// Of compares two files of one name, of any type, and returns one line per difference.
// It returns no lines for equal files.
func Of(first, second string) ([]string, error) {
	lines, err := files(first, second)
	if err != nil {
		return nil, fmt.Errorf("comparing %s: %w", filepath.Base(first), err)
	}
	if len(lines) > maxLines {
		lines = append(lines[:maxLines], fmt.Sprintf("and %d more", len(lines)-maxLines))
	}
	return lines, nil
}

func files(first, second string) ([]string, error) {
	if filepath.Ext(first) == ".whl" {
		return wheels(first, second)
	}
	if isArchive(first) {
		if lines, err := archives(first, second); err == nil {
			return lines, nil
		} // an archive with an unpacking error is compared as bytes
	}
	a, err := os.Open(first)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	b, err := os.Open(second)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return contents(filepath.Base(first), a, b)
}

// wheels compares the members of two wheels. It skips RECORD, which follows from the
// others.
func wheels(first, second string) ([]string, error) {
	a, err := wheel.Open(first)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	b, err := wheel.Open(second)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	here, err1 := digests(a)
	there, err2 := digests(b)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	return members(here, there, func(name string) ([]string, error) {
		x, err := a.Open(context.Background(), name)
		if err != nil {
			return nil, err
		}
		defer x.Close()
		y, err := b.Open(context.Background(), name)
		if err != nil {
			return nil, err
		}
		defer y.Close()
		return contents(name, x, y)
	})
}

// digests returns the sha256 of every member but RECORD.
func digests(w *wheel.Wheel) (map[string]string, error) {
	sums := map[string]string{}
	for _, f := range w.Files {
		sum, err := w.SHA256(f.Name)
		if err != nil {
			return nil, err
		}
		sums[f.Name] = sum
	}
	delete(sums, w.DistInfo+"/RECORD")
	return sums, nil
}

// members compares the members of two archives by their digests. differs describes two
// members of one name.
func members(here, there map[string]string, differs func(name string) ([]string, error)) ([]string, error) {
	lines, common := lacking(here, there, "")
	for _, name := range common {
		if here[name] == there[name] {
			continue
		}
		more, err := differs(name)
		if err != nil {
			return nil, err
		}
		lines = append(lines, more...)
	}
	if len(lines) == 0 {
		lines = []string{"the members are the same: their times, owners, modes, order or compression differ"}
	}
	return lines, nil
}

// lacking returns a line for every name that one build alone made, and the names that
// both made.
func lacking[V any](here, there map[string]V, what string) (lines, common []string) {
	for _, name := range slices.Sorted(maps.Keys(here)) {
		if _, ok := there[name]; ok {
			common = append(common, name)
			continue
		}
		lines = append(lines, "only the first build made "+what+name)
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if _, ok := here[name]; !ok {
			lines = append(lines, "only the second build made "+what+name)
		}
	}
	return lines, common
}

// contents compares two libraries by section, and other files as a whole.
func contents(name string, a, b io.ReaderAt) ([]string, error) {
	here, err1 := elf.Sections(a)
	there, err2 := elf.Sections(b)
	if err1 != nil || err2 != nil {
		return section(name, elf.Whole(a, name), elf.Whole(b, name))
	}
	first, second := byName(here), byName(there)
	lines, common := lacking(first, second, name+" ")
	for _, s := range common {
		more, err := section(name+" "+s, first[s], second[s])
		if err != nil {
			return nil, err
		}
		lines = append(lines, more...)
	}
	if len(lines) == 0 { // they differ outside of sections, if at all
		return section(name, elf.Whole(a, name), elf.Whole(b, name))
	}
	return lines, nil
}

func byName(all []elf.Section) map[string]elf.Section {
	sections := map[string]elf.Section{}
	for _, s := range all {
		sections[s.Name] = s
	}
	return sections
}

// section describes how two sections differ: their sizes, the names found in only one
// of them, and the usual cause of such names.
func section(what string, a, b elf.Section) ([]string, error) {
	if a.SHA256 == b.SHA256 && a.Size == b.Size {
		return nil, nil
	}
	line := what + " differs"
	if a.Size != b.Size {
		line += fmt.Sprintf(" (%d and %d bytes)", a.Size, b.Size)
	}
	here, err1 := names(a)
	there, err2 := names(b)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	only := slices.Concat(missing(here, there), missing(there, here))
	if len(only) > 0 {
		line += ": " + strings.Join(only, ", ")
	}
	if cause := cause(only); cause != "" {
		line += ": " + cause
	}
	return []string{line}, nil
}

// missing returns at most maxNames names in a but not in b.
func missing(a, b map[string]bool) []string {
	var only []string
	for name := range a {
		if !b[name] {
			only = append(only, name)
		}
	}
	slices.Sort(only)
	for i, name := range only {
		only[i] = fmt.Sprintf("%q", name)
	}
	return only[:min(len(only), maxNames)]
}

var readable = regexp.MustCompile(`[\x20-\x7e]{5,}`)

// names returns the readable texts of a section: symbols, paths, messages.
func names(s elf.Section) (map[string]bool, error) {
	found := map[string]bool{}
	in := bufio.NewReader(io.LimitReader(s.Open(), maxSection))
	for {
		piece, err := in.ReadSlice(0)
		for _, text := range readable.FindAll(piece, -1) {
			found[string(text[:min(len(text), maxText)])] = true
		}
		if err == io.EOF {
			return found, nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}

// causes are the usual causes of differing names, most specific first.
var causes = []struct {
	pattern *regexp.Regexp
	cause   string
}{
	{regexp.MustCompile(`tmpxft_`), "nvcc names its temporary files after process ids: strip the symbols, or use --keep and a fixed --keep-dir"},
	{regexp.MustCompile(`(^|[^0-9])(19|20)[0-9]{2}-[01][0-9]-[0-3][0-9]|\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +[0-9]{1,2}\b|\b[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\b`), "a date or a time: the build ignores SOURCE_DATE_EPOCH here"},
	{regexp.MustCompile(`/(tmp|build|home|root|var)/`), "a path of the build: it differs between builds, or is not mapped (-ffile-prefix-map)"},
	{regexp.MustCompile(`-march=|-mtune=|avx|AVX`), "flags or code for the processor of the build machine"},
	{regexp.MustCompile(`[0-9a-f]{32,}`), "a new id in each build, such as a build id or a random name"},
}

func cause(texts []string) string {
	for _, c := range causes {
		if slices.ContainsFunc(texts, c.pattern.MatchString) {
			return c.cause
		}
	}
	return ""
}
