package subst_test

import (
	"strings"
	"testing"

	"builder/internal/base/subst"
)

func TestExpand(t *testing.T) {
	vars := map[string]string{"rocm": "5.7", "arch": "gfx90a"}
	got, err := subst.Expand("rocm{{rocm}}.{{ arch }}.${HOME}", vars)
	if err != nil || got != "rocm5.7.gfx90a.${HOME}" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestExpandNamesAllUnknown(t *testing.T) {
	_, err := subst.Expand("{{rcom}} {{banana}}", map[string]string{"rocm": "5.7"})
	if err == nil || !strings.Contains(err.Error(), "rcom") || !strings.Contains(err.Error(), "banana") {
		t.Errorf("got %v", err)
	}
}

func TestExpandDoesNotExpandValues(t *testing.T) {
	got, err := subst.Expand("{{a}}", map[string]string{"a": "{{b}}", "b": "x"})
	if err != nil || got != "{{b}}" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestParse reads braces from left to right. What is no placeholder stays as it is.
func TestParse(t *testing.T) {
	vars := map[string]string{"a": "1", "": "none"}
	for text, want := range map[string]string{
		"{{{a}}}": "{1}", "{{a}": "{{a}", "{{ {{a}} }}": "{{ 1 }}", "{{a}}{{\ta\n}}": "11", "{{}}": "none", "{{ }}x": "nonex",
		"{a}}": "{a}}", "{{": "{{", "{{a": "{{a", "{{a}{{a}}": "{{a}1", "": "",
	} {
		if got, err := subst.Expand(text, vars); err != nil || got != want {
			t.Errorf("%q: got %q, want %q, %v", text, got, want, err)
		}
	}
}
