package benchpage

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"builder/internal/machine/bench"
	"builder/internal/testutil/golden"
	"builder/internal/testutil/pagetest"
	"builder/internal/view/chart"
)

// fixture returns the result written by the tests of package bench. Its numbers are
// invented.
func fixture(t testing.TB) bench.Result {
	t.Helper()
	content, err := os.ReadFile("../../machine/bench/testdata/bench.json")
	if err != nil {
		t.Fatal(err)
	}
	r, err := bench.Decode(content)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func render(t testing.TB, r bench.Result) string {
	t.Helper()
	page, err := Render(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func TestPage(t *testing.T) {
	page := render(t, fixture(t))
	_, body, ok := strings.Cut(page, "</head>")
	if !ok {
		t.Fatal("the page has no head")
	}
	golden.Check(t, "page.html", []byte(body))
	for _, want := range []string{
		"<title>ours and empty against vendor on 2 × NVIDIA H200</title>", "2.29.8&#43;cuda13.0", "sum of ours", "570.86.15", "NV18",
		"2 January 2026, 02:04 UTC", "<dt>NCCL_NVLS_ENABLE</dt><dd>0</dd>", "builder bench</pre>",
		"<strong>empty</strong> has wrong values and is not compared: ended in the warm-up round, at all_reduce: 1 KiB: 2 wrong values",
		"▲ faster", "▼ slower", ">inside<", "93.8 % interval", "prefers-color-scheme: dark", "@media print",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// The page refers to no other file or address.
func TestPageIsSelfContained(t *testing.T) {
	page := strings.ToLower(render(t, fixture(t)))
	for _, outside := range []string{"http", "src=", "@import", "url(", "<script", "<link", "<iframe", "//"} {
		if strings.Contains(page, outside) {
			t.Errorf("the page has %q", outside)
		}
	}
}

// Every tag is closed. pagetest checks ids and links.
func TestEveryTagIsClosed(t *testing.T) {
	_, body, _ := strings.Cut(render(t, fixture(t)), "<body>")
	body, _, _ = strings.Cut(body, "</body>")
	decoder := xml.NewDecoder(strings.NewReader("<body>" + strings.ReplaceAll(body, "<br>", "") + "</body>"))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("at byte %d: %v", decoder.InputOffset(), err)
		}
	}
}

// The page is accessible without sight, without a mouse and with high contrast.
func TestPageForEveryone(t *testing.T) {
	alone := fixture(t)
	alone.Libraries = alone.Libraries[:1]
	alone.Collectives = nil
	css := css + chart.Style
	for _, problem := range slices.Concat(
		pagetest.Faults(render(t, fixture(t))), pagetest.Faults(render(t, alone)),
		pagetest.Contrasts(css, pagetest.Text, "--ground", "--text", "--quiet", "--link", "--warn"),
		pagetest.Contrasts(css, pagetest.Text, "--raised", "--text", "--quiet"),
		pagetest.Contrasts(css, pagetest.Drawn, "--ground", "--c0", "--c1", "--c2", "--c3", "--c4", "--c5"),
	) {
		t.Error(problem)
	}
}

// Texts of a result file are escaped and never become markup.
func TestHostileText(t *testing.T) {
	r := fixture(t)
	const evil = `"><script>alert(1)</script><a href="javascript:x">`
	r.Stopped, r.Command, r.Host.Driver, r.Host.Link, r.Builder = evil, evil, evil, evil, evil
	r.Host.GPUs = []string{evil}
	r.Conditions.Env = map[string]string{evil: evil}
	r.Collectives[0].Name = evil
	for i := range r.Libraries {
		l := &r.Libraries[i]
		l.Path, l.Version, l.SHA256 = evil, evil, evil
		l.Failure = &bench.Failure{Collective: evil, Reason: evil + strings.Repeat("long ", 10_000)}
	}
	page := render(t, r)
	if strings.Contains(page, "<script") || strings.Contains(page, `href="javascript`) {
		t.Error("text became a part of the page")
	}
	if n := strings.Count(page, "long long"); n > 3*80 {
		t.Errorf("a reason takes %d words", n)
	}
}

func TestFewerFigures(t *testing.T) {
	nothing := fixture(t)
	nothing.Collectives[0].Sizes = nil
	nothing.Stopped = "the time limit of 1m0s is over"
	if page := render(t, nothing); !strings.Contains(page, "no measurements") || !strings.Contains(page, "Not complete") || strings.Contains(page, "<figure>") {
		t.Error("a page without figures")
	}
	alone := fixture(t)
	alone.Libraries = alone.Libraries[:1]
	sizes := alone.Collectives[0].Sizes
	for i := range sizes {
		sizes[i].Figures, sizes[i].Ratios = sizes[i].Figures[:1], nil
	}
	if page := render(t, alone); strings.Contains(page, "Ratio") || !strings.Contains(page, "<title>vendor on 2 × NVIDIA H200</title>") {
		t.Error("one library has nothing to be compared with")
	}
	without := fixture(t) // the reference failed
	for i, s := range without.Collectives[0].Sizes {
		without.Collectives[0].Sizes[i].Figures, without.Collectives[0].Sizes[i].Ratios = s.Figures[1:], nil
	}
	if page := render(t, without); !strings.Contains(page, "not compared: vendor has no figures") {
		t.Error("the page does not say why nothing is compared")
	}
	one := fixture(t)
	one.Collectives[0].Sizes = one.Collectives[0].Sizes[:1]
	if page := render(t, one); strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
		t.Error("one size has no place on its axis")
	}
}

func TestHeading(t *testing.T) {
	r := fixture(t)
	for want, gpus := range map[string][]string{
		"2 GPUs": nil, "1 × A": {"A"}, "2 × A": {"A", "A"}, "3 GPUs: A, B": {"A", "B", "A"},
	} {
		if r.Host.GPUs = gpus; devices(r) != want {
			t.Errorf("%v: %q, want %q", gpus, devices(r), want)
		}
	}
	if took(bench.Result{Started: time.Unix(100, 0), Finished: time.Unix(50, 0)}) != "" {
		t.Error("it ended before it began")
	}
}

func TestIntervalName(t *testing.T) {
	for want, confidences := range map[string][]float64{
		"lowest–highest": {0, 0}, "93.8 % interval": {0.9375, 0.9375}, "interval": {0.9375, 0, 0.9375},
	} {
		if got := intervalName(confidences); got != want {
			t.Errorf("%v: %q, want %q", confidences, got, want)
		}
	}
}

// Every value of a result file fits into the pictures.
func FuzzRender(f *testing.F) {
	f.Add(int64(8), int64(16), 10.0, 11.0, 0.0, 0.5)
	f.Add(int64(1), int64(1<<63-1), 2e-9, 9e14, 9e14, 0.0)
	f.Fuzz(func(t *testing.T, first, second int64, us, otherUS, bw, otherBW float64) {
		sample := func(us, bw float64) []bench.Sample { return []bench.Sample{{Round: 1, Time: us, BusBW: bw}} }
		r := bench.Result{
			Schema: bench.Schema, Conditions: bench.Conditions{Rounds: 1}, Libraries: []bench.Contender{{Label: "a"}, {Label: "b"}},
			Collectives: []bench.Collective{{Name: "c", Sizes: []bench.Size{
				{Bytes: first, Figures: []bench.Figure{{Library: "a", Samples: sample(us, bw)}, {Library: "b", Samples: sample(otherUS, otherBW)}}},
				{Bytes: second, Figures: []bench.Figure{{Library: "b", Samples: sample(us, otherBW)}}},
			}}},
		}
		content, err := bench.Encode(r)
		if err != nil {
			return // an infinity
		}
		if r, err = bench.Decode(content); err != nil {
			return
		}
		page := render(t, r)
		for _, nowhere := range []string{"NaN", "Inf"} {
			if strings.Contains(page, nowhere) {
				t.Errorf("a picture has a %s", nowhere)
			}
		}
		if len(page) > 100_000 {
			t.Errorf("two sizes take %d bytes", len(page))
		}
	})
}
