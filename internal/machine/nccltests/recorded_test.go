package nccltests

import (
	"strings"
	"testing"

	"builder/test/kit/check"
)

// recorded completes lines of real rccl-tests runs to an output with one size. Only the
// line with the sizes is not recorded.
func recorded(program, version string, devices []string, between, foot string) string {
	head := "# nThread 1 nGpus 1 minBytes 8388608 maxBytes 8388608 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n#\n"
	columns := "#                                                              out-of-place                       in-place          \n" +
		"#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n" +
		"#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       \n"
	row := "     8388608       2097152     float     sum      -1    91.10   92.08  161.14      0    94.94   88.36  154.63      0"
	return program + head + version + "# Using devices\n" + strings.Join(devices, "\n") + "\n" + between + "#\n" + columns + row + "\n" + foot
}

// The lines are from public threads: one MI300X host with rccl-tests of 2025
// (crickett-hpe/hpc-ai-envs#30), MI300X with a driver that reports no name
// (ROCm/rccl#2078), two MI250X hosts (crickett-hpe/hpc-ai-envs#21), and rccl-tests
// 2.17.9 in its new repository (ROCm/rocm-systems#3415).
func TestRecordedLinesOfRCCL(t *testing.T) {
	const (
		foot = "# Errors with asterisks indicate errors that have exceeded the maximum threshold.\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 142.652 \n#\n"
		said = "RCCL version : 2.28.3-gfx1151-rccl:a188cf2\nHIP version  : 7.12.60430-713bdeef5b\nROCm version : 7.12.0.2-9999-713bdeef5b\n" +
			"Hostname     : stxh-4602-MAPLE\nLibrccl path : /home/projects/rccl/build/release/librccl.so.1\n"
	)
	starting, concluded := "# Collective test starting: all_reduce_perf\n", "# Collective test concluded: all_reduce_perf\n"
	for name, c := range map[string]struct {
		output  string
		library int
		device  Device
	}{
		"one host": {
			recorded("", "rccl-tests: Version develop:83d38d9\n", []string{"#  Rank  0 Group  0 Pid  37300 on   g100n126 device  0 [0000:05:00] AMD Instinct MI300X"}, "", foot),
			0,
			Device{Host: "g100n126", Name: "AMD Instinct MI300X", BusID: "0000:05:00.0"},
		},
		"no name": {
			recorded(starting, "rccl-tests: Version develop:5272cd1\n", []string{"#  Rank  0 Group  0 Pid 864817 on smc300x-ccs-aus-gpu611e device  0 [0000:05:00] "}, "", foot+concluded),
			0,
			Device{Host: "smc300x-ccs-aus-gpu611e", BusID: "0000:05:00.0"},
		},
		"two hosts": {
			recorded("", "rccl-tests: Version develop:448c4c7\n", []string{
				"#   Rank  0 Pid 590032 on pinoak0003 device  0 [0000:c1:00.0] AMD Instinct MI250X",
				"#   Rank  8 Pid 1018129 on pinoak0004 device  0 [0000:c1:00.0] AMD Instinct MI250X",
			}, "", foot),
			0,
			Device{Host: "pinoak0003", Name: "AMD Instinct MI250X", BusID: "0000:c1:00.0"},
		},
		"new home": {
			recorded("# rccl-tests version 2.17.9-users/speriaswamy-amd/gfx1151-rccl-tests-enablement:f220897c9b rccl-headers=22803 rccl-library=22803\n"+starting, "",
				[]string{"#  Rank  0 Group  0 Pid 135241 on stxh-4602-MAPLE device  0 [0000:c4:00] Radeon 8050S Graphics"}, said, foot+concluded),
			22803,
			Device{Host: "stxh-4602-MAPLE", Name: "Radeon 8050S Graphics", BusID: "0000:c4:00.0"},
		},
	} {
		r, err := Parse(c.output)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		check.That(t, r.Library == c.library && r.Devices[0] == c.device && len(r.Rows) == 1 && r.Rows[0].OutOfPlace.BusBW == 161.14 &&
			r.Rows[0].InPlace.BusBW == 154.63, "%s: got %+v", name, r)
	}
}
