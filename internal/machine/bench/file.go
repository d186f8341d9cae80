package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// settled returns the result in the form written to a file: with values computed from
// the samples, with empty lists instead of null, and without sharing memory with r.
func (r Result) settled() Result {
	r.Schema = Schema
	r.Started, r.Finished = stamp(r.Started), stamp(r.Finished)
	r.Host.GPUs = list(r.Host.GPUs)
	r.Libraries = list(r.Libraries)
	r.Conditions.Env = maps.Clone(r.Conditions.Env)
	if r.Conditions.Env == nil {
		r.Conditions.Env = map[string]string{}
	}
	r.Collectives = list(r.Collectives)
	for i, c := range r.Collectives {
		sizes := list(c.Sizes)
		for j, s := range sizes {
			sizes[j] = s.settled(r.Libraries[0].Label)
		}
		r.Collectives[i].Sizes = sizes
	}
	return r
}

// stamp returns a time in UTC with a precision of seconds.
func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// list copies s. A nil slice becomes an empty one.
func list[T any](s []T) []T { return append([]T{}, s...) }

// Encode returns the content of bench.json.
func Encode(r Result) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(r.settled()); err != nil {
		return nil, fmt.Errorf("writing the result: %w", err)
	}
	return b.Bytes(), nil
}

// Decode reads a result. It computes all derived values again, so no view can show a
// ratio that contradicts the samples.
func Decode(data []byte) (Result, error) {
	var r Result
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		return Result{}, fmt.Errorf("reading the result: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Result{}, errors.New("reading the result: it has bytes after its end")
	}
	if err := r.check(); err != nil {
		return Result{}, fmt.Errorf("reading the result: %w", err)
	}
	return r.settled(), nil
}

// check returns the first error in a result.
func (r Result) check() error {
	c := r.Conditions
	if r.Schema != Schema {
		return fmt.Errorf("schema %d, want %d", r.Schema, Schema)
	}
	if c.Rounds < 1 || c.Rounds > maxRounds || len(r.Collectives) > maxPrograms {
		return fmt.Errorf("%d rounds of %d collectives", c.Rounds, len(r.Collectives))
	}
	if len(r.Libraries) < 1 || len(r.Libraries) > maxLibraries {
		return fmt.Errorf("%d libraries", len(r.Libraries))
	}
	var labels, names, measured []string
	for _, l := range r.Libraries {
		labels = append(labels, l.Label)
		if l.Failure == nil || !l.Failure.Wrong {
			measured = append(measured, l.Label)
		}
	}
	for _, c := range r.Collectives {
		names = append(names, c.Name)
	}
	if err := errors.Join(distinct(labels), distinct(names)); err != nil {
		return err
	}
	for _, c := range r.Collectives {
		if err := c.check(measured, r.Conditions.Rounds); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return nil
}

func distinct(names []string) error {
	for i, name := range names {
		if name == "" || slices.Contains(names[:i], name) {
			return fmt.Errorf("the name %q is empty or used twice", name)
		}
	}
	return nil
}

func (c Collective) check(labels []string, rounds int) error {
	if len(c.Sizes) > maxSizes {
		return fmt.Errorf("%d sizes", len(c.Sizes))
	}
	before := int64(0)
	for _, s := range c.Sizes {
		if s.Bytes <= before {
			return fmt.Errorf("size %d comes after size %d", s.Bytes, before)
		}
		before = s.Bytes
		if err := s.check(labels, rounds); err != nil {
			return fmt.Errorf("size %d: %w", s.Bytes, err)
		}
	}
	return nil
}

// check requires figures in the order of the labels.
func (s Size) check(labels []string, rounds int) error {
	if len(s.Figures) == 0 {
		return errors.New("it has no measurements")
	}
	for _, f := range s.Figures {
		i := slices.Index(labels, f.Library)
		if i < 0 {
			return fmt.Errorf("library %q must have no figures here", f.Library)
		}
		labels = labels[i+1:]
		if err := f.check(rounds); err != nil {
			return fmt.Errorf("library %q: %w", f.Library, err)
		}
	}
	return nil
}

func (f Figure) check(rounds int) error {
	if len(f.Samples) == 0 {
		return errors.New("it has no samples")
	}
	before := 0
	for _, s := range f.Samples {
		if s.Round <= before || s.Round > rounds {
			return fmt.Errorf("round %d comes after round %d of %d", s.Round, before, rounds)
		}
		before = s.Round
		if !plausibleTime(s.Time) || !plausibleBW(s.BusBW) {
			return fmt.Errorf("implausible: %g us and %g GB/s", s.Time, s.BusBW)
		}
	}
	return nil
}
