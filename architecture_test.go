package builder_test

import (
	"bytes"
	"fmt"
	"html"
	"slices"
	"strings"
	"testing"

	"builder/internal/golden"
)

// area is a floor of the house: rooms that answer one question together.
type area struct {
	name, asks string
	column     int // where the drawing has it: 0 is the way of a cell
	rooms      string
}

// areas are the floors, the upper ones first. The drawing and the table of
// docs/architecture.md are made of them and of the table of imports.
var areas = []area{
	{"Command line", "What did the user say, and what is printed?", 0, "cmd/builder internal/config internal/complete internal/manual internal/syntax"},
	{"Choice", "What is there to choose from, and what was chosen?", 0, "internal/catalogue internal/assemble internal/needs"},
	{"Help", "What does this host lack, and what does this failure mean?", 1, "internal/doctor internal/diagnose"},
	{"Engine", "How does one locked entry become an artifact?", 0, "pipelines internal/native internal/daemon internal/steplog internal/runlog"},
	{"Run", "How do many entries become outcomes, without losing one?", 0, "internal/run internal/fleet internal/fetch internal/results internal/carry internal/history internal/reuse internal/subject"},
	{"Publishing", "May it leave, and how do others find it?", 1, "internal/publish internal/index internal/upload"},
	{"Evidence", "What is said about an artifact, and who says it?", 0, "internal/attest internal/proven internal/sbom internal/signing"},
	{"Gates", "Is it what it promises to be?", 0, "internal/gate internal/device internal/verdict internal/audit internal/sourcetree"},
	{"Pages", "How is what happened shown?", 1, "internal/report internal/reportpage internal/benchpage internal/chart internal/progress internal/term"},
	{"Plan", "Which cells are there, and what exactly goes into each?", 0, "internal/recipe internal/stack internal/profile internal/image internal/patch internal/matrix internal/ci internal/lock internal/version"},
	{"Measuring", "What is this host, and what do GPUs and collectives do on it?", 1, "internal/bench internal/nccltests internal/nccllog internal/gpu internal/curve internal/fabric internal/host internal/locate"},
	{"Inputs", "Where do bytes come from, and are they the right ones?", 0, "internal/store internal/deb internal/pypi internal/git internal/oci"},
	{"Files", "What does a wheel or a library say?", 0, "internal/artifact internal/wheel internal/elf internal/x86 internal/inspect internal/difference internal/unpack"},
	{"Ground", "What does every room stand on?", 0, "internal/diag internal/decode internal/subst internal/retry internal/atomicfile internal/regular internal/shell"},
}

// beside are the rooms that are not a part of the programme.
var beside = []area{
	{"Data", "What do users read and edit?", 0, "recipes stacks patches images profiles diagnoses"},
	{"For tests", "How is the truth of pages, files and servers shown?", 0, "internal/golden internal/docscript internal/markdown internal/pagetest internal/browsertest internal/ci/actionstest internal/elf/elftest internal/wheel/wheeltest internal/oci/ocitest internal/upload/uploadtest internal/recipe/recipetest internal/sourcetree/sourcetreetest"},
}

// floorOf names the area of each room, and complains of a room that has none or two.
func floorOf(t *testing.T) map[string]string {
	t.Helper()
	floor := map[string]string{}
	for _, a := range slices.Concat(areas, beside) {
		for room := range strings.FieldsSeq(a.rooms) {
			if _, listed := may[room]; !listed && room != "cmd/builder" {
				t.Errorf("area %s: there is no room %s", a.name, room)
			}
			if other := floor[room]; other != "" {
				t.Errorf("%s is in %s and in %s", room, other, a.name)
			}
			floor[room] = a.name
		}
	}
	for room := range may {
		if floor[room] == "" {
			t.Errorf("%s is in no area", room)
		}
	}
	return floor
}

// areasBelow returns for each area those that its rooms import from.
func areasBelow(t *testing.T) map[string][]string {
	floor := floorOf(t)
	down := map[string][]string{}
	add := func(from, to string) {
		if from != to && !slices.Contains(down[from], to) {
			down[from] = append(down[from], to)
		}
	}
	for room, allowed := range may {
		for _, other := range allowed {
			add(floor[room], floor[other])
		}
	}
	for _, p := range packages(t) {
		if p.ImportPath != "cmd/builder" {
			continue
		}
		for _, path := range p.Imports {
			if to := floor[local(path)]; to != "" {
				add(floor["cmd/builder"], to)
			}
		}
	}
	return down
}

// An area imports from those below it in the list alone, so nothing goes round in a
// circle between them either.
func TestAreasStandOnThoseBelow(t *testing.T) {
	place := map[string]int{}
	for i, a := range areas {
		place[a.name] = i
	}
	for from, all := range areasBelow(t) {
		for _, to := range all {
			if at, isFloor := place[to]; isFloor && at < place[from] { // data lie beside the floors
				t.Errorf("%s imports from %s, which is above it", from, to)
			}
		}
	}
}

// The drawing and the table of docs/architecture.md.
func TestArchitecturePage(t *testing.T) {
	golden.CheckFile(t, "docs/images/architecture.svg", drawing(reduced(areasBelow(t))))
	var table strings.Builder
	table.WriteString("\n| area | it answers | rooms |\n|---|---|---|\n")
	for _, a := range slices.Concat(areas, beside) {
		fmt.Fprintf(&table, "| **%s** | %s | %s |\n", a.name, a.asks, "`"+strings.Join(short(a), "` `")+"`")
	}
	golden.CheckSection(t, "docs/architecture.md", "<!-- areas -->\n", "<!-- end of areas -->", table.String()+"\n")
}

// short are the rooms of an area without the folder that most of them lie in.
func short(a area) []string {
	return strings.Fields(strings.ReplaceAll(a.rooms, "internal/", ""))
}

// reduced leaves out an arrow where a longer way leads to the same place.
func reduced(down map[string][]string) map[string][]string {
	var reaches func(from, to string) bool
	reaches = func(from, to string) bool {
		return from == to || slices.ContainsFunc(down[from], func(next string) bool { return reaches(next, to) })
	}
	kept := map[string][]string{}
	for from, all := range down {
		for _, to := range all {
			if !slices.ContainsFunc(all, func(other string) bool { return other != to && reaches(other, to) }) {
				kept[from] = append(kept[from], to)
			}
		}
	}
	return kept
}

const (
	boxWide, boxHigh  = 430, 62
	gapWide, gapHigh  = 90, 26
	margin, lineChars = 16, 66
)

// drawing is the house as SVG: one box for each area, the way of a cell on the left,
// an arrow to each area that is imported from directly.
func drawing(arrows map[string][]string) []byte {
	at := map[string][2]int{}
	for i, a := range rows() {
		for _, x := range a {
			at[x.name] = [2]int{margin + x.column*(boxWide+gapWide), margin + i*(boxHigh+gapHigh)}
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" role="img">`+"\n",
		2*margin+2*boxWide+gapWide, 2*margin+len(rows())*(boxHigh+gapHigh)-gapHigh)
	b.WriteString("<title>The areas of builder, each above those that it imports from</title>\n")
	b.WriteString(`<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" fill="#55697a"/></marker></defs>` + "\n")
	b.WriteString(`<rect width="100%" height="100%" fill="#fff"/>` + "\n")
	for _, from := range areas {
		for _, to := range areas {
			if slices.Contains(arrows[from.name], to.name) {
				arrow(&b, at[from.name], at[to.name])
			}
		}
	}
	for _, a := range areas {
		box(&b, a, at[a.name])
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// rows puts areas side by side where the second follows the first in the list and
// stands in the next column.
func rows() [][]area {
	var all [][]area
	for _, a := range areas {
		if n := len(all); n > 0 && a.column > all[n-1][len(all[n-1])-1].column {
			all[n-1] = append(all[n-1], a)
			continue
		}
		all = append(all, []area{a})
	}
	return all
}

// arrow leads down within a column, and through the gap from one to the other.
func arrow(b *bytes.Buffer, from, to [2]int) {
	x1, y1, x2, y2 := from[0]+boxWide/2, from[1]+boxHigh, to[0]+boxWide/2, to[1]
	if from[0] != to[0] {
		x1, y1, x2, y2 = from[0]+boxWide, from[1]+boxHigh/2, to[0], to[1]+boxHigh/2
	}
	if from[0] > to[0] {
		x1, x2 = from[0], to[0]+boxWide
	}
	fmt.Fprintf(b, `<path d="M%d %dL%d %d" stroke="#55697a" stroke-width="1.5" fill="none" marker-end="url(#tip)"/>`+"\n", x1, y1, x2, y2)
}

// box is one area with its rooms in up to two lines.
func box(b *bytes.Buffer, a area, at [2]int) {
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" rx="6" fill="#eef3f7" stroke="#55697a"/>`+"\n", at[0], at[1], boxWide, boxHigh)
	fmt.Fprintf(b, `<text x="%d" y="%d" font-size="15" font-weight="bold" fill="#1b2a36">%s</text>`+"\n", at[0]+12, at[1]+21, html.EscapeString(a.name))
	for i, line := range wrapped(short(a)) {
		fmt.Fprintf(b, `<text x="%d" y="%d" font-size="12" fill="#1b2a36">%s</text>`+"\n", at[0]+12, at[1]+39+15*i, html.EscapeString(line))
	}
}

// wrapped joins words to lines.
func wrapped(words []string) []string {
	lines := []string{""}
	for _, w := range words {
		last := &lines[len(lines)-1]
		if len(*last)+len(w) > lineChars {
			lines = append(lines, w)
			continue
		}
		*last = strings.TrimSpace(*last + " " + w)
	}
	return lines
}
