// Package difference describes where two builds of one artifact differ: members of a
// wheel or an archive, sections of a library, and names in those sections. It also
// names the usual cause of such a difference. The output helps the user to find out why
// a build is not reproducible.
//
// The package never decides whether two artifacts are the same. Their digests do.
package difference

import (
	"archive/zip"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

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

// wheels compares members by name. It skips RECORD, which follows from the other
// members.
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
	here, there := members(a), members(b)
	lines := append(lacking(here, there, "only the first build made "), lacking(there, here, "only the second build made ")...)
	for _, name := range here {
		if !slices.Contains(there, name) || name == a.DistInfo+"/RECORD" {
			continue
		}
		more, err := member(a, b, name)
		if err != nil {
			return nil, err
		}
		lines = append(lines, more...)
	}
	packed, err := packing(first, second)
	lines = append(lines, packed...)
	if len(lines) == 0 {
		lines = []string{"the members are the same: their compression or other fields of the ZIP differ"}
	}
	return lines, err
}

// packing describes how two ZIPs with common members differ in the times and modes of
// these, and in their order.
func packing(first, second string) (lines []string, err error) {
	a, err := zip.OpenReader(first)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	b, err := zip.OpenReader(second)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	common := func(all, others []*zip.File) []*zip.File {
		names := map[string]bool{}
		for _, f := range others {
			names[f.Name] = true
		}
		return slices.DeleteFunc(slices.Clone(all), func(f *zip.File) bool { return !names[f.Name] })
	}
	here, there := common(a.File, b.File), common(b.File, a.File)
	says := func(f *zip.File) string {
		return fmt.Sprintf("time %s and mode %o", f.Modified.UTC().Format(time.DateTime), f.Mode().Perm())
	}
	other := map[string]string{}
	for _, f := range there {
		other[f.Name] = says(f)
	}
	n, moved := 0, -1
	for i, f := range here {
		if was := says(f); was != other[f.Name] {
			if n++; n == 1 {
				lines = append(lines, fmt.Sprintf("%s has %s, and %s in the second build", f.Name, was, other[f.Name]))
			}
		}
		if moved < 0 && i < len(there) && f.Name != there[i].Name {
			moved = i
		}
	}
	if n > 1 {
		lines[0] += fmt.Sprintf(", and %d more members differ", n-1)
	}
	if n > 0 {
		lines[0] += ": pack with a fixed time and mode"
	}
	if moved >= 0 {
		lines = append(lines, fmt.Sprintf("the order of the members differs: %s comes in the place of %s: pack in a fixed order", there[moved].Name, here[moved].Name))
	}
	return lines, nil
}

func members(w *wheel.Wheel) []string {
	var names []string
	for _, f := range w.Files {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return names
}

// lacking returns a line for every name in a but not in b, with says as its prefix.
func lacking(a, b []string, says string) []string {
	there := map[string]bool{}
	for _, name := range b {
		there[name] = true
	}
	var lines []string
	for _, name := range a {
		if !there[name] {
			lines = append(lines, says+name)
		}
	}
	return lines
}

func member(a, b *wheel.Wheel, name string) ([]string, error) {
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
}

// contents compares two libraries by section, and other files as a whole.
func contents(name string, a, b io.ReaderAt) ([]string, error) {
	here, err1 := elf.Sections(a)
	there, err2 := elf.Sections(b)
	if err1 != nil || err2 != nil {
		whole := func(r io.ReaderAt) elf.Section { return elf.Whole(r, name) }
		return section(name, whole(a), whole(b))
	}
	lines := append(
		lacking(sectionNames(here), sectionNames(there), name+": only the first build has the section "),
		lacking(sectionNames(there), sectionNames(here), name+": only the second build has the section ")...)
	for _, s := range here {
		i := slices.IndexFunc(there, func(t elf.Section) bool { return t.Name == s.Name })
		if i < 0 {
			continue
		}
		more, err := section(name+" "+s.Name, s, there[i])
		if err != nil {
			return nil, err
		}
		lines = append(lines, more...)
	}
	return lines, nil
}

func sectionNames(all []elf.Section) []string {
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	return names
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
