package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"builder/internal/base/diag"
	"builder/internal/machine/nccltests"
)

// Measure runs the plan. A failed library is not measured further, while the others
// continue; the error joins all failures. If ctx ends, Measure returns the result so
// far, with the reason in Stopped.
//
// The caller fills in Builder, Command and the times of the result. Measure sets only
// the GPUs of the host, from the output of the programs.
func (p Plan) Measure(ctx context.Context, run Runner, events Events) (Result, error) {
	if err := p.Validate(); err != nil {
		return Result{}, err
	}
	m := newMeasurement(p)
	turns := p.Turns()
	for i, s := range turns {
		s.Done, s.Left = m.done, m.left(turns[i:])
		if s.Left == 0 {
			break
		}
		if !m.failed(s.Library.Label) {
			m.turn(ctx, s, run, events)
		}
		if ctx.Err() != nil && s.Left > 1 {
			m.stopped = cmp.Or(m.stopped, fmt.Sprintf("%v, after %v", context.Cause(ctx), s))
			break
		}
		if i+1 < len(turns) && turns[i+1].Round != s.Round && ctx.Err() == nil {
			events.Saved(m.result())
		}
	}
	if len(m.samples) == 0 && len(m.errs) == 0 {
		m.errs = append(m.errs, diag.Errorf(diag.Unexpected, "no measurement: %s", m.stopped))
	}
	return m.result(), errors.Join(m.errs...)
}

// measurement is the state of a running plan.
type measurement struct {
	plan      Plan
	tests     string
	gpus      []string
	libraries []Contender
	sizes     map[string][]int64 // by collective, from its first sweep
	samples   map[key][]Sample   // in order of rounds
	done      int
	stopped   string
	errs      []error
}

type key struct {
	collective string
	bytes      int64
	library    string
}

func newMeasurement(p Plan) *measurement {
	m := &measurement{plan: p, sizes: map[string][]int64{}, samples: map[key][]Sample{}}
	for _, l := range p.Libraries {
		m.libraries = append(m.libraries, Contender{Label: l.Label, Path: l.Path, SHA256: l.SHA256})
	}
	return m
}

func (m *measurement) library(label string) *Contender {
	i := slices.IndexFunc(m.libraries, func(l Contender) bool { return l.Label == label })
	return &m.libraries[i]
}

func (m *measurement) failed(label string) bool { return m.library(label).Failure != nil }

// left counts the turns of libraries that have not failed.
func (m *measurement) left(turns []Turn) int {
	n := 0
	for _, s := range turns {
		if !m.failed(s.Library.Label) {
			n++
		}
	}
	return n
}

func (m *measurement) turn(ctx context.Context, s Turn, run Runner, events Events) {
	events.Began(s)
	begun := time.Now()
	measured, err := run(ctx, m.plan.sweep(s))
	if err == nil {
		err = m.take(s, measured)
	} else if ctx.Err() != nil {
		err = context.Cause(ctx) // cancelled, so not a failure of the library
		m.stopped = fmt.Sprintf("%v, during %v", err, s)
		events.Ended(s, time.Since(begun), err)
		return
	}
	m.done++
	if err != nil {
		m.fail(s, err)
	}
	events.Ended(s, time.Since(begun), err)
}

// take keeps the measurements of a sweep if they are plausible.
func (m *measurement) take(s Turn, measured nccltests.Measured) error {
	if err := m.library(s.Library.Label).recognise(measured.Version()); err != nil {
		return err
	}
	rows, err := m.plan.accept(measured.Report)
	if err != nil {
		return err
	}
	var sizes []int64
	for _, row := range rows {
		sizes = append(sizes, row.Bytes)
	}
	collective := s.Program.Collective
	if known, ok := m.sizes[collective]; ok && !slices.Equal(known, sizes) {
		return fmt.Errorf("it measured sizes %d, and sizes %d before", sizes, known)
	}
	m.sizes[collective], m.tests, m.gpus = sizes, measured.Report.Version, gpusOf(measured.Report)
	if s.Round == 0 {
		return nil
	}
	for _, row := range rows {
		k := key{collective, row.Bytes, s.Library.Label}
		m.samples[k] = append(m.samples[k], sampleOf(s.Round, row))
	}
	return nil
}

// fail records the failure of a library. Earlier samples stay, unless its values were
// wrong.
func (m *measurement) fail(s Turn, err error) {
	_, isWrong := errors.AsType[wrong](err)
	m.library(s.Library.Label).Failure = &Failure{
		Round: s.Round, Collective: s.Program.Collective, Reason: err.Error(), Wrong: isWrong,
	}
	if isWrong {
		maps.DeleteFunc(m.samples, func(k key, _ []Sample) bool { return k.library == s.Library.Label })
	}
	err = fmt.Errorf("measuring %v: %w", s, err)
	if diag.Worst(err) == diag.OK {
		err = diag.Errorf(diag.Gate, "%w", err)
	}
	m.errs = append(m.errs, err)
}

func (m *measurement) result() Result {
	p := m.plan
	r := Result{
		Host: Host{GPUs: m.gpus}, Stopped: m.stopped, Libraries: slices.Clone(m.libraries),
		Conditions: Conditions{
			GPUs: p.GPUs, MinBytes: p.MinBytes, MaxBytes: p.MaxBytes, Factor: p.Factor, Rounds: p.Rounds,
			Iterations: p.Iterations, Warmup: p.Warmup, Tests: m.tests, Env: p.Env,
		},
	}
	for _, program := range p.Programs {
		c := Collective{Name: program.Collective}
		for _, bytes := range m.sizes[c.Name] {
			if s := m.size(c.Name, bytes); len(s.Figures) > 0 {
				c.Sizes = append(c.Sizes, s)
			}
		}
		r.Collectives = append(r.Collectives, c)
	}
	return r.settled()
}

func (m *measurement) size(collective string, bytes int64) Size {
	s := Size{Bytes: bytes}
	for _, l := range m.libraries {
		if samples := m.samples[key{collective, bytes, l.Label}]; len(samples) > 0 {
			s.Figures = append(s.Figures, Figure{Library: l.Label, Samples: slices.Clone(samples)})
		}
	}
	return s
}
