package chart

import (
	"math"
	"strings"
	"testing"
)

func labels(ticks []Tick) string {
	var all []string
	for _, t := range ticks {
		all = append(all, t.Label)
	}
	return strings.Join(all, " ")
}

func TestLinear(t *testing.T) {
	for _, test := range []struct {
		from, to float64
		n        int
		want     string
	}{
		{0, 342, 6, "0 100 200 300 400"},
		{0, 0.41, 6, "0.0 0.1 0.2 0.3 0.4 0.5"},
		{0.95, 1.05, 6, "0.94 0.96 0.98 1.00 1.02 1.04 1.06"},
		{0.876, 1.093, 6, "0.85 0.90 0.95 1.00 1.05 1.10"},
		{0, 12, 5, "0.0 2.5 5.0 7.5 10.0 12.5"},
		{0, 1e-9, 5, "0.0000000000 0.0000000002 0.0000000004 0.0000000006 0.0000000008 0.0000000010"},
		{0, 5e14, 5, "0 100000000000000 200000000000000 300000000000000 400000000000000 500000000000000"},
	} {
		a, ticks := linear(test.from, test.to, test.n, 100, 0)
		if got := labels(ticks); got != test.want {
			t.Errorf("%v to %v: %s, want %s", test.from, test.to, got, test.want)
		}
		if a.at(a.from) != 100 || math.Abs(a.at(a.to)) > 1e-9 || a.from > test.from+1e-9 || a.to < test.to-1e-9 {
			t.Errorf("%v to %v: axis %+v", test.from, test.to, a)
		}
		if len(ticks) > test.n+2 {
			t.Errorf("%v to %v: %d ticks, about %d are wanted", test.from, test.to, len(ticks), test.n)
		}
	}
}

func TestLogarithmic(t *testing.T) {
	for _, test := range []struct {
		first, last int64
		n           int
		want        string
	}{
		{8, 4 << 30, 11, "8 B 64 B 512 B 4 KiB 32 KiB 256 KiB 2 MiB 16 MiB 128 MiB 1 GiB"},
		{8, 4 << 30, 5, "8 B 512 B 32 KiB 2 MiB 128 MiB"},
		{48, 192, 5, "64 B 128 B"},
		{1 << 20, 1 << 20, 5, "1 MiB"},
		{1, math.MaxInt64, 5, "1 B 8 KiB 64 MiB 512 GiB 4096 TiB"},
	} {
		a, ticks := logarithmic(test.first, test.last, test.n, 0, 100)
		if got := labels(ticks); got != test.want {
			t.Errorf("%d to %d: %s, want %s", test.first, test.last, got, test.want)
		}
		for _, tick := range ticks {
			if math.IsNaN(tick.At) || tick.At < -1e-9 || tick.At > 100+1e-9 {
				t.Errorf("%d to %d: %+v is outside of %+v", test.first, test.last, tick, a)
			}
		}
	}
}
