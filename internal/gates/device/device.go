// Package device runs NCCL or RCCL on the GPUs of this host with the programs of
// nccl-tests and judges their output. It checks the results, the transport between the
// GPUs, and the speed in comparison with the library it replaces. It needs no wheel,
// container or network. Package gate selects the artifacts; package nccltests runs the
// programs and parses their output.
package device

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"builder/internal/gates/verdict"
	"builder/internal/machine/gpu"
	"builder/internal/machine/guest"
	"builder/internal/machine/nccltests"
	"builder/internal/plan/recipe"
)

// A Setup holds the inputs of the checks: the host, the programs of nccl-tests, and the
// artifact's library as a file.
type Setup struct {
	// Sweep runs one program of nccl-tests over a range of sizes, as [nccltests.Run]
	// does.
	Sweep    func(context.Context, nccltests.Sweep) (nccltests.Measured, error)
	Host     gpu.Host
	Fault    error       // error of the detection of GPUs
	GPUs     int         // number of requested GPUs
	Launcher []string    // as in [nccltests.Sweep]: the ranks run on any hosts; empty for this one
	Guest    guest.Guest // runs the programs, or the launcher
	Programs string      // directory with all_reduce_perf, or ""
	Library  string      // directory of the artifact's library
	// Against is the directory of the library to compare with, or "". Baseline is its
	// name.
	Against, Baseline string
	Transport         Transport
	MaxBytes          int64
	Env               map[string]string
	Timeout           time.Duration // of one sweep
	Log               io.Writer     // receives the output of the programs; may be nil
}

// minBytes is the smallest size of a sweep.
const minBytes = 8

// sweep returns the sweep of a collective with the library in a directory.
func (d *Setup) sweep(collective, library string, from, to int64) nccltests.Sweep {
	return nccltests.Sweep{
		Program: filepath.Join(d.Programs, collective+"_perf"), Library: library, GPUs: d.GPUs, Launcher: d.Launcher,
		Guest: d.Guest, Network: d.Network(),
		MinBytes: min(from, to), MaxBytes: to, Factor: 2,
		Env: d.Env, Timeout: d.Timeout,
	}
}

// Network reports whether the programs use the network of this host: RDMA does not reach
// a loopback.
func (d *Setup) Network() bool { return d.Transport == IB || d.Transport == GDRDMA }

// A Check judges the promises of an artifact on some GPUs at least.
type Check struct {
	gpus  int
	judge func(context.Context, *Setup, recipe.Expect) verdict.Verdict
}

// Run runs the check. The verdict tells how far the artifact was from the user's files,
// if it was not isolated.
func (c Check) Run(ctx context.Context, d *Setup, e recipe.Expect) verdict.Verdict {
	if v, lacks := d.lacks(c.gpus); lacks {
		return v
	}
	v := c.judge(ctx, d, e)
	if weaker := d.Guest.Weaker(); weaker != "" && v.Status != verdict.NotMeasured {
		v.Evidence += "; " + weaker
	}
	return v
}

// run runs a sweep and logs its output.
func (d *Setup) run(ctx context.Context, sweep nccltests.Sweep) (nccltests.Measured, error) {
	m, err := d.Sweep(ctx, sweep)
	if d.Log != nil {
		fmt.Fprintf(d.Log, "$ %s, %d GPUs, %s\n%s%s", filepath.Base(sweep.Program), sweep.GPUs, sweep.Library, m.Output, m.Log)
	}
	return m, err
}

// Short returns a verdict if the host lacks the requested GPUs.
func (d *Setup) Short() (verdict.Verdict, bool) {
	switch {
	case len(d.Launcher) > 0: // the launcher knows its hosts
	case d.Fault != nil:
		return verdict.Unmeasured("the GPUs of this host are unknown: %v", d.Fault).
			Because("run it on a host with a GPU driver, where nvidia-smi, amd-smi or rocm-smi works"), true
	case len(d.Host.GPUs) < d.GPUs || d.GPUs < 1:
		return verdict.Unmeasured("%d GPUs requested, this host has %d", d.GPUs, len(d.Host.GPUs)).
			Because("request fewer with --gpus, or run it on a larger host"), true
	}
	return verdict.Verdict{}, false
}

// Few returns a verdict if fewer GPUs are requested than needed, or the host lacks some.
func (d *Setup) Few(needed int) (verdict.Verdict, bool) {
	if d == nil {
		return verdict.Unmeasured("no GPU requested").
			Because("run it on a host with GPUs: builder gate PATH --gpus N, with --python PYTHON for a wheel with a framework, else with --programs DIR"), true
	}
	if v, short := d.Short(); short {
		return v, true
	}
	if d.GPUs < needed {
		return verdict.Unmeasured("%d GPU requested, at least %d needed for traffic between GPUs", d.GPUs, needed).
			Because("run it with --gpus %d or more", needed), true
	}
	return verdict.Verdict{}, false
}

// lacks returns a verdict if a check cannot run. Its remedy names the missing input.
func (d *Setup) lacks(needed int) (verdict.Verdict, bool) {
	if v, few := d.Few(needed); few {
		return v, true
	}
	switch {
	case d.Library == "":
		return verdict.Unmeasured("the artifact holds neither libnccl.so.2 nor librccl.so.1").
			Because("name the library file as library in the recipe's expect"), true
	case d.Programs == "":
		return verdict.Unmeasured("the programs for the measurement are missing").
			Because("name them with --programs: a directory with all_reduce_perf, or a wheel of nccl-tests"), true
	}
	return verdict.Verdict{}, false
}

// failedRun turns the error of a sweep into a verdict. An error of the library is a
// failure. An error before it ran is not measured.
func failedRun(collective string, err error) verdict.Verdict {
	switch {
	case errors.Is(err, nccltests.ErrNotStarted):
		return verdict.Unmeasured("%s: %v", collective, err).
			Because("do what the message says; for a missing library add its directory to LD_LIBRARY_PATH, and take --programs built for this host's libc")
	case errors.Is(err, nccltests.ErrTimeout):
		return verdict.Failed("%s hangs: %v", collective, err).
			Because("the library makes no progress on these GPUs: read its last lines; to rule out the links between the GPUs, try --set-env NCCL_P2P_DISABLE=1; for more time, raise --time-limit")
	case errors.Is(err, nccltests.ErrFailed):
		return verdict.Failed("%s: %v", collective, err)
	}
	return verdict.Unmeasured("%s: %v", collective, err)
}

// SizeText formats a number of bytes exactly, in the largest unit that divides it.
// Verdicts compare sizes, so they must not be rounded.
func SizeText(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB"}
	for ; n != 0 && n%1024 == 0 && len(units) > 1; n /= 1024 {
		units = units[1:]
	}
	return fmt.Sprintf("%d %s", n, units[0])
}
