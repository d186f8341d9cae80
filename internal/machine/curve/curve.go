// Package curve is bus bandwidth over the size of messages: as data, and in the words
// that people read and write. What gates on GPUs have measured travels so, with its
// verdict, from the host that has the GPUs to the page of a run. Files come from
// anywhere, so curves are held against bounds wherever they are read. How they are
// measured says package nccltests, how they are drawn package chart.
package curve

import (
	"encoding/json"
	"fmt"
)

// Bounds of what belongs to one verdict. A sweep from 8 bytes on by a factor of two
// has 60 sizes before they can be counted no more.
const (
	MaxCurves = 64
	MaxPoints = 64
	maxName   = 255  // bytes, as of a file
	maxRounds = 1000 // of a comparison
	maxBusBW  = 1e9  // GB/s; a library that does nothing measures thousands
)

// Place says which half of a sweep was measured.
type Place string

// The halves of a sweep.
const (
	OutOfPlace Place = "out-of-place" // into another buffer
	InPlace    Place = "in-place"
)

// A Curve is one library in one collective.
type Curve struct {
	Collective string  `json:"collective"`      // all_reduce
	Library    string  `json:"library"`         // what it says of itself, or is called: NCCL 2.29.7+cuda13.0
	Baseline   bool    `json:"rival,omitempty"` // it is what the artifact is compared with, not the artifact
	Place      Place   `json:"place"`
	Rounds     int     `json:"rounds"` // the sweeps that each figure is the median of
	Points     []Point `json:"points"` // by size, ascending; at least one
}

// A Point is one size.
type Point struct {
	Bytes int64   `json:"bytes"`
	BusBW float64 `json:"busbw"` // GB/s, 1e9 bytes
}

// Curves are those of one verdict. What is read into them is checked.
type Curves []Curve

// UnmarshalJSON reads curves, and refuses what [Curves.Check] refuses.
func (c *Curves) UnmarshalJSON(data []byte) error {
	var read []Curve // without this method
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	if err := Curves(read).Check(); err != nil {
		return fmt.Errorf("reading what was measured: %w", err)
	}
	*c = read
	return nil
}

// Check returns the first reason why nobody can have measured these.
func (c Curves) Check() error {
	if len(c) > MaxCurves {
		return fmt.Errorf("%d curves, at most %d belong to one verdict", len(c), MaxCurves)
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
		return fmt.Errorf("a collective and a library have names of at most %d bytes", maxName)
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
			return fmt.Errorf("the size %d stands behind the size %d", p.Bytes, before)
		}
		if !(p.BusBW >= 0 && p.BusBW <= maxBusBW) { // NaN is neither
			return fmt.Errorf("%g GB/s at %d bytes", p.BusBW, p.Bytes)
		}
		before = p.Bytes
	}
	return nil
}

// Peak returns the point of the highest bandwidth. It needs at least one.
func (c Curve) Peak() Point {
	best := c.Points[0]
	for _, p := range c.Points {
		if p.BusBW > best.BusBW {
			best = p
		}
	}
	return best
}
