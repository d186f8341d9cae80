package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"builder/internal/base/diag"
)

// planOf returns a plan for libraries with these labels, over 1, 2 and 4 KiB.
func planOf(rounds int, labels ...string) Plan {
	p := Plan{
		Programs: []Program{{"all_reduce", "/tests/all_reduce_perf"}, {"broadcast", "/tests/broadcast_perf"}},
		GPUs:     2, MinBytes: 1 << 10, MaxBytes: 4 << 10, Factor: 2, Rounds: rounds, Iterations: 20, Warmup: 5,
		Env: map[string]string{"NCCL_NVLS_ENABLE": "0"}, Timeout: time.Minute,
	}
	for _, label := range labels {
		p.Libraries = append(p.Libraries, Library{Label: label, Dir: "/lib/" + label, Path: label + ".whl", SHA256: "sum of " + label})
	}
	return p
}

func TestStepsTakeTurns(t *testing.T) {
	var got []string
	for _, s := range planOf(3, "a", "b").Turns() {
		got = append(got, s.String())
	}
	want := []string{
		"all_reduce of a in the warm-up round", "all_reduce of b in the warm-up round",
		"broadcast of a in the warm-up round", "broadcast of b in the warm-up round",
		"all_reduce of b in round 1", "all_reduce of a in round 1", "broadcast of b in round 1", "broadcast of a in round 1",
		"all_reduce of a in round 2", "all_reduce of b in round 2", "broadcast of a in round 2", "broadcast of b in round 2",
		"all_reduce of b in round 3", "all_reduce of a in round 3", "broadcast of b in round 3", "broadcast of a in round 3",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// With as many rounds as libraries, each library has every position once.
func TestEveryLibraryHasEveryPlace(t *testing.T) {
	p := planOf(3, "a", "b", "c")
	places := map[string]map[int]bool{}
	for i, s := range p.Turns() {
		if s.Round > 0 {
			if places[s.Library.Label] == nil {
				places[s.Library.Label] = map[int]bool{}
			}
			places[s.Library.Label][i%3] = true
		}
	}
	for label, had := range places {
		if len(had) != 3 {
			t.Errorf("%s only stood at %v", label, had)
		}
	}
}

func TestValidate(t *testing.T) {
	if err := planOf(1, "a").Validate(); err != nil {
		t.Errorf("a good plan: %v", err)
	}
	tests := map[string]func(*Plan){
		"0 libraries":         func(p *Plan) { p.Libraries = nil },
		"7 libraries":         func(p *Plan) { *p = planOf(1, "a", "b", "c", "d", "e", "f", "g") },
		`library "a"`:         func(p *Plan) { *p = planOf(1, "a", "a") },
		`library ""`:          func(p *Plan) { *p = planOf(1, "") },
		"0 collectives":       func(p *Plan) { p.Programs = nil },
		`"broadcast" is`:      func(p *Plan) { p.Programs = append(p.Programs, p.Programs[1]) },
		"0 GPUs":              func(p *Plan) { p.GPUs = 0 },
		"from 0 to":           func(p *Plan) { p.MinBytes = 0 },
		"from 1024 to 8":      func(p *Plan) { p.MaxBytes = 8 },
		"a factor of 1":       func(p *Plan) { p.Factor = 1 },
		"0 rounds":            func(p *Plan) { p.Rounds = 0 },
		"1001 rounds":         func(p *Plan) { p.Rounds = 1001 },
		"0 iterations":        func(p *Plan) { p.Iterations = 0 },
		"-1 to warm up":       func(p *Plan) { p.Warmup = -1 },
		"needs a time limit":  func(p *Plan) { p.Timeout = 0 },
		"0 GPUs, want at lea": func(p *Plan) { *p = Plan{} },
	}
	for want, change := range tests {
		p := planOf(1, "a")
		change(&p)
		err := p.Validate()
		if err == nil || !strings.Contains(err.Error(), want) || diag.CodeOf(err) != diag.Usage {
			t.Errorf("Validate = %v, want %q", err, want)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, test := range []struct {
		from, to int64
		factor   int
		want     int
	}{
		{8, 4 << 30, 2, 30}, {8, 8, 2, 1}, {8, 15, 2, 1}, {1 << 10, 1 << 20, 4, 6}, {1, 1<<63 - 1, 2, 63}, {1, 1<<63 - 1, 1 << 62, 2},
	} {
		p := Plan{MinBytes: test.from, MaxBytes: test.to, Factor: test.factor}
		if got := p.sizes(); got != test.want {
			t.Errorf("%d to %d by %d: %d sizes, want %d", test.from, test.to, test.factor, got, test.want)
		}
	}
}
