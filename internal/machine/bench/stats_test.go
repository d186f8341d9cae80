package bench

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSpread(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   Spread
	}{
		{[]float64{3}, Spread{3, 3, 3}},
		{[]float64{4, 1}, Spread{2.5, 1, 4}},
		{[]float64{9, 1, 2}, Spread{2, 1, 9}},
		{[]float64{4, 3, 2, 1}, Spread{2.5, 1, 4}},
	} {
		if got := spread(test.values); got != test.want {
			t.Errorf("spread(%v) = %v, want %v", test.values, got, test.want)
		}
	}
}

// The confidences are from tables of the binomial distribution: 1 - 2/2^5 between the
// smallest and the largest of five, and so on.
func TestInterval(t *testing.T) {
	for n, want := range map[int]Interval{
		1:  {1, 1, 0},
		4:  {1, 4, 0},
		5:  {1, 5, 1 - 2.0/32},
		7:  {1, 7, 1 - 2.0/128},
		8:  {2, 7, 1 - 2*(1+8.0)/256},
		11: {3, 9, 1 - 2*(1+11+55.0)/2048},
		20: {6, 15, 1 - 2*(1+20+190+1140+4845+15504.0)/1048576},
	} {
		var values []float64
		for i := range n {
			values = append(values, float64(n-i))
		}
		if diff := cmp.Diff(want, interval(values)); diff != "" {
			t.Errorf("%d values (-want +got):\n%s", n, diff)
		}
	}
	if got := interval(make([]float64, maxRounds)); got.Confidence < leastConfidence || got.Confidence > 0.95 {
		t.Errorf("of very many values: %v", got)
	}
}

// For samples of one distribution, the interval misses the median about as often as the
// confidence predicts.
func TestIntervalHoldsTheMedian(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const trials = 20_000
	for _, n := range []int{5, 8, 15} {
		held, confidence := 0, 0.0
		for range trials {
			var values []float64
			for range n {
				values = append(values, random.ExpFloat64()) // an asymmetric distribution
			}
			i := interval(values)
			if confidence = i.Confidence; i.Low <= math.Ln2 && math.Ln2 <= i.High {
				held++
			}
		}
		if got := float64(held) / trials; math.Abs(got-confidence) > 0.01 {
			t.Errorf("%d values: the median was held in %.3f of the cases, promised is %.3f", n, got, confidence)
		}
	}
}

// figureOf returns a figure with a sample for each nonzero time, in rounds 1, 2 and so
// on.
func figureOf(library string, times ...float64) Figure {
	f := Figure{Library: library}
	for i, us := range times {
		if us != 0 {
			f.Samples = append(f.Samples, Sample{Round: i + 1, Time: us, BusBW: 100 / us})
		}
	}
	return f
}

func TestCompare(t *testing.T) {
	tests := map[string]struct {
		first, other []float64
		speed        Spread
		finding      Finding
	}{
		// A shared drift of 50 % does not hide a difference of 1 %.
		"drift":      {[]float64{100, 120, 140, 150, 110}, []float64{101, 121.2, 141.4, 151.5, 111.1}, Spread{1 / 1.01, 1 / 1.01, 1 / 1.01}, Slower},
		"faster":     {[]float64{100, 100, 100}, []float64{80, 50, 90}, Spread{1.25, 100. / 90, 2}, Faster},
		"inside":     {[]float64{100, 100, 100}, []float64{80, 100, 125}, Spread{1, 0.8, 1.25}, Inside},
		"equal":      {[]float64{100, 100, 100}, []float64{100, 100, 100}, Spread{1, 1, 1}, Inside},
		"two rounds": {[]float64{100, 100}, []float64{50, 50}, Spread{2, 2, 2}, Unknown},
		"pairs":      {[]float64{100, 0, 100, 100, 100}, []float64{0, 10, 50, 50, 50}, Spread{2, 2, 2}, Faster},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r, ok := compare(8, figureOf("a", test.first...), figureOf("b", test.other...))
			if !ok || r.Finding != test.finding || r.Library != "b" {
				t.Errorf("%v, %+v, want %s", ok, r, test.finding)
			}
			near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
			if diff := cmp.Diff(test.speed, r.Speed, near); diff != "" {
				t.Errorf("speed (-want +got):\n%s", diff)
			}
			if math.Abs(r.Latency.Max*r.Speed.Min-1) > 1e-9 {
				t.Errorf("latency %v is not the inverse of %v", r.Latency, r.Speed)
			}
		})
	}
	if r, ok := compare(8, figureOf("a", 1, 0), figureOf("b", 0, 1)); ok {
		t.Errorf("no round has both, and yet %+v", r)
	}
	if r, _ := compare(Small, figureOf("a", 1), figureOf("b", 1)); r.Latency != nil {
		t.Errorf("%d bytes have a latency ratio", int64(Small))
	}
}
