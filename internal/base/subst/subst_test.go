package subst_test

import (
	"strings"
	"testing"

	"builder/internal/base/subst"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestExpand(t *testing.T) {
	vars := map[string]string{"rocm": "5.7", "arch": "gfx90a"}
	got, err := subst.Expand("rocm{{rocm}}.{{ arch }}.${HOME}", vars)
	check.That(t, err == nil && got == "rocm5.7.gfx90a.${HOME}", "got %q, %v", got, err)
}

func TestExpandNamesAllUnknown(t *testing.T) {
	_, err := subst.Expand("{{rcom}} {{banana}}", map[string]string{"rocm": "5.7"})
	check.That(t, err != nil && strings.Contains(err.Error(), "rcom") && strings.Contains(err.Error(), "banana"), "got %v", err)
}

func TestExpandDoesNotExpandValues(t *testing.T) {
	got, err := subst.Expand("{{a}}", map[string]string{"a": "{{b}}", "b": "x"})
	check.That(t, err == nil && got == "{{b}}", "got %q, %v", got, err)
}

// Deep expands every text, shares nothing with the value, and leaves out marked fields.
func TestDeep(t *testing.T) {
	type part struct {
		Text   string
		Script string `subst:"-"`
		List   []string
		Any    map[string]any
		Next   *part
	}
	of := func(x string) part {
		any := map[string]any{"k": []any{x, map[string]any{"in": x}}, "n": 1}
		return part{x, "{{a}}", []string{x, "y"}, any, &part{Text: x, Script: "{{b}}"}}
	}
	value := of("{{a}}")
	got, err := subst.Deep(value, map[string]string{"a": "1"})
	must.Succeed(t, err)
	check.Same(t, "expanded", of("1"), got)
	check.Same(t, "the value", of("{{a}}"), value)
	_, err = subst.Deep(map[string]any{"x": []any{"{{b}}"}, "y": "{{c}}"}, nil)
	check.That(t, err != nil && strings.Contains(err.Error(), `"b"`) && strings.Contains(err.Error(), `"c"`), "got %v", err)
}

// TestParse reads braces from left to right. What is no placeholder stays as it is.
func TestParse(t *testing.T) {
	vars := map[string]string{"a": "1", "": "none"}
	for text, want := range map[string]string{
		"{{{a}}}": "{1}", "{{a}": "{{a}", "{{ {{a}} }}": "{{ 1 }}", "{{a}}{{\ta\n}}": "11", "{{}}": "none", "{{ }}x": "nonex",
		"{a}}": "{a}}", "{{": "{{", "{{a": "{{a", "{{a}{{a}}": "{{a}1", "": "",
	} {
		got, err := subst.Expand(text, vars)
		check.That(t, err == nil && got == want, "%q: got %q, want %q, %v", text, got, want, err)
	}
}
