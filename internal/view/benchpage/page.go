// Package benchpage shows the result of a comparison as a self-contained HTML page
// without scripts, fonts or external addresses. Every colour is accompanied by the
// shape of a mark and by a word, and every picture is followed by a table of the same
// figures. Package bench measures and compares.
package benchpage

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"
	"time"

	"builder/internal/machine/bench"
	"builder/internal/machine/curve"
	"builder/internal/view/chart"
)

//go:embed page.tmpl
var text string

//go:embed page.css
var css string

var tmpl = template.Must(template.New("page").Funcs(template.FuncMap{
	"size":   curve.HumanSize,
	"digits": curve.Digits,
	"ratio":  ratio,
	"css":    func() template.CSS { return template.CSS(css + chart.Style) }, //nolint:gosec // our own files
}).Parse(text + chart.Template))

// Render returns the page.
func Render(r bench.Result) ([]byte, error) {
	var b bytes.Buffer
	if err := tmpl.Execute(&b, newPage(r)); err != nil {
		return nil, fmt.Errorf("making the page: %w", err)
	}
	return b.Bytes(), nil
}

// page is the data of the template.
type page struct {
	Heading   []word
	Date      string
	Stopped   string
	Builder   string
	Command   string
	Facts     []fact
	Libraries []library
	Compared  bool     // there is more than one library
	Releases  []string // libraries of another release than the first
	First     string
	Sections  []section
}

type fact struct{ Name, Value string }

// library is a library with the style of its curves.
type library struct {
	bench.Contender
	Style int
	Key   string // the mark in a legend
	Ended string // why its measurement ended early, in words
}

func newPage(r bench.Result) page {
	p := page{
		Heading: heading(r), Date: r.Started.Format("2 January 2006, 15:04 MST"), Stopped: r.Stopped,
		Builder: r.Builder, Command: r.Command, Facts: facts(r), First: r.Libraries[0].Label,
		Compared: len(r.Libraries) > 1, Releases: r.OtherReleases(),
	}
	for i, l := range r.Libraries {
		p.Libraries = append(p.Libraries, library{Contender: l, Style: i, Key: chart.Key(i), Ended: ended(l.Failure)})
	}
	for _, c := range r.Collectives {
		p.Sections = append(p.Sections, p.section(c))
	}
	return p
}

// A word of the heading. Joining words are small.
type word struct {
	Word  string
	Small bool
}

// heading names the libraries and the GPUs: ours against vendor on 2 × NVIDIA H200.
func heading(r bench.Result) []word {
	var words []word
	first, others := r.Libraries[0], r.Libraries[1:]
	for i, l := range others {
		if i > 0 {
			words = append(words, word{"and", true})
		}
		words = append(words, word{l.Label, false})
	}
	if len(others) > 0 {
		words = append(words, word{"against", true})
	}
	return append(words, word{first.Label, false}, word{"on", true}, word{devices(r), false})
}

// devices names the GPUs, each model once.
func devices(r bench.Result) string {
	kinds := slices.Compact(slices.Sorted(slices.Values(r.Host.GPUs)))
	if len(kinds) == 0 {
		return plural(r.Conditions.GPUs, "GPU")
	}
	if len(kinds) == 1 {
		return fmt.Sprintf("%d × %s", len(r.Host.GPUs), kinds[0])
	}
	return fmt.Sprintf("%s: %s", plural(len(r.Host.GPUs), "GPU"), strings.Join(kinds, ", "))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func facts(r bench.Result) []fact {
	c := r.Conditions
	all := []fact{
		{"GPUs", devices(r)},
		{"Link", r.Host.Link},
		{"Driver", r.Host.Driver},
		{"nccl-tests", c.Tests},
		{"Sizes", fmt.Sprintf("%s to %s, each %d times the previous", curve.HumanSize(c.MinBytes), curve.HumanSize(c.MaxBytes), c.Factor)},
		{"Rounds", fmt.Sprintf("%d, after one to warm up", c.Rounds)},
		{"Iterations", fmt.Sprintf("%d for each size, after %d to warm up", c.Iterations, c.Warmup)},
		{"Duration", took(r)},
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		all = append(all, fact{name, c.Env[name]})
	}
	return slices.DeleteFunc(all, func(f fact) bool { return f.Value == "" })
}

func took(r bench.Result) string {
	if r.Finished.IsZero() || r.Finished.Before(r.Started) {
		return ""
	}
	return r.Finished.Sub(r.Started).Round(time.Second).String()
}

func ended(f *bench.Failure) string {
	if f == nil {
		return ""
	}
	where := fmt.Sprintf("ended in round %d, at %s", f.Round, f.Collective)
	if f.Round == 0 {
		where = "ended in the warm-up round, at " + f.Collective
	}
	if f.Wrong {
		where = "has wrong values and is not compared: " + where
	}
	return where + ": " + shortened(f.Reason)
}

// shortened bounds the text of a failure on the page.
func shortened(reason string) string {
	const most = 600
	runes := []rune(strings.Join(strings.Fields(reason), " "))
	if len(runes) <= most {
		return string(runes)
	}
	return string(runes[:most]) + "…"
}

func ratio(value float64) string { return fmt.Sprintf("%.3f", value) }
