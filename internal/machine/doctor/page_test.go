package doctor

import (
	"fmt"
	"strings"
	"testing"

	"builder/test/kit/golden"
)

const (
	page  = "../../../docs/doctor.md"
	begin = "<!-- checks: written by go test ./internal/machine/doctor -update -->\n"
	stop  = "<!-- end of checks -->\n"
)

// TestChecksAreDocumented compares the list of checks with the page, or updates the
// page.
func TestChecksAreDocumented(t *testing.T) {
	golden.CheckSection(t, page, begin, stop, table())
}

func table() string {
	var b strings.Builder
	b.WriteString("\n| for | check | asks whether, or what | looks at | needed |\n| --- | --- | --- | --- | --- |\n")
	last := Purpose("")
	for _, c := range Checks() {
		purpose := ""
		if c.For != last {
			purpose, last = string(c.For), c.For
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s |\n", purpose, c.Name, c.About, c.How, when(c))
	}
	return b.String() + "\n"
}

// when names the kind of work that needs a check, by trying all kinds.
func when(c Check) string {
	recipe := &Needs{}
	asked := map[string]Work{
		"always":                      {Engine: EngineState{Kind: Named}},
		"native engine":               {Engine: EngineState{Kind: Native}},
		"recipe, engine on this host": {Engine: EngineState{Kind: Container}, Recipe: recipe},
	}
	for _, words := range []string{"always", "native engine", "recipe, engine on this host"} {
		if c.needed(asked[words]) {
			return words
		}
	}
	return "no"
}
