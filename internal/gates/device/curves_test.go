package device_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"builder/internal/gates/device"
	"builder/internal/gates/gate"
	"builder/internal/gates/verdict"
	benchmark "builder/internal/machine/bench"
	"builder/internal/machine/curve"
	"builder/internal/machine/nccltests"
)

// recorded answers every sweep with output recorded on two H200.
func recorded(t *testing.T, name string) func(nccltests.Sweep) (nccltests.Measured, error) {
	t.Helper()
	text, err := os.ReadFile("../../machine/nccltests/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return func(nccltests.Sweep) (nccltests.Measured, error) {
		r, err := nccltests.Parse(strings.NewReader(string(text)))
		return nccltests.Measured{Report: r, Log: version2297}, err
	}
}

// rounds answers the sweeps of two libraries with the rounds of a comparison recorded
// on two H200. docs/reports has all its figures.
func rounds(t *testing.T, ours, theirs string) func(nccltests.Sweep) (nccltests.Measured, error) {
	t.Helper()
	content, err := os.ReadFile("../../../docs/reports/nccl-2.28.9-2.29.7-h200x2.json")
	if err != nil {
		t.Fatal(err)
	}
	result, err := benchmark.Decode(content)
	if err != nil {
		t.Fatal(err)
	}
	c := result.Collectives[slices.IndexFunc(result.Collectives, func(c benchmark.Collective) bool { return c.Name == "all_reduce" })]
	labels, done := map[string]string{"/ours": ours, "/theirs": theirs}, map[string]int{}
	return func(s nccltests.Sweep) (nccltests.Measured, error) {
		m := nccltests.Measured{Report: nccltests.Report{Library: 22809, Devices: h200}}
		for _, size := range c.Sizes {
			if f, ok := size.Figure(labels[s.Library]); ok && size.Bytes >= s.MinBytes && size.Bytes <= s.MaxBytes {
				sample := f.Samples[done[s.Library]%len(f.Samples)]
				half := nccltests.Timing{Measured: true, Checked: true, Microseconds: sample.Time, BusBW: sample.BusBW}
				m.Report.Rows = append(m.Report.Rows, nccltests.Row{Bytes: size.Bytes, Type: "float", OutOfPlace: half})
			}
		}
		done[s.Library]++
		return m, nil
	}
}

// brief describes each curve in a line: library, number of sizes, first and last size.
func brief(all curve.Curves) []string {
	var lines []string
	for _, c := range all {
		first, last := c.Points[0], c.Points[len(c.Points)-1]
		lines = append(lines, fmt.Sprintf("%s of %s, baseline %v, %s, rounds %d: %d sizes, %.2f at %s to %.2f at %s",
			c.Collective, c.Library, c.Baseline, c.Place, c.Rounds, len(c.Points), first.BusBW, device.SizeText(first.Bytes), last.BusBW, device.SizeText(last.Bytes)))
	}
	return lines
}

// The GPU gates return their measurements as data.
func TestMeasured(t *testing.T) {
	for name, c := range map[string]struct {
		gate     string
		measured func(nccltests.Sweep) (nccltests.Measured, error)
		edit     func(*gate.Subject)
		want     []string
	}{
		"both halves": {
			gate: "nccl-tests", measured: recorded(t, "v2.17.6-all_reduce.txt"),
			want: []string{
				"all_reduce of NCCL 2.29.7+cuda13.0, baseline false, out-of-place, rounds 1: 3 sizes, 94.93 at 1 MiB to 287.50 at 256 MiB",
				"all_reduce of NCCL 2.29.7+cuda13.0, baseline false, in-place, rounds 1: 3 sizes, 96.87 at 1 MiB to 293.37 at 256 MiB",
			},
		},
		"sizes without bandwidth": {
			gate: "nccl-tests", measured: recorded(t, "v2.16.9-all_gather.txt"),
			want: []string{
				"all_reduce of NCCL 2.29.7+cuda13.0, baseline false, out-of-place, rounds 1: 2 sizes, 0.00 at 32 B to 0.00 at 64 B",
				"all_reduce of NCCL 2.29.7+cuda13.0, baseline false, in-place, rounds 1: 2 sizes, 0.00 at 32 B to 0.00 at 64 B",
			},
		},
		"medians side by side": {
			gate: "busbw", measured: rounds(t, "ours2289", "vendor"), edit: func(s *gate.Subject) { s.Device.MaxBytes, s.Device.Rounds = 16<<20, 9 },
			want: []string{
				"all_reduce of vendor, baseline true, out-of-place, rounds 9: 5 sizes, 71.20 at 1 MiB to 210.98 at 16 MiB",
				"all_reduce of 2.28.9, baseline false, out-of-place, rounds 9: 5 sizes, 70.79 at 1 MiB to 211.81 at 16 MiB",
			},
		},
		"the program before the fault": {
			gate: "nccl-tests", edit: func(s *gate.Subject) { s.Expect.Collectives = []string{"all_reduce", "broadcast"} },
			measured: func(s nccltests.Sweep) (nccltests.Measured, error) {
				if strings.HasSuffix(s.Program, "broadcast_perf") {
					return nccltests.Measured{}, nccltests.ErrFailed
				}
				return recorded(t, "v2.17.6-all_reduce.txt")(s)
			},
			want: []string{
				"all_reduce of NCCL 2.29.7+cuda13.0, baseline false, out-of-place, rounds 1: 3 sizes, 94.93 at 1 MiB to 287.50 at 256 MiB",
				"all_reduce of NCCL 2.29.7+cuda13.0, baseline false, in-place, rounds 1: 3 sizes, 96.87 at 1 MiB to 293.37 at 256 MiB",
			},
		},
		"no figures": {gate: "transport", measured: right},
	} {
		s, _ := subject(c.measured, c.edit)
		v := named(t, c.gate).Check(t.Context(), s)
		if diff := cmp.Diff(c.want, brief(v.Measured)); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, v.Evidence, diff)
		}
	}
}

// A verdict must not hold figures its reader would refuse.
func TestFiguresThatNobodyCouldRead(t *testing.T) {
	s, _ := subject(but(func(m *nccltests.Measured) { m.Report.Rows[20].InPlace.BusBW = 2e9 }), nil)
	v := named(t, "nccl-tests").Check(t.Context(), s)
	if v.Measured != nil || v.Status != verdict.Fail || !strings.Contains(v.Evidence, "figures left out: ") {
		t.Errorf("%v: %s, %d curves", v.Status, v.Evidence, len(v.Measured))
	}
}
