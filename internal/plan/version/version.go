// Package version parses and compares the version strings of GPU and Python software:
// releases and pre-releases, packaging revisions (NCCL's 2.29.7-1), local parts
// (torch's 2.10.0+cu129), post and development releases, free-threaded Python (3.14t)
// and dates (20240821v2).
//
// hashicorp/go-version compares the numbers. This package splits off and compares all
// other parts itself, because go-version v1.9.0 treats a packaging revision as a
// pre-release and ignores local parts. A version is always printed as written: 6.1
// stays 6.1.
package version

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	goversion "github.com/hashicorp/go-version"
)

// A Version is a parsed version. The zero value represents no version.
type Version struct {
	text     string
	core     *goversion.Version // the numbers
	segments int                // how many numbers were written
	phase    phase
	serial   int    // number of the phase: 2 in rc2
	revision int    // packaging revision: 1 in 2.29.7-1
	local    string // after the plus sign
	suffix   string // an ABI flag (t) or the rest of a date's name (v2pro)
}

// phase orders versions with equal numbers.
type phase int

const (
	development phase = iota
	alpha
	beta
	candidate
	final
	post
)

var phases = map[string]phase{
	"dev": development, "a": alpha, "alpha": alpha, "b": beta, "beta": beta,
	"c": candidate, "rc": candidate, "": final, "post": post,
}

var syntax = regexp.MustCompile(`^v?(\d+(?:\.\d+)*)` + // numbers
	`(?:[._-]?(dev|alpha|beta|post|rc|a|b|c)\.?(\d*))?` + // phase
	`((?:t|v\d+[a-z]*))?` + // ABI flag, or the rest of a date's name
	`(?:-(\d+))?` + // packaging revision
	`(?:\+([0-9A-Za-z]+(?:[._-][0-9A-Za-z]+)*))?$`) // local part

// maxText bounds the length of a version, in bytes.
const maxText = 128

// A memo holds the results of a parser by their texts. A plan parses the same few hundred
// texts, versions and words, again for every condition and every cell.
type memo[T any] struct {
	parse   func(text string) (T, error)
	results sync.Map
}

type result[T any] struct {
	value T
	err   error
}

func (m *memo[T]) of(text string) (T, error) {
	if r, ok := m.results.Load(text); ok {
		return r.(result[T]).value, r.(result[T]).err
	}
	value, err := m.parse(text)
	if len(text) <= maxText {
		m.results.Store(text, result[T]{value, err})
	}
	return value, err
}

var versions = memo[Version]{parse: parse}

// Parse parses a version.
func Parse(text string) (Version, error) { return versions.of(text) }

func parse(text string) (Version, error) {
	text = strings.TrimSpace(text)
	m := syntax.FindStringSubmatch(text)
	if m == nil || len(text) > maxText {
		return Version{}, fmt.Errorf("%q is not a version", clip(text))
	}
	core, err := goversion.NewVersion(m[1])
	if err != nil {
		return Version{}, fmt.Errorf("%q is not a version: a number is too large", clip(text))
	}
	v := Version{
		text: text, core: core, segments: strings.Count(m[1], ".") + 1,
		phase: phases[m[2]], suffix: m[4], local: strings.ToLower(m[6]),
	}
	v.serial, _ = strconv.Atoi(m[3]) // digits or empty
	v.revision, _ = strconv.Atoi(m[5])
	return v, nil
}

func clip(s string) string {
	if len(s) > maxText {
		return s[:maxText] + "…"
	}
	return s
}

// Is reports whether a text is a version, and not a word.
func Is(text string) bool {
	_, err := Parse(text)
	return err == nil
}

// String returns the version as written.
func (v Version) String() string { return v.text }

// numbers returns the numbers as written. 6.1 has two, but go-version pads it to three.
func (v Version) numbers() []int { return v.core.Segments()[:v.segments] }

// IsPrerelease reports whether v precedes the final release with the same numbers.
func (v Version) IsPrerelease() bool { return v.phase < final }

// Compare returns -1, 0 or 1 as a comes before, with or after b. It is a total order.
// Different spellings of the same numbers (6.1 and 6.1.0) are equal. Versions with
// different revisions or local parts are not. The zero Version comes first.
func Compare(a, b Version) int {
	if a.core == nil || b.core == nil {
		return cmp.Compare(min(len(a.text), 1), min(len(b.text), 1))
	}
	return cmp.Or(
		a.core.Compare(b.core),
		cmp.Compare(a.phase, b.phase),
		cmp.Compare(a.serial, b.serial),
		cmp.Compare(a.suffix, b.suffix),
		cmp.Compare(a.revision, b.revision),
		cmp.Compare(a.local, b.local),
	)
}

// hasPrefix reports whether v is p, or p with further numbers: 6.1 is a prefix of
// 6.1.3, but not of 6.10. All other parts stated by p must be equal. The suffixes must
// always be equal, and only a pre-release is a prefix of a pre-release.
func (v Version) hasPrefix(p Version) bool {
	have, want := v.numbers(), p.numbers()
	if v.IsPrerelease() && !p.IsPrerelease() || v.suffix != p.suffix {
		return false
	}
	if p.phase != final && (v.phase != p.phase || v.serial != p.serial) {
		return false
	}
	if p.revision != 0 && v.revision != p.revision || p.local != "" && v.local != p.local {
		return false
	}
	for i, n := range want {
		if i >= len(have) {
			if n != 0 {
				return false // 6 is not 6.1
			}
		} else if have[i] != n {
			return false
		}
	}
	return true
}
