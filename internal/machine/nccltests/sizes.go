package nccltests

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// sizes are the sizes of a run, from first to last by a factor (TimeTest in
// src/common.cu).
type sizes struct {
	first, last, factor int64
	want                int64 // next expected size
	partial             bool  // only some sizes of the current round have appeared
}

func newSizes(first, last, factor string) (*sizes, error) {
	var values [3]int64
	for i, text := range []string{first, last, factor} {
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	s := &sizes{first: values[0], last: values[1], factor: values[2], want: values[0]}
	if s.first < 1 || s.first > s.last || s.factor < 2 {
		return nil, fmt.Errorf("invalid sizes from %s to %s by factor %s", first, last, factor)
	}
	return s, nil
}

// reduce lowers the last size, after the program found too little GPU memory for it.
func (s *sizes) reduce(last string) error {
	v, err := strconv.ParseInt(last, 10, 64)
	if err != nil {
		return err
	}
	s.last = v
	s.first = min(s.first, v)
	s.want = s.first
	return nil
}

// next checks the size of a row. Programs print the requested size, rounded down to
// units of 16 bytes shared evenly by the ranks. The exception is alltoallv, whose ranks
// send different amounts.
func (s *sizes) next(bytes int64, r Report) error {
	slack := int64(max(len(r.Devices), 1)) * 32
	if short := s.want - bytes; (short < 0 || short >= slack && bytes != s.want) && r.Program != "alltoallv_perf" {
		return fmt.Errorf("a row has %d bytes, expected %d", bytes, s.want)
	}
	s.partial = true
	if s.want > math.MaxInt64/s.factor {
		return errors.New("the sizes overflow")
	}
	s.want *= s.factor
	if s.want > s.last { // several types, operations, roots or cycles repeat the sizes
		s.want, s.partial = s.first, false
	}
	return nil
}

// complete reports whether every size has appeared.
func (s *sizes) complete() bool { return !s.partial }
