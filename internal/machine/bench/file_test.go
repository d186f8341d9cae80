package bench

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"builder/internal/machine/nccltests"
	"builder/internal/testutil/golden"
)

// fixture returns a result with invented numbers.
func fixture(t testing.TB) Result {
	t.Helper()
	p := planOf(5, "vendor", "ours", "empty")
	p.Programs = p.Programs[:1]
	noise := []float64{1, 1.1, 0.9, 1.05, 0.97, 1.02} // of one sweep, independent of the other library
	ours := changed("ours", func(call int, m *nccltests.Measured) error {
		m.Log = "NCCL version 2.29.8+cuda13.0\n"
		for i, factor := range []float64{1.1, noise[call-1], 0.8} {
			m.Report.Rows[i].OutOfPlace.Microseconds *= factor
			m.Report.Rows[i].OutOfPlace.BusBW /= factor
		}
		return nil
	})
	r, _ := p.Measure(t.Context(), func(ctx context.Context, s nccltests.Sweep) (nccltests.Measured, error) {
		m, err := ours(ctx, s)
		if s.Library == "/lib/empty" {
			m.Report.Rows[0].OutOfPlace.Wrong = 2
		}
		return m, err
	}, &witness{})
	r.Builder, r.Command = "devel", "builder bench"
	r.Host.Driver, r.Host.Link = "570.86.15", "NV18"
	r.Started = time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))
	r.Finished = r.Started.Add(time.Minute)
	return r
}

func TestFile(t *testing.T) {
	content, err := Encode(fixture(t))
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "bench.json", content)
	r, err := Decode(content)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Encode(r)
	if err != nil || !bytes.Equal(content, again) {
		t.Errorf("%v: read and written again it is\n%s", err, again)
	}
}

// Views show values computed from the samples and ignore derived values in the file.
func TestDecodeComputesAnew(t *testing.T) {
	content, err := Encode(fixture(t))
	if err != nil {
		t.Fatal(err)
	}
	lie := strings.ReplaceAll(strings.ReplaceAll(string(content), `"median": 0.909`, `"median": 2.909`), `"inside"`, `"faster"`)
	r, err := Decode([]byte(lie))
	if err != nil || lie == string(content) {
		t.Fatal(err)
	}
	if again, err := Encode(r); err != nil || !bytes.Equal(content, again) {
		t.Errorf("the lie was believed: %v", err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	content, err := Encode(fixture(t))
	if err != nil {
		t.Fatal(err)
	}
	good := string(content)
	tests := map[string]struct{ old, new, want string }{
		"no JSON":        {good, "not found", "invalid character"},
		"more":           {good, good + "{}", "it has bytes after its end"},
		"schema":         {`"schema": 1`, `"schema": 2`, "schema 2, want 1"},
		"unknown field":  {`"schema": 1`, `"schema": 1, "scheme": 1`, `unknown field "scheme"`},
		"rounds":         {`"rounds": 5`, `"rounds": 3000`, "3000 rounds"},
		"round beyond":   {`"rounds": 5`, `"rounds": 2`, "round 3 comes after round 2 of 2"},
		"round twice":    {`"round": 2`, `"round": 1`, "round 1 comes after round 1"},
		"label twice":    {`"label": "ours"`, `"label": "vendor"`, `the name "vendor" is empty or used twice`},
		"no label":       {`"label": "empty"`, `"label": ""`, `the name "" is empty`},
		"unknown label":  {`"library": "ours"`, `"library": "other"`, `library "other" must have no figures here`},
		"wrong library":  {`"library": "ours"`, `"library": "empty"`, `library "empty" must have no figures here`},
		"order":          {`"library": "vendor"`, `"library": "ours"`, `library "ours" must have no figures here`},
		"size":           {`"bytes": 2048`, `"bytes": 1024`, "size 1024 comes after size 1024"},
		"time":           {`"us": 10,`, `"us": 0,`, "0 us"},
		"bandwidth":      {`"busbw": 0.1024,`, `"busbw": -1,`, "-1 GB/s"},
		"infinite":       {`"us": 10,`, `"us": 1e999,`, "1e999"},
		"no library":     {good, `{"schema": 1, "conditions": {"rounds": 1}}`, "0 libraries"},
		"many libraries": {good, `{"schema": 1, "conditions": {"rounds": 1}, "libraries": [{},{},{},{},{},{},{}]}`, "7 libraries"},
		"no figures":     {good, `{"schema": 1, "conditions": {"rounds": 1}, "libraries": [{"label": "a"}], "collectives": [{"name": "b", "sizes": [{"bytes": 1}]}]}`, "b: size 1: it has no measurements"},
		"no samples":     {good, `{"schema": 1, "conditions": {"rounds": 1}, "libraries": [{"label": "a"}], "collectives": [{"name": "b", "sizes": [{"bytes": 1, "figures": [{"library": "a"}]}]}]}`, "it has no samples"},
	}
	for name, test := range tests {
		bad := strings.Replace(good, test.old, test.new, 1)
		if r, err := Decode([]byte(bad)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: Decode = %+v, %v; want an error with %q", name, r.Libraries, err, test.want)
		}
	}
}

func TestTables(t *testing.T) {
	var text strings.Builder
	for _, table := range []func(Result) ([]string, [][]string){Table, SummaryTable} {
		header, rows := table(fixture(t))
		for _, row := range append([][]string{header}, rows...) {
			if len(row) != len(header) {
				t.Errorf("a row of %d cells below %d names: %q", len(row), len(header), row)
			}
			text.WriteString(strings.Join(row, " | ") + "\n")
		}
	}
	golden.Check(t, "tables.txt", []byte(text.String()))
}

func TestSummarise(t *testing.T) {
	c := Collective{Name: "all_reduce", Sizes: []Size{
		{Bytes: 8, Figures: []Figure{figureOf("a", 10, 10, 10), figureOf("b", 12, 12, 12)}},
		{Bytes: 16, Figures: []Figure{figureOf("a", 10, 10, 10), figureOf("b", 8, 8, 8)}},
		{Bytes: 32, Figures: []Figure{figureOf("a", 10, 10, 10), figureOf("b", 9, 10, 11)}},
		{Bytes: 64, Figures: []Figure{figureOf("a", 10, 10, 10)}},
	}}
	for i := range c.Sizes {
		c.Sizes[i] = c.Sizes[i].settled("a")
	}
	want := Summary{
		Collective: "all_reduce", Library: "b", PeakBW: 12.5, PeakBytes: 16, Sizes: 3,
		Findings: map[Finding]int{Slower: 1, Faster: 1, Inside: 1},
		Worst:    SizedRatio{8, 10. / 12}, Best: SizedRatio{16, 1.25}, Median: 1,
	}
	got, measured := c.Summarise("b")
	if diff := cmp.Diff(want, got); diff != "" || !measured {
		t.Errorf("%v (-want +got):\n%s", measured, diff)
	}
	if got.Counts() != "1 inside the spread, 1 faster, 1 slower" || got.Worst.String() != "0.833 at 8 B" {
		t.Errorf("said as %q, %q", got.Counts(), got.Worst)
	}
	if s, measured := c.Summarise("c"); measured {
		t.Errorf("nobody measured c: %+v", s)
	}
}

func FuzzDecode(f *testing.F) {
	content, err := Encode(fixture(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Add([]byte(`{"schema":1,"conditions":{"rounds":1},"libraries":[{"label":"a"}],"collectives":[{"name":"b","sizes":[{"bytes":9223372036854775807,"figures":[{"library":"a","samples":[{"round":1,"us":1e-8,"busbw":0}]}]}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Decode(data)
		if err != nil {
			return
		}
		first, err := Encode(r)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		r, err = Decode(first)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if second, err := Encode(r); err != nil || !bytes.Equal(first, second) {
			t.Errorf("%v: written, read and written it is something else", err)
		}
		Table(r)
		SummaryTable(r)
	})
}
