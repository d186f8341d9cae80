package version_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"builder/internal/base/diag"
	"builder/internal/plan/version"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// ordered holds real release tags in ascending order.
var ordered = []string{
	"0.28.1", "0.28.1.post1", "0.29.0.dev20260101", "0.29.0",
	"2.1", "2.9.0a0+git1", "2.9.0", "2.10.0.dev1", "2.10.0rc1", "2.10.0rc2", "2.10", "2.10.0+cu128", "2.10.0+cu129", "2.10.1",
	"2.13.0.570", "2.18.1-1", "2.29.7", "2.29.7-1", "2.30.3",
	"3.11", "3.14", "3.14t", "5.4.3", "5.7", "5.7.1", "6.1", "6.1.3", "6.10", "20240821v2", "20250228v3", "20250606v2pro",
}

func parse(t must.Test, text string) version.Version {
	return must.Get(version.Parse(text))(t)
}

func TestOrderOfRealTags(t *testing.T) {
	for i, a := range ordered {
		for j, b := range ordered {
			got := version.Compare(parse(t, a), parse(t, b))
			check.Same(t, fmt.Sprintf("Compare(%s, %s)", a, b), sign(i-j), got)
		}
		check.That(t, parse(t, a).String() == a, "%s is written %s", a, parse(t, a))
	}
}

func sign(n int) int { return max(-1, min(1, n)) }

func TestEqualButWrittenDifferently(t *testing.T) {
	check.That(t, version.Compare(parse(t, "6.1"), parse(t, "6.1.0")) == 0 && version.Compare(parse(t, "v2.17.3"), parse(t, "2.17.3")) == 0,
		"6.1 is 6.1.0, and v2.17.3 is 2.17.3")
}

func TestNoVersions(t *testing.T) {
	for _, text := range []string{"", "banana", "gfx90a", "on", "*", "nv25.10", "6.", ".6", "6.1.", "1.2.3 4", "99999999999999999999999.1", "6.1\n7", strings.Repeat("1.", 200) + "1"} {
		v, err := version.Parse(text)
		check.That(t, err != nil, "%q was read as %v", text, v)
	}
}

// An error message must be short even if the rejected text is long.
func TestLongTexts(t *testing.T) {
	longest := "1." + strings.Repeat("0", 126)
	_, err := version.Parse(" " + longest + "\n")
	check.That(t, err == nil, "%v", err)
	for text, shown := range map[string]string{longest + "0": longest + "…", longest[1:] + "x": longest[1:] + "x"} {
		_, err := version.Parse(text)
		check.Fails(t, err, strconv.Quote(shown))
	}
}

// The zero Version comes before every version and, like an empty text, satisfies no
// constraint. The zero Constraint allows nothing.
func TestNothing(t *testing.T) {
	var none version.Version
	check.That(t, version.Compare(none, none) == 0 && none.String() == "", "no version is not itself")
	for _, text := range []string{"0", "0.0.dev0", "6.1"} {
		v := parse(t, text)
		check.That(t, version.Compare(none, v) == -1 && version.Compare(v, none) == 1, "no version does not come before %v", v)
		c := (version.Constraint{})
		check.That(t, !c.Allows(v) && !c.AllowsText("on"), "no constraint allows %v, or a word", v)
	}
	for _, text := range []string{"0", "=6.1", "!=6.1", ">=0", "~>6.1", "on", "!=on"} {
		c, err := version.ParseConstraint(text)
		check.That(t, err == nil && !c.Allows(none) && !c.AllowsText(""), "%s allows nothing: %v", text, err)
	}
}

func TestConstraints(t *testing.T) {
	for _, c := range []struct {
		constraint, value string
		want              bool
	}{
		// A packaging revision is not a pre-release.
		{">=2.27", "2.29.7-1", true},
		{">=2.29.7", "2.29.7-1", true},
		{"~>2.29.0", "2.29.7-1", true},
		{"=2.29.7", "2.29.7-1", true},
		{"=2.29.7-2", "2.29.7-1", false},
		{"2.29.7-2", "2.29.7-1", false},
		{"<2.29.7", "2.29.7-1", false},
		// A pre-release satisfies only comparisons with a pre-release, or !=.
		{">=2.9", "2.10.0rc1", false},
		{">=2.10.0rc1", "2.10.0rc2", true},
		{">2.10.0rc1", "2.10.0", true},
		{"!=2.10", "2.10.0rc1", true},
		{">=2.8", "2.9.0a0+git1", false},
		{"2.10", "2.10.0rc1", false},
		{"2.10.0rc1", "2.10.0rc1", true},
		{"2.10.0rc1", "2.10.0rc2", false},
		{"2.10.0rc1", "2.10.0b1", false},
		// Local parts count only if the constraint has one.
		{"=2.10.0", "2.10.0+cu128", true},
		{"=2.10.0+cu129", "2.10.0+cu128", false},
		{"=2.10.0+cu129", "2.10.0+cu129", true},
		{"2.10.0+cu129", "2.10.0+cu128", false},
		// A bare version allows itself and every further number.
		{"6.1", "6.1.3", true},
		{"6.1", "6.1", true},
		{"6.1", "6.10", false},
		{"6.1", "6.2", false},
		{"6.1.0", "6.1", true},
		{"6.1.3", "6.1", false},
		{"6", "6.4", true},
		{"2.1", "2.10", false},
		{">=2.1", "2.10", true},
		{"3.14", "3.14t", false},
		{"3.14t", "3.14t", true},
		{">0.28.1", "0.28.1.post1", true},
		{">0.28.1", "0.28.1", false},
		{">=6.0,<6.3", "6.2.4", true},
		{">=6.0,<6.3", "6.3", false},
		{"~>6.1", "6.2", true},
		{"~>6.1.0", "6.2", false},
		{"!=6.1", "6.1.0", false},
		// Words.
		{"gfx90a", "gfx90a", true},
		{"gfx90a", "gfx942", false},
		{"=gfx90a", "gfx90a", true},
		{"==gfx90a", "gfx942", false},
		{"!=gfx90a", "gfx942", true},
		{"!=gfx90a", "gfx90a", false},
		{">=6.0", "gfx90a", false},
		{"on", "on", true},
		{"on", "off", false},
		{"verbs", "2.1", false},
		{"20240821v2", "20240821v2", true},
	} {
		got, err := version.ParseConstraint(c.constraint)
		if err != nil {
			t.Errorf("%s: %v", c.constraint, err)
			continue
		}
		check.That(t, got.AllowsText(c.value) == c.want, "%s allows %s: got %v", c.constraint, c.value, !c.want)
	}
}

func TestNoConstraints(t *testing.T) {
	for _, text := range []string{"", " ", ">=", ">=banana", "6.1,", "~>x", ">= 6.1 6.2", "a b"} {
		c, err := version.ParseConstraint(text)
		check.That(t, err != nil, "%q was read as %v", text, c)
	}
}

func TestSelect(t *testing.T) {
	known := []string{"5.7", "6.1.1", "6.1.3", "6.2", "6.10"}
	for text, want := range map[string][]string{
		"5.7": {"5.7"}, "6.1": {"6.1.3"}, "6.1.1": {"6.1.1"}, "6.2,5.7": {"5.7", "6.2"}, "all": known,
		">=6.0,<6.3": {"6.1.1", "6.1.3", "6.2"}, "!=5.7": {"6.1.1", "6.1.3", "6.2", "6.10"}, "\t6.2": {"6.2"},
	} {
		got, err := version.Select(text, known)
		check.That(t, err == nil && slices.Equal(got, want), "%q: got %v, %v", text, got, err)
	}
	for text, says := range map[string]string{
		"6": "not precise", "6.1.99": "not a known value", "banana": "not a known value", "": "empty",
		">=7": "no known value", ">=banana": "not a constraint", "5.7,": "not a known value", "7.1": "not a known value",
	} {
		got, err := version.Select(text, known)
		check.That(t, err != nil && strings.Contains(err.Error(), says), "%q: got %v, %v", text, got, err)
	}
	// The values and the range offered by the hint are equivalent.
	_, err := version.Select("6", known)
	all, _ := version.Select(">=6,<7", known)
	check.Same(t, "hint", "write "+strings.Join(all, " or ")+", or the range '>=6,<7'", diag.All(err)[0].Hint)
	got, err := version.Select("v6.1", []string{"6.1.0", "6.1"})
	check.That(t, err == nil && slices.Equal(got, []string{"6.1.0"}), "of equals the first is preferred: got %v, %v", got, err)
	got, err = version.Select("gfx90a,gfx942", []string{"gfx942", "gfx90a", "gfx1100"})
	check.That(t, err == nil && slices.Equal(got, []string{"gfx942", "gfx90a"}), "words: got %v, %v", got, err)
}

// all leaves out the value none, unless the list names it or there is no other.
func TestSelectAllWithoutNone(t *testing.T) {
	known := []string{"5.7", "none", "6.1"}
	for text, want := range map[string][]string{
		"all": {"5.7", "6.1"}, "all,none": known, "none,all": known, "5.7,all": {"5.7", "6.1"},
		version.Every(known): known,
	} {
		got, err := version.Select(text, known)
		check.That(t, err == nil && slices.Equal(got, want), "%q: got %v, %v", text, got, err)
	}
	for _, known := range [][]string{{"none"}, {"on", "off"}, {"all", "none"}, {"all", "5.7"}} {
		got, err := version.Select(version.Every(known), known)
		check.That(t, err == nil && slices.Equal(got, known), "every of %v: got %v, %v", known, got, err)
	}
}

// Common aliases select a value. Other texts return a hint with the intended one.
func TestSelectByOtherNames(t *testing.T) {
	archs := []string{"gfx90a", "gfx942", "gfx1100", "sm_90", "sm_80"}
	rocms := []string{"5.7", "6.0", "6.1", "6.2"}
	pythons := []string{"3.11", "3.12", "3.14t"}
	for _, c := range []struct {
		known      []string
		text, want string // values, or the beginning of the hint
	}{
		{archs, "mi300x", "gfx942"}, {archs, "MI300A", "gfx942"}, {archs, "mi250", "gfx90a"}, {archs, "mi250x,mi210", "gfx90a"},
		{archs, "h100,h200,gh200", "sm_90"}, {archs, "NVIDIA A100-SXM4-80GB", "sm_80"}, {archs, "rx 7900 xtx", "gfx1100"},
		{archs, "SM90", "sm_90"}, {archs, "sm-80", "sm_80"}, {archs, "GFX90A", "gfx90a"},
		{archs, "mi100", "known: gfx90a,"}, {archs, "rtx 4090", "known: gfx90a,"},
		{archs, "gfx940", `did you mean "gfx942"?`}, {archs, "gfx906", "known: gfx90a,"}, {archs, "sm_86", "known: gfx90a,"},
		{[]string{"mi300", "mi200"}, "gfx90a", "mi200"},
		{[]string{"mi300", "mi200"}, "mi300x", "mi300"}, {[]string{"mi300", "mi200"}, "mi250x", "mi200"},

		{pythons, "cp311", "3.11"}, {pythons, "py3.11", "3.11"}, {pythons, "python3.12", "3.12"}, {pythons, "cp314t", "3.14t"},
		{pythons, "3.11.9", `did you mean "3.11"?`},

		{rocms, "6.1.3", `did you mean "6.1"? known: 5.7, 6.0, 6.1, 6.2`}, {rocms, "==5.7", "5.7"},
		{[]string{"2.0.1", "2.1.2", "2.11.0", "none"}, "2.12", "known: 2.0.1, 2.1.2, 2.11.0, none"},
		{rocms, "99.99", "known: 5.7, 6.0, 6.1, 6.2"},
	} {
		got, err := version.Select(c.text, c.known)
		said := strings.Join(got, ",")
		if err != nil {
			said = diag.All(err)[0].Hint
		}
		check.That(t, said == c.want || (err != nil && strings.HasPrefix(said, c.want)), "%q: got %q, want %q", c.text, said, c.want)
	}
}

// anyVersion generates versions of every supported form.
func anyVersion() *rapid.Generator[version.Version] {
	return rapid.Custom(func(t *rapid.T) version.Version {
		text := rapid.StringMatching(`[0-9]{1,3}(\.[0-9]{1,3}){0,3}((a|b|rc|\.post|\.dev)[0-9]{1,2})?(t|v[0-9][a-z]{0,3})?(-[1-9])?(\+[a-z0-9]{1,5})?`).Draw(t, "version")
		return parse(t, text)
	})
}

func TestTotalOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := anyVersion().Draw(t, "a"), anyVersion().Draw(t, "b"), anyVersion().Draw(t, "c")
		must.Hold(t, version.Compare(a, a) == 0, "%v is not itself", a)
		must.Hold(t, version.Compare(a, b) == -version.Compare(b, a), "%v and %v have two orders", a, b)
		must.Hold(t, version.Compare(a, b) > 0 || version.Compare(b, c) > 0 || version.Compare(a, c) <= 0,
			"%v <= %v <= %v is not transitive", a, b, c)
	})
}

// If >=v allows a version, it allows every greater one, except pre-releases.
func TestLowerBoundIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bound, a, b := anyVersion().Draw(t, "bound"), anyVersion().Draw(t, "a"), anyVersion().Draw(t, "b")
		c := must.Get(version.ParseConstraint(">=" + bound.String()))(t)
		must.Hold(t, !c.Allows(a) || version.Compare(b, a) < 0 || b.IsPrerelease() || c.Allows(b), "%v allows %v and not %v", c, a, b)
	})
}

func TestEveryVersionMeetsItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := anyVersion().Draw(t, "v")
		for _, op := range []string{"", "=", "==", ">=", "<=", "~>"} {
			if c, err := version.ParseConstraint(op + v.String()); err != nil || !c.Allows(v) {
				t.Fatalf("%s%v refuses %v: %v", op, v, v, err)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	few := []string{"2.9.0a0+git1", "2.10.0+cu128", "2.18.1-1", "3.14t", "20250606v2pro"} // Select parses each of them for each input
	for _, text := range ordered {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := version.Parse(text)
		check.That(t, err != nil || version.Compare(v, v) == 0, "%q is not itself", text)
		if c, err := version.ParseConstraint(text); err == nil {
			c.AllowsText(text)
		}
		_, _ = version.Select(text, few)
	})
}

func TestAscending(t *testing.T) {
	got := version.Ascending([]string{"5.7", "6.4", "none", "6.10", "6.0", "gfx90a"})
	check.That(t, slices.Equal(got, []string{"5.7", "6.0", "6.4", "6.10", "none", "gfx90a"}), "got %q", got)
}

func TestCoarser(t *testing.T) {
	known := []string{"12", "13", "13.2", "none", "gfx90a"}
	for text, want := range map[string]string{"12.8": "12", "12.8.1": "12", "13.2.1": "13.2", "13.1": "13", "12": "", "1": "", "14.0": "", "x": ""} {
		got, ok := version.Coarser(text, known)
		check.That(t, got == want && ok == (want != ""), "%s: %q, %v", text, got, ok)
	}
}

func TestCandidates(t *testing.T) {
	known := []string{"none", "2.18", "2.18.1", "2.9.1", "2.18.10", "2.20.0"}
	for text, want := range map[string][]string{
		"latest": {"2.20.0", "2.18.10", "2.18.1", "2.18", "2.9.1"},
		"2.18":   {"2.18", "2.18.10", "2.18.1"},
		"2.9":    nil, // one value
		"2":      nil, // not precise
		"none":   nil,
		"":       nil,
	} {
		check.Same(t, "candidates of "+text, want, version.Candidates(text, known))
	}
}
