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
	"slices"
	"strconv"
	"strings"
	"sync"

	goversion "github.com/hashicorp/go-version"

	"builder/internal/base/diag"
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

// parsed holds the results of parse by their texts. A plan parses the same few hundred texts,
// versions and words, again for every condition and every cell.
var parsed sync.Map

type result struct {
	version Version
	err     error
}

// Parse parses a version.
func Parse(text string) (Version, error) {
	if r, ok := parsed.Load(text); ok {
		return r.(result).version, r.(result).err
	}
	v, err := parse(text)
	if len(text) <= maxText {
		parsed.Store(text, result{v, err})
	}
	return v, err
}

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
// different revisions or local parts are not.
func Compare(a, b Version) int {
	return cmp.Or(
		compareRelease(a, b),
		cmp.Compare(a.revision, b.revision),
		cmp.Compare(a.local, b.local),
	)
}

// compareRelease compares without packaging revision and local part.
func compareRelease(a, b Version) int {
	if a.core == nil || b.core == nil {
		return cmp.Compare(bit(a.core != nil), bit(b.core != nil))
	}
	return cmp.Or(
		a.core.Compare(b.core),
		cmp.Compare(a.phase, b.phase),
		cmp.Compare(a.serial, b.serial),
		cmp.Compare(a.suffix, b.suffix),
	)
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
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

// A Constraint is a condition on a version or a word.
type Constraint struct{ terms []term }

// term is one comparison. word is set if the operand is not a version.
type term struct {
	op      string
	version Version
	word    string
	native  goversion.Constraints // of ~>, for which go-version computes the bounds
}

var operator = regexp.MustCompile(`^(>=|<=|!=|==|~>|>|<|=)?\s*(\S.*)$`)

// ParseConstraint parses a comma-separated list of comparisons, all of which must hold:
// >=, >, <=, <, =, !=, ~>, and a bare version or word. A bare version allows itself and
// any further numbers: 6.1 allows 6.1.3 but not 6.10.
func ParseConstraint(text string) (Constraint, error) {
	if c, ok := constraints.Load(text); ok {
		return c.(Constraint), nil
	}
	c, err := parseConstraint(text)
	if err == nil {
		constraints.Store(text, c)
	}
	return c, err
}

// constraints holds the parsed constraints by their texts, as parsed does for versions.
var constraints sync.Map

func parseConstraint(text string) (c Constraint, _ error) {
	for part := range strings.SplitSeq(text, ",") {
		t, err := parseTerm(strings.TrimSpace(part))
		if err != nil {
			return Constraint{}, err
		}
		c.terms = append(c.terms, t)
	}
	return c, nil
}

func parseTerm(text string) (term, error) {
	m := operator.FindStringSubmatch(text)
	if m == nil {
		return term{}, fmt.Errorf("%q is not a constraint such as >=6.0,<6.3", clip(text))
	}
	t := term{op: m[1]}
	v, err := Parse(m[2])
	if err != nil {
		if !word.MatchString(m[2]) || (t.op != "" && t.op != "=" && t.op != "!=" && t.op != "==") {
			return term{}, fmt.Errorf("%q is not a constraint: %w", clip(text), err)
		}
		t.word = m[2]
		return t, nil
	}
	t.version = v
	if t.op == "~>" {
		if t.native, err = goversion.NewConstraint("~> " + v.core.Original()); err != nil {
			return term{}, fmt.Errorf("%q is not a constraint: %w", clip(text), err)
		}
	}
	return t, nil
}

var word = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+:-]*$`)

// Allows reports whether v satisfies every comparison. A pre-release satisfies only a
// comparison with a pre-release, or !=. The zero Version satisfies no constraint, and
// the zero Constraint allows no version.
func (c Constraint) Allows(v Version) bool {
	return v.core != nil && c.every(func(t term) bool { return t.allows(v) })
}

// AllowsText is like Allows for a value that may be a word, such as gfx90a. A word
// satisfies a bare word or = if both are equal, and != if they are not. It satisfies no
// other comparison.
func (c Constraint) AllowsText(value string) bool {
	if v, err := Parse(value); err == nil {
		return c.Allows(v)
	}
	return value != "" && c.every(func(t term) bool { return t.allowsWord(value) })
}

// Allows reports whether a constraint allows a value, as [Constraint.AllowsText] does. A
// text that is no constraint allows nothing.
func Allows(constraint, value string) bool {
	c, err := ParseConstraint(constraint)
	return err == nil && c.AllowsText(value)
}

func (c Constraint) every(holds func(term) bool) bool {
	return len(c.terms) > 0 && !slices.ContainsFunc(c.terms, func(t term) bool { return !holds(t) })
}

func (t term) allowsWord(value string) bool {
	switch t.op {
	case "", "=", "==":
		return t.word == value
	case "!=":
		return t.word != value
	}
	return false
}

func (t term) allows(v Version) bool {
	if t.word != "" {
		return t.op == "!="
	}
	if t.op == "" {
		return v.hasPrefix(t.version)
	}
	order := t.compare(v)
	if t.op == "!=" {
		return order != 0
	}
	if v.IsPrerelease() && !t.version.IsPrerelease() {
		return false
	}
	switch t.op {
	case ">=":
		return order >= 0
	case ">":
		return order > 0
	case "<=":
		return order <= 0
	case "<":
		return order < 0
	case "~>":
		return order >= 0 && t.native.Check(v.core)
	}
	return order == 0 // = and ==
}

// compare compares v with the operand. It ignores a revision or local part of v if the
// operand has none.
func (t term) compare(v Version) int {
	if t.version.revision == 0 {
		v.revision = 0
	}
	if t.version.local == "" {
		v.local = ""
	}
	return Compare(v, t.version)
}

// Ascending returns the values of an axis for a reader: versions from the oldest to the
// newest, then words in their order.
func Ascending(values []string) []string {
	return slices.SortedStableFunc(slices.Values(values), func(a, b string) int {
		x, wordX := Parse(a)
		y, wordY := Parse(b)
		switch {
		case wordX == nil && wordY == nil:
			return Compare(x, y)
		case wordX == nil:
			return -1
		case wordY == nil:
			return 1
		}
		return 0
	})
}

// Select returns the values of known selected by text, in the order of known. Text is
// an exact value or the first numbers of one (6.1 for the newest 6.1.x), an alias
// (mi300x, cp311), a list (6.1,6.2), a constraint (>=6.0,<6.3) or all. all leaves out
// the value none, so that --rocm all selects no cell without ROCm; [Every] selects it.
func Select(text string, known []string) ([]string, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return nil, advise(diag.Errorf(diag.Usage, "the value is empty"), text, known)
	case strings.ContainsAny(text, "<>=!"):
		return constrained(text, known)
	}
	var values []string
	for part := range strings.SplitSeq(text, ",") {
		found, err := named(strings.TrimSpace(part), known)
		if err != nil {
			return nil, err
		}
		values = append(values, found...)
	}
	return keep(known, func(k string) bool { return slices.Contains(values, k) }), nil
}

// Latest is the word for the newest value that goes with the other axes.
const Latest = "latest"

// Candidates returns the values that a text may mean, the likeliest first: every version
// from the newest to the oldest for latest, and an exact value before those of which it is
// the first numbers. It returns nil if the text means one value or is not one version.
func Candidates(text string, known []string) []string {
	newest := Ascending(keep(known, Is))
	slices.Reverse(newest)
	if text == Latest {
		return newest
	}
	want, err := Parse(text)
	if err != nil || want.segments == 1 {
		return nil
	}
	values := keep(newest, func(k string) bool {
		v, _ := Parse(k) // newest holds versions only
		return v.hasPrefix(want)
	})
	if slices.Contains(values, text) {
		values = append([]string{text}, keep(values, func(k string) bool { return k != text })...)
	}
	if len(values) < 2 {
		return nil
	}
	return values
}

// Coarser returns the value with the most numbers of which text is a finer release: 6.1
// for 6.1.3.
func Coarser(text string, known []string) (value string, ok bool) {
	want, err := Parse(text)
	if err != nil {
		return "", false
	}
	most := 0
	for _, k := range known {
		if v, err := Parse(k); err == nil && v.segments < want.segments && want.hasPrefix(v) && v.segments > most {
			value, most = k, v.segments
		}
	}
	return value, most > 0
}

const all = "all"

// None is the value of an axis without effect.
const None = "none"

// Every returns the text with which [Select] returns all known values.
func Every(known []string) string {
	if len(others(known)) < len(known) {
		return all + "," + None
	}
	return all
}

// others returns the values other than None, or None if it is the only one.
func others(known []string) []string {
	if kept := keep(known, func(k string) bool { return k != None }); len(kept) > 0 {
		return kept
	}
	return known
}

func constrained(text string, known []string) ([]string, error) {
	c, err := ParseConstraint(text)
	if err != nil {
		return nil, advise(diag.Errorf(diag.Usage, "%w", err), text, known)
	}
	values := keep(known, c.AllowsText)
	if len(values) == 0 {
		return nil, advise(diag.Errorf(diag.Usage, "no known value is %s", text), text, known)
	}
	return values, nil
}

// named returns the values named by a part of a list: one, or several for the word all.
func named(text string, known []string) ([]string, error) {
	if text == all {
		return others(known), nil
	}
	if slices.Contains(known, text) {
		return []string{text}, nil
	}
	if value, ok := alias(text, known); ok {
		return []string{value}, nil
	}
	want, err := Parse(text)
	parsed := map[string]Version{}
	values := keep(known, func(k string) bool {
		v, noVersion := Parse(k)
		parsed[k] = v
		return err == nil && noVersion == nil && v.hasPrefix(want)
	})
	switch {
	case len(values) == 0:
		return nil, advise(diag.Errorf(diag.Usage, "%q is not a known value", clip(text)), text, known)
	case want.segments == 1:
		return nil, diag.Errorf(diag.Usage, "%q is not precise", text).
			WithHint("write %s, or the range %s", strings.Join(Ascending(values), " or "), rangeOf(want))
	}
	return []string{slices.MaxFunc(values, func(a, b string) int { return Compare(parsed[a], parsed[b]) })}, nil
}

// rangeOf returns a constraint for all versions with the major number of v.
func rangeOf(v Version) string {
	major := v.numbers()[0]
	return fmt.Sprintf("'>=%d,<%d'", major, major+1)
}

func keep(values []string, ok func(string) bool) []string {
	var kept []string
	for _, v := range values {
		if ok(v) {
			kept = append(kept, v)
		}
	}
	return kept
}
