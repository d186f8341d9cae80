package chart

import (
	"strings"
	"testing"
)

// Every style has its own shape of mark.
func TestMarks(t *testing.T) {
	seen := map[string]bool{}
	for style := range Styles {
		path := markPath(style, 0, 0, 1)
		if seen[path] || !strings.HasSuffix(path, "Z") && !strings.Contains(path, "a") {
			t.Errorf("mark %d: %s", style, path)
		}
		seen[path] = true
		if !strings.Contains(Style, ".s"+string(rune('0'+style))+" { --c:") {
			t.Errorf("style %d has no colour", style)
		}
	}
}
