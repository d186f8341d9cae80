package inspect

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/files/elf"
	"builder/internal/files/wheel"
)

// An Expectation states the values the user expects for one fact of a file.
type Expectation struct {
	Name   string
	Values []string
}

// ParseExpectations reads words such as rocm=5.7 and arch=gfx90a. A word without a name
// adds a value to the previous expectation. Each name may occur once.
func ParseExpectations(words []string) ([]Expectation, error) {
	var all []Expectation
	var errs []error
	for _, word := range words {
		name, value, named := strings.Cut(word, "=")
		if !named && len(all) > 0 && word != "" {
			last := &all[len(all)-1]
			errs = append(errs, checkValue(last.Name, word))
			last.Values = append(last.Values, canonical(last.Name, word))
			continue
		}
		switch {
		case !named || value == "":
			errs = append(errs, diag.Errorf(diag.Usage, "%q is not an expectation such as arch=gfx90a", word))
		case !slices.Contains(Names(), name):
			errs = append(errs, diag.Errorf(diag.Usage, "unknown fact %q", name).WithHint("%s", diag.DidYouMean(name, Names())))
		case slices.ContainsFunc(all, func(e Expectation) bool { return e.Name == name }):
			errs = append(errs, diag.Errorf(diag.Usage, "%s is expected twice", name).WithHint("%s=A,B means both", name))
		default:
			errs = append(errs, checkValue(name, value))
		}
		all = append(all, Expectation{name, []string{canonical(name, value)}})
	}
	return all, errors.Join(errs...)
}

// checkValue rejects a value that the fact never has: no file would meet it.
func checkValue(name, value string) error {
	if slices.Contains([]string{"rocm", "cuda", "sycl", "glibc"}, name) && !release.MatchString(value) {
		return diag.Errorf(diag.Usage, "%s=%s: %q is not a version such as 5.7", name, value, value)
	}
	known := words(name)
	if len(known) == 0 || slices.Contains(known, canonical(name, value)) {
		return nil
	}
	return diag.Errorf(diag.Usage, "%s=%s: unknown value %q", name, value, value).WithHint("%s", diag.DidYouMean(value, known))
}

var release = regexp.MustCompile(`^(none|\d+(\.\d+)*)$`)

func canonical(name, value string) string {
	if name == "python" && strings.HasPrefix(value, "3.") {
		return "cp" + strings.ReplaceAll(value, ".", "")
	}
	if arch := elf.Architecture(value); name == "arch" && arch != "" {
		return arch
	}
	return value
}

// String returns the expectation as NAME=VALUE,VALUE.
func (e Expectation) String() string { return e.Name + "=" + strings.Join(e.Values, ",") }

// An Answer states whether a file meets an expectation.
type Answer int

// The answers. Unsaid means that the bytes do not decide.
const (
	Unsaid Answer = iota
	Yes
	No
)

// Judge compares a fact of the report with the expectation. It also returns the
// evidence.
func (e Expectation) Judge(r Report) (Answer, string) {
	f, ok := r.Fact(e.Name)
	if !ok {
		return Unsaid, fmt.Sprintf("a %s does not show its %s", r.Kind, e.Name)
	}
	evidence := fmt.Sprintf("%s is %s: %s", e.Name, strings.Join(f.Values, ", "), strings.Join(f.Because, "; "))
	if slices.Contains(f.Values, Unknown) || e.Name == "glibc" && f.Values[0] == None {
		return Unsaid, evidence
	}
	switch e.Name {
	case "rocm", "cuda", "sycl":
		return e.stack(f, evidence)
	case "name":
		return yes(slices.EqualFunc(e.Values, f.Values, func(a, b string) bool { return wheel.NormalName(a) == wheel.NormalName(b) })), evidence
	case "version":
		return yes(slices.ContainsFunc(f.Values, func(v string) bool {
			public, _, _ := strings.Cut(v, "+")
			return v == e.Values[0] || public == e.Values[0]
		})), evidence
	case "glibc":
		return yes(elf.CompareVersions(f.Values[0], e.Values[0]) <= 0), evidence
	case "python", "platform": // installing requires only one of several tags
		return yes(!slices.ContainsFunc(e.Values, func(v string) bool { return !slices.Contains(f.Values, v) })), evidence
	}
	return yes(slices.Equal(unique(e.Values), unique(f.Values))), evidence
}

// stack compares versions of a GPU stack. The soname shows only the major version. For
// a more exact version, stack uses the wheel's own version, as long as the bytes do not
// contradict it.
func (e Expectation) stack(f Fact, evidence string) (Answer, string) {
	want := e.Values[0]
	if len(f.Values) != 1 || len(e.Values) != 1 {
		return yes(slices.Equal(unique(e.Values), unique(f.Values))), evidence
	}
	have := f.Values[0]
	switch {
	case within(have, want):
		return Yes, evidence
	case !within(want, have):
		return No, evidence
	case f.Claim == "":
		return Unsaid, evidence + "; its exact release is unknown"
	}
	return yes(within(f.Claim, want)), fmt.Sprintf("%s; the wheel's version names %s", evidence, f.Claim)
}

// within reports whether version is release or one of its patches: 5.7.1 is within 5.7
// and within 5.
func within(version, release string) bool {
	return version == release || strings.HasPrefix(version, release+".")
}

func yes(b bool) Answer {
	if b {
		return Yes
	}
	return No
}

// Promised returns the expected install locations in the notation of a recipe: horovod,
// scripts/python3, data/etc.
func Promised(all []Expectation) (packages []string) {
	for _, e := range all {
		prefix, ok := map[string]string{"packages": "", "programs": "scripts/", "data": "data/"}[e.Name]
		for _, v := range e.Values {
			if ok {
				packages = append(packages, prefix+v)
			}
		}
	}
	return packages
}
