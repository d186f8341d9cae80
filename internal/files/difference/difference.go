// Package difference describes where two builds of one artifact differ: members of a
// wheel or an archive, and readable texts in those members. It also names the usual
// cause of such a difference. The output helps the user to find out why a build is not
// reproducible.
//
// The package never decides whether two artifacts are the same. Their digests do.
package difference

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Limits of the output. Longer output does not help the user, and hostile files can
// differ in many places.
const (
	maxLines = 40
	maxTexts = 4
)

// Of compares two files of one name, of any type, and returns one line per difference.
// It returns no lines for equal files.
func Of(first, second string) ([]string, error) {
	each := eachOfArchive
	isWheel := filepath.Ext(first) == ".whl"
	if isWheel {
		each = eachOfWheel
	}
	lines, err := compare(first, second, each)
	if err != nil && !isWheel { // what is no archive, or cannot be unpacked, is compared as bytes
		lines, err = compare(first, second, eachFile)
	}
	if err != nil {
		return nil, fmt.Errorf("comparing %s: %w", filepath.Base(first), err)
	}
	if len(lines) > maxLines {
		lines = append(lines[:maxLines], fmt.Sprintf("and %d more", len(lines)-maxLines))
	}
	return lines, nil
}

// compare compares the digests of all members, and then the texts of those that differ.
func compare(first, second string, each reader) ([]string, error) {
	here, err1 := membersOf(first, each, nil)
	there, err2 := membersOf(second, each, nil)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	var lines []string
	differ := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(here)) {
		switch other := there[name]; {
		case other == nil:
			lines = append(lines, "only the first build made "+name)
		case !bytes.Equal(here[name].sum.Sum(nil), other.sum.Sum(nil)):
			differ[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if here[name] == nil {
			lines = append(lines, "only the second build made "+name)
		}
	}
	if len(lines)+len(differ) == 0 && here[whole] == nil {
		return []string{"the members are the same: their times, owners, modes, order or compression differ"}, nil
	}
	here, err1 = membersOf(first, each, differ)
	there, err2 = membersOf(second, each, differ)
	for _, name := range slices.Sorted(maps.Keys(here)) {
		lines = append(lines, describe(cmp.Or(name, filepath.Base(first)), here[name], there[name]))
	}
	return lines, errors.Join(err1, err2)
}

// describe states how two members of one name differ: their sizes, texts that only one
// of them has, and the usual cause of such texts.
func describe(name string, a, b *member) string {
	line := name + " differs"
	if a.size != b.size {
		line += fmt.Sprintf(" (%d and %d bytes)", a.size, b.size)
	}
	only := [2][]string{a.textsLackingIn(b), b.textsLackingIn(a)}
	i := slices.IndexFunc(causes, func(c cause) bool { return slices.ContainsFunc(slices.Concat(only[:]...), c.pattern.MatchString) })
	var shown []string
	for _, all := range only {
		if i >= 0 { // code gives texts by chance, so those of the cause come first
			slices.SortStableFunc(all, func(a, b string) int { return causes[i].rank(a) - causes[i].rank(b) })
		}
		for _, text := range all[:min(len(all), maxTexts)] {
			shown = append(shown, fmt.Sprintf("%q", text))
		}
	}
	if len(shown) > 0 {
		line += ": " + strings.Join(shown, ", ")
	}
	if i >= 0 {
		line += ": " + causes[i].says
	}
	return line
}

// A cause is a usual cause of differing texts.
type cause struct {
	pattern *regexp.Regexp
	says    string
}

// rank is lower for a text with this cause.
func (c cause) rank(text string) int {
	if c.pattern.MatchString(text) {
		return 0
	}
	return 1
}

// causes are the usual causes, most specific first.
var causes = []cause{
	{regexp.MustCompile(`tmpxft_`), "nvcc names its temporary files after process ids: strip the symbols, or use --keep and a fixed --keep-dir"},
	{regexp.MustCompile(`(^|[^0-9])(19|20)[0-9]{2}-[01][0-9]-[0-3][0-9]|\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +[0-9]{1,2}\b|\b[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\b`), "a date or a time: the build ignores SOURCE_DATE_EPOCH here"},
	{regexp.MustCompile(`/(tmp|build|home|root|var)/`), "a path of the build: it differs between builds, or is not mapped (-ffile-prefix-map)"},
	{regexp.MustCompile(`-march=|-mtune=|avx|AVX`), "flags or code for the processor of the build machine"},
	{regexp.MustCompile(`[0-9a-f]{32,}`), "a new id in each build, such as a build id or a random name"},
}
