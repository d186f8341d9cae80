package reportpage

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"builder/internal/machine/bench"
	"builder/internal/machine/curve"
	"builder/internal/view/report"
)

// recorded returns a measurement on two H200 in the form of the GPU gates: a sweep of
// the artifact's library, and its medians beside those of the vendor's library.
// docs/reports has the whole measurement.
func recorded(t testing.TB) []report.Verdict {
	t.Helper()
	content, err := os.ReadFile("../../../docs/reports/nccl-2.28.9-2.29.7-h200x2.json")
	if err != nil {
		t.Fatal(err)
	}
	result, err := bench.Decode(content)
	if err != nil {
		t.Fatal(err)
	}
	var sweeps, medians curve.Curves
	for _, c := range result.Collectives {
		outOfPlace := curve.Curve{Collective: c.Name, Library: "NCCL 2.28.9+cuda13.0", Place: curve.OutOfPlace, Rounds: 1}
		inPlace := curve.Curve{Collective: c.Name, Library: "NCCL 2.28.9+cuda13.0", Place: curve.InPlace, Rounds: 1}
		vendor := curve.Curve{Collective: c.Name, Library: "vendor.whl", Baseline: true, Place: curve.OutOfPlace, Rounds: result.Conditions.Rounds}
		ours := curve.Curve{Collective: c.Name, Library: "2.28.9", Place: curve.OutOfPlace, Rounds: result.Conditions.Rounds}
		for _, size := range c.Sizes {
			mine, _ := size.Figure("ours2289")
			theirs, _ := size.Figure("vendor")
			outOfPlace.Points = append(outOfPlace.Points, curve.Point{Bytes: size.Bytes, BusBW: mine.Samples[0].BusBW})
			inPlace.Points = append(inPlace.Points, curve.Point{Bytes: size.Bytes, BusBW: mine.Samples[0].InPlaceBW})
			if size.Bytes >= 1<<20 {
				vendor.Points = append(vendor.Points, curve.Point{Bytes: size.Bytes, BusBW: theirs.BusBW.Median})
				ours.Points = append(ours.Points, curve.Point{Bytes: size.Bytes, BusBW: mine.BusBW.Median})
			}
		}
		sweeps, medians = append(sweeps, outOfPlace, inPlace), append(medians, vendor, ours)
	}
	return []report.Verdict{
		{Gate: "nccl-tests", Status: "pass", Evidence: "all_reduce: 9 sizes right", Measured: sweeps},
		{Gate: "busbw", Status: "pass", Evidence: "all_reduce against vendor.whl", Measured: medians},
	}
}

// measured returns a run with measured cells from two engines.
func measured(t testing.TB) report.Run {
	run := sample(4)
	for i := range run.Cells {
		run.Cells[i].Engine = []string{"tcp://one:8080", "unix:///run/two.sock"}[i%2]
	}
	run.Cells[2].Verdicts = append(run.Cells[2].Verdicts, recorded(t)...)
	return run
}

// The page shows a measurement as a picture and as a table.
func TestBandwidth(t *testing.T) {
	page := write(t, measured(t), Options{})
	demand(t, page,
		`<figcaption><strong>all_reduce</strong> <span class="quiet">gate busbw, higher is better, medians of 9 rounds, out-of-place</span></figcaption>`,
		`<figcaption><strong>reduce_scatter</strong> <span class="quiet">gate nccl-tests, higher is better</span></figcaption>`,
		`aria-label="Bus bandwidth of all_reduce over size, by gate busbw. vendor.whl (baseline) reaches 211.0 GB/s at 16 MiB. 2.28.9 reaches 211.8 GB/s at 16 MiB.">`,
		`<th scope="col">vendor.whl (baseline), GB/s</th><th scope="col">2.28.9, GB/s</th>`,
		`<tr><th scope="row">1 MiB</th><td>71.20</td><td>70.79</td></tr>`,
		`NCCL 2.28.9&#43;cuda13.0, in-place</li>`, `<title>2.28.9, 16 MiB: 211.8 GB/s</title>`,
	)
	for what, want := range map[string]int{"<figure>": 4, `<svg class="chart wide"`: 4, `<svg class="chart narrow"`: 4, "<h3>Bus bandwidth</h3>": 1, `class="band"`: 0} {
		if got := strings.Count(page, what); got != want {
			t.Errorf("%d times %s, want %d", got, what, want)
		}
	}
	if strings.Contains(write(t, sample(4), Options{}), "<figure") {
		t.Error("a run that nobody measured has a picture")
	}
}

// The table has a row also for a size missing in one curve.
func TestTableOfCurves(t *testing.T) {
	points := func(bytes ...int64) (all []curve.Point) {
		for _, b := range bytes {
			all = append(all, curve.Point{Bytes: b, BusBW: float64(b)})
		}
		return all
	}
	rows := table([]curve.Curve{{Points: points(16, 64)}, {Points: points(8, 16, 32)}})
	if got := fmt.Sprint(rows); got != "[{8 [– 8.00]} {16 [16.00 16.00]} {32 [– 32.00]} {64 [64.00 –]}]" {
		t.Errorf("got %s", got)
	}
}

// Every readable value fits into the pictures.
func TestExtremeFigures(t *testing.T) {
	run := sample(1)
	for _, p := range []curve.Point{{Bytes: 1}, {Bytes: 1<<63 - 1, BusBW: 1e9}, {Bytes: 3, BusBW: 5e-324}} {
		c := curve.Curve{Collective: "<script>alert(1)</script>", Library: strings.Repeat("\"><hr>", 42), Place: curve.InPlace, Rounds: 1, Points: []curve.Point{p}}
		if err := (curve.Curves{c}).Check(); err != nil {
			t.Fatal(err)
		}
		var many curve.Curves
		for range curve.MaxCurves {
			many = append(many, c)
		}
		run.Cells[0].Verdicts = []report.Verdict{{Gate: "<hr>", Measured: many}}
		page := write(t, run, Options{})
		for _, never := range []string{"NaN", "Inf", "<script>alert", "<hr"} {
			if strings.Contains(page, never) {
				t.Errorf("%v: the page has %s", p, never)
			}
		}
		if len(page) > 1<<20 {
			t.Errorf("%v: a page of %d bytes", p, len(page))
		}
	}
}

// With several engines, each cell names its engine.
func TestEngines(t *testing.T) {
	page := write(t, measured(t), Options{})
	demand(t, page,
		"built by 2 engines: tcp://one:8080 (2 cells), unix:///run/two.sock (2 cells)", "built by unix:///run/two.sock · gates",
		`<select name="engine" data-axis="2">`, `|fail|tcp://one:8080" open>`,
		`<div class="lane"><span>tool-0 <span class="quiet">tcp://one:8080</span></span>`)
	one := sample(4)
	for i := range one.Cells {
		one.Cells[i].Engine = "tcp://one:8080"
	}
	if page := write(t, one, Options{}); strings.Contains(page, "tcp://one:8080") || strings.Contains(page, `name="engine"`) {
		t.Error("one engine built all cells, and each says so")
	}
}
