package curve

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func one() Curve {
	return Curve{Collective: "all_reduce", Library: "NCCL 2.29.7+cuda13.0", Place: InPlace, Rounds: 3, Points: []Point{{8, 0}, {1 << 20, 96.87}, {1 << 30, 93.5}}}
}

func TestCurvesAreReadAsTheyWereWritten(t *testing.T) {
	baseline := one()
	baseline.Library, baseline.Baseline, baseline.Place = "vendor", true, OutOfPlace
	want := Curves{one(), baseline}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	const first = `{"collective":"all_reduce","library":"NCCL 2.29.7+cuda13.0","place":"in-place","rounds":3,"points":[{"bytes":8,"busbw":0},`
	if !strings.HasPrefix(string(text), "["+first) {
		t.Errorf("written as %s", text)
	}
	var got Curves
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if peak := got[0].Peak(); peak != (Point{1 << 20, 96.87}) {
		t.Errorf("the peak is %v", peak)
	}
}

func TestCheckRefuses(t *testing.T) {
	for want, change := range map[string]func(*Curve){
		"need names":              func(c *Curve) { c.Collective = "" },
		"names of 1 to 255 bytes": func(c *Curve) { c.Library = strings.Repeat("x", 256) },
		`the place "" is neither`: func(c *Curve) { c.Place = "" },
		`the place "here" is`:     func(c *Curve) { c.Place = "here" },
		"0 rounds":                func(c *Curve) { c.Rounds = 0 },
		"1001 rounds":             func(c *Curve) { c.Rounds = 1001 },
		"0 sizes":                 func(c *Curve) { c.Points = nil },
		"65 sizes":                func(c *Curve) { c.Points = make([]Point, 65) },
		"the size 0 comes after":  func(c *Curve) { c.Points[0].Bytes = 0 },
		"NaN GB/s":                func(c *Curve) { c.Points[1].BusBW = math.NaN() },
		"+Inf GB/s":               func(c *Curve) { c.Points[1].BusBW = math.Inf(1) },
		"-Inf GB/s":               func(c *Curve) { c.Points[1].BusBW = math.Inf(-1) },
		"-0.5 GB/s":               func(c *Curve) { c.Points[1].BusBW = -0.5 },
		"1e+10 GB/s":              func(c *Curve) { c.Points[1].BusBW = 1e10 },
		"comes after the size 8":  func(c *Curve) { c.Points[1].Bytes = 8 },
	} {
		c := one()
		change(&c)
		if err := (Curves{one(), c}).Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check = %v, want %q", err, want)
		}
	}
	if err := make(Curves, MaxCurves+1).Check(); err == nil || !strings.Contains(err.Error(), "65 curves") {
		t.Errorf("Check = %v", err)
	}
}

func TestReadingRefuses(t *testing.T) {
	const curve = `{"collective": "a", "library": "b", "place": "in-place", "rounds": 1, "points": [{"bytes": 8, "busbw": 1}]}`
	for want, text := range map[string]string{
		"-1 GB/s at 8 bytes":         strings.Replace("["+curve+"]", `"busbw": 1`, `"busbw": -1`, 1),
		"cannot unmarshal":           strings.Replace("["+curve+"]", `"busbw": 1`, `"busbw": 1e999`, 1),
		"invalid character":          strings.Replace("["+curve+"]", `"busbw": 1`, `"busbw": NaN`, 1),
		"65 curves, above the limit": "[" + strings.Repeat(curve+",", MaxCurves) + curve + "]",
		"cannot unmarshal obj":       curve,
	} {
		got := Curves{one()}
		if err := json.Unmarshal([]byte(text), &got); err == nil || !strings.Contains(err.Error(), want) || len(got) != 1 {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	var none Curves
	if err := json.Unmarshal([]byte("null"), &none); err != nil || none != nil {
		t.Errorf("null: %v, %v", none, err)
	}
}

// Decoded curves can be encoded and decoded again.
func FuzzCurves(f *testing.F) {
	text, _ := json.Marshal(Curves{one()})
	f.Add(text)
	f.Add([]byte(`[{"points": [{"bytes": 1, "busbw": 1e308}]}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var c, again Curves
		if json.Unmarshal(data, &c) != nil {
			return
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		if err := json.Unmarshal(text, &again); err != nil || len(again) != len(c) {
			t.Errorf("%v: %s became %s", err, data, text)
		}
	})
}
