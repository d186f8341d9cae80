// Package curve holds curves of bus bandwidth over message size, and formats and parses
// their sizes. Curves travel with the verdict of a GPU gate, from the host with the
// GPUs to the page of a run. Files may come from anywhere, so reading a curve checks
// its limits. Package nccltests measures curves, and package chart draws them.
package curve

import (
	"encoding/json"
	"fmt"
)

// Limits for the curves of one verdict. A sweep from 8 bytes with a factor of two has
// 60 sizes before int64 overflows.
const (
	MaxCurves = 64
	MaxPoints = 64
	maxName   = 255  // bytes, like a file name
	maxRounds = 1000 // rounds of a comparison
	maxBusBW  = 1e9  // GB/s; a library that does nothing reaches thousands
)

// Place is the half of a sweep: in-place or out-of-place.
type Place string

// The halves of a sweep.
const (
	OutOfPlace Place = "out-of-place" // into a separate buffer
	InPlace    Place = "in-place"
)

// A Curve is the bandwidth of one library in one collective.
type Curve struct {
	Collective string  `json:"collective"`      // all_reduce
	Library    string  `json:"library"`         // version reported by the library, or its name: NCCL 2.29.7+cuda13.0
	Baseline   bool    `json:"rival,omitempty"` // the artifact is compared with this library
	Place      Place   `json:"place"`
	Rounds     int     `json:"rounds"` // number of sweeps; each point is their median
	Points     []Point `json:"points"` // in ascending order of size; at least one
}

// A Point is the bandwidth at one size.
type Point struct {
	Bytes int64   `json:"bytes"`
	BusBW float64 `json:"busbw"` // GB/s, where 1 GB is 1e9 bytes
}

// Curves are the curves of one verdict. Decoding checks them.
type Curves []Curve

// UnmarshalJSON decodes curves and returns an error if [Curves.Check] does.
func (c *Curves) UnmarshalJSON(data []byte) error {
	var read []Curve // a type without this method avoids recursion
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	if err := Curves(read).Check(); err != nil {
		return fmt.Errorf("reading the measurements: %w", err)
	}
	*c = read
	return nil
}

// Check returns the first error in implausible curves.
func (c Curves) Check() error {
	if len(c) > MaxCurves {
		return fmt.Errorf("%d curves, above the limit of %d in one verdict", len(c), MaxCurves)
	}
	for _, one := range c {
		if err := one.check(); err != nil {
			return fmt.Errorf("%.40q of %.40q: %w", one.Collective, one.Library, err)
		}
	}
	return nil
}

func (c Curve) check() error {
	switch {
	case c.Collective == "" || len(c.Collective) > maxName || c.Library == "" || len(c.Library) > maxName:
		return fmt.Errorf("the collective and the library need names of 1 to %d bytes", maxName)
	case c.Place != OutOfPlace && c.Place != InPlace:
		return fmt.Errorf("the place %.40q is neither %s nor %s", c.Place, OutOfPlace, InPlace)
	case c.Rounds < 1 || c.Rounds > maxRounds:
		return fmt.Errorf("%d rounds, want 1 to %d", c.Rounds, maxRounds)
	case len(c.Points) < 1 || len(c.Points) > MaxPoints:
		return fmt.Errorf("%d sizes, want 1 to %d", len(c.Points), MaxPoints)
	}
	before := int64(0)
	for _, p := range c.Points {
		if p.Bytes <= before {
			return fmt.Errorf("the size %d comes after the size %d", p.Bytes, before)
		}
		if !(p.BusBW >= 0 && p.BusBW <= maxBusBW) { // also refuses NaN
			return fmt.Errorf("%g GB/s at %d bytes", p.BusBW, p.Bytes)
		}
		before = p.Bytes
	}
	return nil
}

// Peak returns the point with the highest bandwidth. The curve must have a point.
func (c Curve) Peak() Point {
	best := c.Points[0]
	for _, p := range c.Points {
		if p.BusBW > best.BusBW {
			best = p
		}
	}
	return best
}
