package nccltests_test

import (
	"testing"

	"builder/internal/machine/nccltests"
	"builder/test/kit/check"
)

func TestUnchecked(t *testing.T) {
	checked, unchecked := nccltests.Timing{Checked: true}, nccltests.Timing{}
	for name, c := range map[string]struct {
		program string
		out, in nccltests.Timing
		want    bool
	}{
		"both":                {"all_reduce_perf", checked, checked, false},
		"not in place":        {"all_reduce_perf", checked, unchecked, true},
		"not out of place":    {"all_reduce_perf", unchecked, checked, true},
		"neither":             {"all_reduce_perf", unchecked, unchecked, true},
		"alltoall in place":   {"alltoall_perf", checked, unchecked, false},
		"sendrecv in place":   {"sendrecv_perf", checked, unchecked, false},
		"alltoall, unchecked": {"alltoall_perf", unchecked, unchecked, true},
	} {
		r := nccltests.Report{Program: c.program}
		check.Same(t, name, c.want, r.Unchecked(nccltests.Row{OutOfPlace: c.out, InPlace: c.in}))
	}
}
