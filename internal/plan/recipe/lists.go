package recipe

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"builder/internal/base/decode"
)

// validateLists adds the first problem of each item of the lists in the settings. owner is
// the name of the recipe.
func (s written) validateLists(f *decode.File, owner string) {
	e := s.Expect
	validateItems(f, s.at+"expect.behaviour", e.Behaviour, Behaviour.problem)
	validateItems(f, s.at+"expect.tests.files", e.Tests.Files, TestFile.problem)
	validateItems(f, s.at+"expect.waivers", e.Waivers, Waiver.problem)
	validateItems(f, s.at+"advisories", s.Advisories, Advisory.problem)
	validateItems(f, s.at+"profile", s.Profile, Variable.problem)
	validateItems(f, s.at+"vendored", s.Vendored, Vendored.problem)
	validateItems(f, s.at+"inputs", s.Inputs, func(in Input) string {
		if in.Recipe == owner {
			return fmt.Sprintf("an input must name another recipe, not %q", in.Recipe)
		}
		return ""
	})
	if e.Tests.Ranks < 0 || e.Tests.Ranks > maxRanks {
		f.Add(s.at+"expect.tests.ranks", "%d ranks: write 1 to %d", e.Tests.Ranks, maxRanks)
	}
	if s.License != "" && !spdxExpression.MatchString(s.License) {
		f.Add(s.at+"license", "license %q is no SPDX expression such as Apache-2.0 AND MIT", s.License)
	}
}

// maxRanks bounds the processes of a file. A host without GPUs has no use for more.
const maxRanks = 64

// validateItems adds the problem of each item, and those items that have the name of an
// earlier one: it would be undefined which of them holds.
func validateItems[T any](f *decode.File, at string, list []T, problem func(T) string) {
	seen := map[string]bool{}
	for i, x := range list {
		why := problem(x)
		if named, ok := any(x).(item); ok {
			if name := named.itemName(); why == "" && seen[name] {
				why = fmt.Sprintf("%q occurs twice", name)
			}
			seen[named.itemName()] = true
		}
		if why != "" {
			f.Add(fmt.Sprintf("%s[%d]", at, i), "%s", why)
		}
	}
}

var (
	behaviourName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)
	cveID         = regexp.MustCompile(`^CVE-[0-9]{4}-[0-9]{4,}$`)
	variableName  = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
	plainValue    = regexp.MustCompile(`^[A-Za-z0-9_.,:/+=-]+$`) // has the same meaning in every shell, without quotes
	// spdxExpression matches licences joined by operators. It does not know their names.
	spdxExpression = regexp.MustCompile(`^\(*[A-Za-z0-9.+-]+\)*( (AND|OR|WITH) \(*[A-Za-z0-9.+-]+\)*)*$`)
)

func (b Behaviour) problem() string {
	if !behaviourName.MatchString(b.Name) {
		return fmt.Sprintf("%q is not the name of a behaviour such as visible-devices", b.Name)
	}
	for _, answer := range []map[string]string{b.Says, b.Stock} {
		if _, empty := answer[""]; empty {
			return fmt.Sprintf("behaviour %q: a key is empty", b.Name)
		}
	}
	return ""
}

func (f TestFile) problem() string {
	switch {
	case f.File != path.Clean(f.File) || path.IsAbs(f.File) || path.Ext(f.File) != ".py" || f.File[0] == '.':
		return fmt.Sprintf("%q is not the path of a test such as test/test_core.py", f.File)
	case f.Seconds < 0 || f.Quick != nil && f.Quick.Seconds <= 0:
		return f.File + ": seconds must be a measured time, more than 0"
	case slices.ContainsFunc(f.Known, func(k Known) bool { return slices.Contains(k.Cases, "") }):
		return f.File + ": the name of a known case is empty"
	}
	return ""
}

func (w Waiver) problem() string {
	if _, err := time.Parse(time.DateOnly, w.Until); err != nil {
		return fmt.Sprintf("until %q is not a date such as 2026-12-31", w.Until)
	}
	return ""
}

func (a Advisory) problem() string {
	if !cveID.MatchString(a.ID) {
		return fmt.Sprintf("id %q is not an id such as CVE-2024-10190", a.ID)
	}
	return ""
}

func (v Variable) problem() string {
	switch {
	case !variableName.MatchString(v.Name):
		return fmt.Sprintf("%q is not the name of a variable", v.Name)
	case !plainValue.MatchString(v.Value):
		return fmt.Sprintf("%s: the value %q needs quotes, which are not supported", v.Name, v.Value)
	}
	return ""
}

func (v Vendored) problem() string {
	switch {
	case !filepath.IsLocal(v.Path):
		return fmt.Sprintf("path %q is outside the source", v.Path)
	case !strings.HasPrefix(v.Repository, "https://"):
		return fmt.Sprintf("repository %q is not an https address", v.Repository)
	case !commit.MatchString(v.Commit):
		return fmt.Sprintf("commit %q is not 40 hexadecimal digits", v.Commit)
	}
	return ""
}
