// Package bench compares libraries of collectives on the GPUs of one host: the
// same sweeps of nccl-tests for each of them, interleaved, and the ratio of what
// was measured in the same round.
//
// Clocks, temperatures and neighbours drift. So the libraries take turns within
// a round, the one that begins changes from round to round, the first round is
// thrown away, and a ratio is made of two neighbouring sweeps, never of two
// averages. A difference is called one only where it is larger than the spread
// of those ratios.
//
// A library that computes wrong sums is not compared at all: nothing is as fast
// as doing nothing. Whether an artifact may be published says package gate.
package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"builder/internal/base/diag"
	"builder/internal/machine/nccltests"
)

// Bounds of a plan. What is beyond them can be neither waited for nor read.
const (
	maxLibraries = 6
	maxRounds    = 1000
	maxSizes     = 64
	maxPrograms  = 64
)

// A Plan is what shall be measured.
type Plan struct {
	Libraries  []Library // the first is what the others are compared with
	Programs   []Program
	GPUs       int
	Limit      float64 // GB/s that no library can exceed between these GPUs; 0 is not known
	MinBytes   int64
	MaxBytes   int64
	Factor     int
	Rounds     int // that count; one more goes before them
	Iterations int // timed, for each size
	Warmup     int // not timed, for each size
	Env        map[string]string
	Timeout    time.Duration // of one sweep
}

// A Library is a candidate.
type Library struct {
	Label  string
	Soname string // libnccl.so.2 or librccl.so.1
	Dir    string // holds that file
	Path   string // what the user named: the file, the directory or a wheel
	SHA256 string // of the file
}

// A Program measures one collective.
type Program struct {
	Collective string // all_reduce
	Path       string // all_reduce_perf
}

// A Runner runs one sweep: nccltests.Run, or a fake in tests.
type Runner func(context.Context, nccltests.Sweep) (nccltests.Measured, error)

// A Turn is one sweep of a plan. Round 0 is the one that is thrown away.
type Turn struct {
	Round      int
	Program    Program
	Library    Library
	Done, Left int // sweeps before this one, and from this one on
}

// Events is told what happens while it happens.
type Events interface {
	Began(s Turn)
	Ended(s Turn, d time.Duration, err error)
	// Saved is what is known after a whole round.
	Saved(r Result)
}

// Validate returns every fault of the plan.
func (p Plan) Validate() error {
	var faults []error
	demand := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, diag.Errorf(diag.Usage, format, args...))
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
		demand(c.Collective != "" && !again, "collective %q is named twice, or not at all", c.Collective)
	}
	demand(p.GPUs > 0, "%d GPUs, want at least 1", p.GPUs)
	demand(p.MinBytes > 0 && p.MaxBytes >= p.MinBytes, "sizes from %d to %d bytes", p.MinBytes, p.MaxBytes)
	demand(p.Factor > 1, "a factor of %d from size to size, want at least 2", p.Factor)
	demand(p.Rounds > 0 && p.Rounds <= maxRounds, "%d rounds, want 1 to %d", p.Rounds, maxRounds)
	demand(p.Iterations > 0 && p.Warmup >= 0, "%d iterations after %d to warm up", p.Iterations, p.Warmup)
	demand(p.Timeout > 0, "a sweep needs a time limit")
	return errors.Join(faults...)
}

// Turns lists the sweeps in their order. Within a round the libraries take turns
// on each program; who begins moves on by one with each round.
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

// sizes is how many sizes a program goes through, as nccl-tests counts them.
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
		Program: s.Program.Path, Library: s.Library.Dir, GPUs: p.GPUs,
		MinBytes: p.MinBytes, MaxBytes: p.MaxBytes, Factor: p.Factor,
		Iterations: p.Iterations, Warmup: p.Warmup, Env: p.Env, Timeout: p.Timeout,
	}
}

// String names a turn in messages: all_reduce of ours in round 2.
func (s Turn) String() string {
	if s.Round == 0 {
		return fmt.Sprintf("%s of %s in the warm-up round", s.Program.Collective, s.Library.Label)
	}
	return fmt.Sprintf("%s of %s in round %d", s.Program.Collective, s.Library.Label, s.Round)
}
