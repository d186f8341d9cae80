// Package bench compares collective libraries on the GPUs of one host. It runs the same
// nccl-tests sweeps for each library, interleaved, and computes ratios between sweeps
// of the same round.
//
// Clocks, temperatures and other load drift. So the libraries take turns within a
// round, each round starts with a different library, and the first round is discarded.
// A ratio compares two sweeps of one round, never two averages. A difference counts
// only if it exceeds the spread of the ratios.
//
// A library with wrong results is not compared at all, because doing nothing is always
// faster. Package gate decides whether an artifact may be published.
package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"builder/internal/base/diag"
	"builder/internal/machine/guest"
	"builder/internal/machine/nccltests"
)

// Limits of a plan. Larger plans take too long to run and give unreadable results.
const (
	maxLibraries = 6
	maxRounds    = 1000
	maxSizes     = 64
	maxPrograms  = 64
)

// A Plan is the list of measurements to make.
type Plan struct {
	Libraries  []Library // the others are compared with the first
	Programs   []Program
	GPUs       int
	Launcher   []string // as in [nccltests.Sweep]
	Limit      float64  // upper limit of busbw between these GPUs in GB/s; 0 if unknown
	MinBytes   int64
	MaxBytes   int64
	Factor     int
	Rounds     int // without the warm-up round
	Iterations int // timed iterations for each size
	Warmup     int // untimed iterations for each size
	Env        map[string]string
	Timeout    time.Duration // for one sweep
}

// A Library is a library to measure.
type Library struct {
	Label  string
	Soname string // libnccl.so.2 or librccl.so.1
	Dir    string // directory of the file Soname
	Path   string // path given by the user: the file, its directory or a wheel
	SHA256 string // digest of the file
}

// A Program measures one collective.
type Program struct {
	Collective string // all_reduce
	Path       string // all_reduce_perf
}

// A Runner runs one sweep: nccltests.Run, or a fake in tests.
type Runner func(context.Context, nccltests.Sweep) (nccltests.Measured, error)

// A Turn is one sweep of a plan. Round 0 is the discarded warm-up round.
type Turn struct {
	Round      int
	Program    Program
	Library    Library
	Done, Left int // sweeps before this one, and sweeps left including this one
}

// Events receives the progress of a measurement.
type Events interface {
	Began(s Turn)
	Ended(s Turn, d time.Duration, err error)
	// Saved is called after each round with the result so far.
	Saved(r Result)
}

// Validate returns every error in the plan.
func (p Plan) Validate() error {
	var errs []error
	demand := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, diag.Errorf(diag.Usage, format, args...))
		}
	}
	demand(len(p.Libraries) > 0 && len(p.Libraries) <= maxLibraries, "%d libraries, want 1 to %d", len(p.Libraries), maxLibraries)
	demand(len(p.Programs) > 0 && len(p.Programs) <= maxPrograms, "%d collectives, want 1 to %d", len(p.Programs), maxPrograms)
	for i, l := range p.Libraries {
		again := slices.ContainsFunc(p.Libraries[:i], func(o Library) bool { return o.Label == l.Label })
		demand(l.Label != "" && !again, "library %q: every library needs a label of its own", l.Label)
	}
	for i, c := range p.Programs {
		again := slices.ContainsFunc(p.Programs[:i], func(o Program) bool { return o.Collective == c.Collective })
		demand(c.Collective != "" && !again, "collective %q is empty or named twice", c.Collective)
	}
	demand(p.GPUs > 0, "%d GPUs, want at least 1", p.GPUs)
	demand(p.MinBytes > 0 && p.MaxBytes >= p.MinBytes, "sizes from %d to %d bytes: want at least 1 byte, and --max-bytes not below --min-bytes", p.MinBytes, p.MaxBytes)
	demand(p.Factor > 1, "a factor of %d from size to size, want at least 2", p.Factor)
	demand(p.Rounds > 0 && p.Rounds <= maxRounds, "%d rounds, want 1 to %d", p.Rounds, maxRounds)
	demand(p.Iterations > 0 && p.Warmup >= 0, "%d iterations after %d to warm up", p.Iterations, p.Warmup)
	demand(p.Timeout > 0, "a sweep needs a time limit")
	return errors.Join(errs...)
}

// Turns lists the sweeps in order. Within a round, the libraries take turns on each
// program. The starting library advances by one with each round.
func (p Plan) Turns() []Turn {
	var turns []Turn
	for round := range p.Rounds + 1 {
		for _, program := range p.Programs {
			for turn := range p.Libraries {
				library := p.Libraries[(turn+round)%len(p.Libraries)]
				turns = append(turns, Turn{Round: round, Program: program, Library: library})
			}
		}
	}
	return turns
}

// sizes returns the number of sizes in a sweep, counted like nccl-tests.
func (p Plan) sizes() int {
	n := 0
	for bytes := p.MinBytes; bytes <= p.MaxBytes; bytes *= int64(p.Factor) {
		n++
		if bytes > p.MaxBytes/int64(p.Factor) {
			break
		}
	}
	return n
}

func (p Plan) sweep(s Turn) nccltests.Sweep {
	return nccltests.Sweep{
		Guest:   guest.AsCaller(),
		Program: s.Program.Path, Library: s.Library.Dir, GPUs: p.GPUs, Launcher: p.Launcher,
		MinBytes: p.MinBytes, MaxBytes: p.MaxBytes, Factor: p.Factor,
		Iterations: p.Iterations, Warmup: p.Warmup, Env: p.Env, Timeout: p.Timeout,
	}
}

// String formats a turn for messages, such as "all_reduce of ours in round 2".
func (s Turn) String() string {
	if s.Round == 0 {
		return fmt.Sprintf("%s of %s in the warm-up round", s.Program.Collective, s.Library.Label)
	}
	return fmt.Sprintf("%s of %s in round %d", s.Program.Collective, s.Library.Label, s.Round)
}
