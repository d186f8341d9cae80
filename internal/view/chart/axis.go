package chart

import (
	"math"
	"math/bits"
	"strconv"

	"builder/internal/machine/curve"
)

// An axis maps values to positions in the picture.
type axis struct {
	from, to float64 // values at the ends
	low, hi  float64 // their positions in units of the picture
}

func (a axis) at(value float64) float64 {
	return a.low + (value-a.from)/(a.to-a.from)*(a.hi-a.low)
}

// A Tick is a labelled position on an axis.
type Tick struct {
	At    float64
	Label string
}

// niceStep returns the smallest of 1, 2, 2.5 and 5 times a power of ten that divides a
// span into at most n parts.
func niceStep(span float64, n int) float64 {
	power := math.Pow(10, math.Floor(math.Log10(span/float64(n))))
	for _, factor := range []float64{1, 2, 2.5, 5} {
		if span/(factor*power) <= float64(n) {
			return factor * power
		}
	}
	return 10 * power
}

// linear returns an axis between round values that enclose from and to, with about n
// ticks.
func linear(from, to float64, n int, low, hi float64) (axis, []Tick) {
	step := niceStep(to-from, n)
	first, last := math.Floor(from/step+1e-9), math.Ceil(to/step-1e-9)
	a := axis{first * step, last * step, low, hi}
	decimals := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	if math.Abs(step*math.Pow10(decimals)-math.Round(step*math.Pow10(decimals))) > 1e-6 {
		decimals++ // a step such as 2.5
	}
	var ticks []Tick
	for i := first; i <= last; i++ {
		ticks = append(ticks, Tick{a.at(i * step), strconv.FormatFloat(i*step, 'f', decimals, 64)})
	}
	return a, ticks
}

// logarithmic returns an axis of sizes in powers of two, with at most n labels.
func logarithmic(first, last int64, n int, low, hi float64) (axis, []Tick) {
	from, to := math.Log2(float64(first)), math.Log2(float64(last))
	if from == to {
		from, to = from-1, to+1
	}
	a := axis{from, to, low, hi}
	begin := bits.Len64(uint64(first) - 1) // exponent of the first power of two not below first
	end := bits.Len64(uint64(last)) - 1
	step := max(1, (end-begin+n)/n)
	var ticks []Tick
	for power := begin; power <= end; power += step {
		ticks = append(ticks, Tick{a.at(float64(power)), curve.HumanSize(1 << power)})
	}
	return a, ticks
}
