package bench

import (
	"math"
	"slices"
)

// Spread is the median and range of a set of numbers.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// Ratio compares a library with the first one over the rounds that measured both.
type Ratio struct {
	Library string `json:"library"`
	Rounds  int    `json:"rounds"`
	// Speed is the busbw divided by that of the first library: above 1 is faster. It is
	// computed from times, because nccl-tests prints four digits of them, but prints
	// the bandwidth of 8 bytes as 0.00.
	Speed Spread `json:"busbw"`
	// Latency is the time divided by that of the first library: above 1 is slower. Only
	// sizes below [Small] have it.
	Latency  *Spread  `json:"latency,omitempty"`
	Interval Interval `json:"interval"` // interval of Speed
	Finding  Finding  `json:"finding"`
}

// Small is the size in bytes from which bandwidth is more informative than latency.
const Small = 64 << 10

// Interval is a confidence interval for the median of the speed ratio.
type Interval struct {
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Confidence float64 `json:"confidence"` // such as 0.9375; 0 with too few rounds, where Low and High are minimum and maximum
}

// Finding classifies a ratio.
type Finding string

// The findings. Fewer than three rounds give no meaningful spread, so the finding is
// Unknown.
const (
	Inside  Finding = "inside" // 1 is inside the interval, so no difference was shown
	Faster  Finding = "faster"
	Slower  Finding = "slower"
	Unknown Finding = "unknown"
)

const (
	enoughForSpread   = 3
	enoughForInterval = 5
	leastConfidence   = 0.9
)

// spread requires at least one value.
func spread(values []float64) Spread {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Spread{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1]}
}

// interval returns the narrowest interval, from the k-th smallest to the k-th largest
// value, that contains the true median with at least 90 % confidence. It assumes
// nothing about the distribution. The median is outside only if fewer than k values
// fall on one side of it, and each value falls on either side with probability 1/2.
// Fewer than five values give the whole range with a confidence of 0.
func interval(values []float64) Interval {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	found := Interval{Low: sorted[0], High: sorted[n-1]}
	if n < enoughForInterval {
		return found
	}
	ways, outside := 1.0, 0.0 // binomial coefficient n over i, and the sum of these
	for k := 1; k <= n/2; k++ {
		outside += ways
		ways *= float64(n-k+1) / float64(k)
		confidence := 1 - 2*outside*math.Pow(0.5, float64(n))
		if confidence < leastConfidence {
			break
		}
		found = Interval{sorted[k-1], sorted[n-k], confidence}
	}
	return found
}

// compare returns the ratio of a library to the first, or false if no round measured
// both.
func compare(bytes int64, first, f Figure) (Ratio, bool) {
	var speed, latency []float64
	for _, a := range first.Samples {
		for _, b := range f.Samples {
			if a.Round == b.Round {
				speed, latency = append(speed, a.Time/b.Time), append(latency, b.Time/a.Time)
			}
		}
	}
	if len(speed) == 0 {
		return Ratio{}, false
	}
	r := Ratio{Library: f.Library, Rounds: len(speed), Speed: spread(speed), Interval: interval(speed)}
	if bytes < Small {
		l := spread(latency)
		r.Latency = &l
	}
	r.Finding = r.find()
	return r, true
}

func (r Ratio) find() Finding {
	switch {
	case r.Rounds < enoughForSpread:
		return Unknown
	case r.Interval.Low > 1:
		return Faster
	case r.Interval.High < 1:
		return Slower
	}
	return Inside
}

// settled returns the size with all values computed from its samples. first is the
// label of the first library, which may lack samples.
func (s Size) settled(first string) Size {
	s.Figures = slices.Clone(s.Figures)
	s.Ratios = []Ratio{}
	for i, f := range s.Figures {
		var us, busbw []float64
		for _, sample := range f.Samples {
			us, busbw = append(us, sample.Time), append(busbw, sample.BusBW)
		}
		s.Figures[i].Microseconds, s.Figures[i].BusBW = spread(us), spread(busbw)
	}
	reference, measured := s.Figure(first)
	for _, f := range s.Figures {
		if !measured || f.Library == first {
			continue
		}
		if r, paired := compare(s.Bytes, reference, f); paired {
			s.Ratios = append(s.Ratios, r)
		}
	}
	return s
}
