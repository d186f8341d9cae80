package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"builder/internal/base/diag"
	"builder/internal/machine/guest"
	"builder/internal/machine/nccltests"
)

// witness records the events.
type witness struct {
	turns []Turn
	ended []error
	saved []Result
}

func (w *witness) Began(s Turn)                             { w.turns = append(w.turns, s) }
func (w *witness) Ended(_ Turn, _ time.Duration, err error) { w.ended = append(w.ended, err) }
func (w *witness) Saved(r Result)                           { w.saved = append(w.saved, r) }

// good returns a sweep without errors: 10 us for each size.
func good(s nccltests.Sweep) nccltests.Measured {
	m := nccltests.Measured{Log: "host:1:1 [0] NCCL INFO NCCL version 2.29.7+cuda13.0\n"}
	m.Report = nccltests.Report{Version: "2.17.6", Library: 22907, Devices: make([]nccltests.Device, s.GPUs)}
	for i := range m.Report.Devices {
		m.Report.Devices[i].Name = "NVIDIA H200"
	}
	for bytes := s.MinBytes; bytes <= s.MaxBytes; bytes *= int64(s.Factor) {
		timing := nccltests.Timing{Measured: true, Checked: true, Microseconds: 10, BusBW: float64(bytes) / 1e4}
		m.Report.Rows = append(m.Report.Rows, nccltests.Row{Bytes: bytes, OutOfPlace: timing, InPlace: timing})
	}
	return m
}

// changed runs good sweeps and applies change to those of one library.
func changed(label string, change func(call int, m *nccltests.Measured) error) Runner {
	calls := 0
	return func(_ context.Context, s nccltests.Sweep) (nccltests.Measured, error) {
		m := good(s)
		if s.Library != "/lib/"+label {
			return m, nil
		}
		calls++
		return m, change(calls, &m)
	}
}

func TestMeasure(t *testing.T) {
	var sweeps []nccltests.Sweep
	w := &witness{}
	p := planOf(2, "vendor", "ours")
	r, err := p.Measure(t.Context(), func(_ context.Context, s nccltests.Sweep) (nccltests.Measured, error) {
		sweeps = append(sweeps, s)
		m := good(s)
		for i := range m.Report.Rows {
			m.Report.Rows[i].OutOfPlace.Microseconds *= float64(len(sweeps)) // later sweeps are slower
		}
		return m, nil
	}, w)
	if err != nil {
		t.Fatal(err)
	}
	want := nccltests.Sweep{
		Guest: guest.AsCaller(), Program: "/tests/all_reduce_perf", Library: "/lib/vendor", GPUs: 2, MinBytes: 1 << 10, MaxBytes: 4 << 10, Factor: 2,
		Iterations: 20, Warmup: 5, Env: map[string]string{"NCCL_NVLS_ENABLE": "0"}, Timeout: time.Minute,
	}
	if diff := cmp.Diff(want, sweeps[0], cmp.AllowUnexported(guest.Guest{})); diff != "" || len(sweeps) != 12 {
		t.Errorf("%d sweeps, the first (-want +got):\n%s", len(sweeps), diff)
	}
	if len(w.saved) != 2 || len(w.ended) != 12 || w.turns[11].Done != 11 || w.turns[11].Left != 1 {
		t.Errorf("%d saved, %d ended, the last %+v", len(w.saved), len(w.ended), w.turns[11])
	}
	if n := len(w.saved[0].Collectives[0].Sizes); n != 0 {
		t.Errorf("the warm-up round has %d sizes", n)
	}
	s := r.Collectives[0].Sizes[0]
	wantSamples := []Sample{{1, 60, 0.1024, 10, 0.1024}, {2, 90, 0.1024, 10, 0.1024}}
	if diff := cmp.Diff(wantSamples, s.Figures[0].Samples); diff != "" || s.Bytes != 1<<10 {
		t.Errorf("%d bytes of vendor (-want +got):\n%s", s.Bytes, diff)
	}
	ratio := Ratio{
		Library: "ours", Rounds: 2, Speed: Spread{1.05, 0.9, 1.2}, Finding: Unknown,
		Latency: &Spread{(50./60 + 100./90) / 2, 50. / 60, 100. / 90}, Interval: Interval{0.9, 1.2, 0},
	}
	if diff := cmp.Diff([]Ratio{ratio}, s.Ratios, cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })); diff != "" {
		t.Errorf("ratio (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"NVIDIA H200", "NVIDIA H200"}, r.Host.GPUs); diff != "" {
		t.Errorf("GPUs (-want +got):\n%s", diff)
	}
	library := Contender{Label: "ours", Path: "ours.whl", SHA256: "sum of ours", Version: "2.29.7+cuda13.0"}
	if diff := cmp.Diff(library, r.Libraries[1]); diff != "" || r.Stopped != "" || r.Conditions.Tests != "2.17.6" {
		t.Errorf("%+v (-want +got):\n%s", r.Conditions, diff)
	}
}

// A failed library ends with a reason, and the others continue.
func TestLibraryFails(t *testing.T) {
	row := func(change func(*nccltests.Row)) func(int, *nccltests.Measured) error {
		return func(_ int, m *nccltests.Measured) error {
			change(&m.Report.Rows[1])
			return nil
		}
	}
	report := func(change func(*nccltests.Report)) func(int, *nccltests.Measured) error {
		return func(_ int, m *nccltests.Measured) error {
			change(&m.Report)
			return nil
		}
	}
	tests := map[string]struct {
		change func(int, *nccltests.Measured) error
		reason string
		wrong  bool
	}{
		"crash":         {func(int, *nccltests.Measured) error { return errors.New("exit status 3") }, "exit status 3", false},
		"wrong":         {row(func(r *nccltests.Row) { r.OutOfPlace.Wrong = 12 }), "2 KiB: 12 wrong values", true},
		"wrong half":    {row(func(r *nccltests.Row) { r.InPlace.Wrong = 1 }), "2 KiB: 1 wrong values", true},
		"unchecked":     {row(func(r *nccltests.Row) { r.OutOfPlace.Checked = false }), "2 KiB: the program did not check the values", true},
		"too fast":      {row(func(r *nccltests.Row) { r.OutOfPlace.BusBW = 7400 }), "2 KiB: 7400 GB/s exceed the 900 GB/s", true},
		"out of bounds": {report(func(r *nccltests.Report) { r.OutOfBounds = 1 }), "1 passes had wrong values", true},
		"no half":       {row(func(r *nccltests.Row) { r.OutOfPlace.Measured = false }), "2 KiB: not measured out of place", false},
		"no time":       {row(func(r *nccltests.Row) { r.OutOfPlace.Microseconds = 0 }), "2 KiB: implausible: 0 us and", false},
		"order":         {row(func(r *nccltests.Row) { r.Bytes = 1 << 10 }), "size 1024 comes after size 1024", false},
		"missing row":   {report(func(r *nccltests.Report) { r.Rows = r.Rows[:2] }), "it measured 2 sizes, 3 were requested", false},
		"no row":        {report(func(r *nccltests.Report) { r.Rows = nil }), "it measured 0 sizes", false},
		"one GPU":       {report(func(r *nccltests.Report) { r.Devices = r.Devices[:1] }), "it ran on 1 GPUs, 2 were requested", false},
		"other sizes":   {row(func(r *nccltests.Row) { r.Bytes++ }), "it measured sizes [1024 2049 4096], and sizes [1024 2048 4096] before", false},
		"no elements for each rank": {report(func(r *nccltests.Report) {
			for i := range r.Rows {
				r.Rows[i].Bytes = 0
			}
		}), "all sizes are too small to share", false},
		"other library": {func(call int, m *nccltests.Measured) error {
			m.Log = fmt.Sprintf("NCCL version 2.%d.0\n", call)
			return nil
		}, "it reports version 2.2.0, and 2.1.0 before", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := planOf(5, "vendor", "bad", "ours")
			p.Limit = 900
			r, err := p.Measure(t.Context(), changed("bad", test.change), &witness{})
			if diag.CodeOf(err) != diag.Gate || !strings.Contains(err.Error(), test.reason) {
				t.Errorf("error %v", err)
			}
			f := r.Libraries[1].Failure
			if f == nil || f.Round != 0 || !strings.Contains(f.Reason, test.reason) || f.Wrong != test.wrong {
				t.Errorf("failure %+v, want %q", f, test.reason)
			}
			for _, c := range r.Collectives {
				for _, s := range c.Sizes {
					if _, has := s.Figure("bad"); has || len(s.Figures) != 2 || len(s.Figures[1].Samples) != 5 || len(s.Ratios) != 1 {
						t.Errorf("%s, %d bytes: %+v", c.Name, s.Bytes, s)
					}
				}
			}
		})
	}
}

// After a crash the earlier samples of a library are kept. After wrong values they are
// dropped.
func TestLibraryFailsLater(t *testing.T) {
	for _, wrongValues := range []bool{false, true} {
		r, err := planOf(5, "vendor", "bad").Measure(t.Context(), changed("bad", func(call int, m *nccltests.Measured) error {
			switch {
			case call <= 6: // warm-up, first and second round
				return nil
			case wrongValues:
				m.Report.Rows[0].OutOfPlace.Wrong = 1
				return nil
			}
			return diag.Errorf(diag.Unexpected, "killed after 1m0s")
		}), &witness{})
		samples, code := 2, diag.Unexpected
		if wrongValues {
			samples, code = 0, diag.Gate
		}
		f, _ := r.Collectives[0].Sizes[0].Figure("bad")
		if len(f.Samples) != samples || r.Libraries[1].Failure.Round != 3 || diag.CodeOf(err) != code {
			t.Errorf("wrong values %v: %d samples, %+v, %v", wrongValues, len(f.Samples), r.Libraries[1].Failure, err)
		}
		if vendor, _ := r.Collectives[1].Sizes[0].Figure("vendor"); len(vendor.Samples) != 5 {
			t.Errorf("vendor has %d samples", len(vendor.Samples))
		}
	}
}

func TestFirstLibraryFails(t *testing.T) {
	r, err := planOf(3, "vendor", "ours").Measure(t.Context(), changed("vendor", func(int, *nccltests.Measured) error {
		return errors.New("no")
	}), &witness{})
	s := r.Collectives[0].Sizes[0]
	if err == nil || len(s.Figures) != 1 || s.Figures[0].Library != "ours" || len(s.Ratios) != 0 {
		t.Errorf("%v, %+v", err, s)
	}
}

// nccl-tests reports sizes too small to share as 0 bytes.
func TestSizesTooSmall(t *testing.T) {
	r, err := planOf(1, "a").Measure(t.Context(), changed("a", func(_ int, m *nccltests.Measured) error {
		m.Report.Rows[0] = nccltests.Row{OutOfPlace: nccltests.Timing{Measured: true}}
		return nil
	}), &witness{})
	if err != nil || len(r.Collectives[0].Sizes) != 2 {
		t.Errorf("%v, %+v", err, r.Collectives[0].Sizes)
	}
}

// After a cancellation the result has the samples so far, and no library has a failure.
func TestCancelled(t *testing.T) {
	for _, during := range []bool{false, true} {
		ctx, cancel := context.WithCancelCause(t.Context())
		calls := 0
		w := &witness{}
		r, err := planOf(3, "vendor", "ours").Measure(ctx, func(_ context.Context, s nccltests.Sweep) (nccltests.Measured, error) {
			if calls++; calls == 9 { // first sweep of round 2
				cancel(errors.New("the time is over"))
				if during {
					return nccltests.Measured{}, errors.New("signal: killed")
				}
			}
			return good(s), nil
		}, w)
		want, samples := "the time is over, after all_reduce of vendor in round 2", 2
		if during {
			want, samples = "the time is over, during all_reduce of vendor in round 2", 1
		}
		f, _ := r.Collectives[0].Sizes[0].Figure("vendor")
		if err != nil || calls != 9 || r.Stopped != want || len(f.Samples) != samples || r.Libraries[0].Failure != nil {
			t.Errorf("%v after %d calls, stopped %q, %d samples", err, calls, r.Stopped, len(f.Samples))
		}
		if len(w.ended) != 9 || (w.ended[8] != nil) != during {
			t.Errorf("ended %v", w.ended)
		}
	}
}

func TestNothingMeasured(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := planOf(1, "a").Measure(ctx, func(ctx context.Context, _ nccltests.Sweep) (nccltests.Measured, error) {
		return nccltests.Measured{}, ctx.Err()
	}, &witness{})
	if err == nil || !strings.HasPrefix(err.Error(), "no measurement: context canceled, during all_reduce of a") || r.Stopped == "" {
		t.Errorf("%v, %+v", err, r)
	}
	if _, err := (Plan{}).Measure(ctx, nil, nil); diag.CodeOf(err) != diag.Usage {
		t.Errorf("an empty plan: %v", err)
	}
}
