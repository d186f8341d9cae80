package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// TestFull runs cells too slow for every change: make test-full. They fetch 8 GB.
func TestFull(t *testing.T) {
	if os.Getenv("BUILDER_E2E") != "full" {
		t.Skip("run make test-full")
	}
	b := newTool(t)
	for _, c := range []struct {
		name string
		args []string
	}{
		{"Horovod for another AMD GPU", []string{"horovod", "--rocm", "5.7", "--arch", "gfx1100"}},
		{"Horovod for CUDA and PyTorch, twice", []string{"horovod", "--cuda", "12.4", "--torch", "2.6.0", "--rebuild"}},
		{"NCCL for CUDA 12 with verbs, one function", []string{"nccl", "--version", "2.29.7", "--cuda", "12", "--arch", "sm_90", "--functions", "allreduce-sum-f32", "--rdma", "verbs"}},
		{"NCCL with dlopen, one function, twice", []string{"nccl", "--version", "2.29.7", "--functions", "allreduce-sum-f32", "--rebuild"}},
		{"NCCL for three architectures, one function, twice", []string{"nccl", "--version", "2.29.7", "--functions", "allreduce-sum-f32", "--arch", "sm_80+sm_90+sm_100", "--rebuild"}},
		{"Horovod for ROCm 6.4 with the whole RCCL, twice", []string{"horovod", "--rocm", "6.4", "--rebuild"}},
		{"NCCL with all functions, twice", []string{"nccl", "--version", "2.29.7", "--rdma", "verbs", "--rebuild"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			own := *b
			own.t = t
			want := own.plannedGates(c.args)
			own.want(0, slices.Concat([]string{"run"}, c.args, []string{"--locked"}, ofClones(c.args))...)
			cell := own.runJSON("out").Cells[0]
			var got []string
			for _, v := range cell.Verdicts {
				got = append(got, v.Gate)
			}
			check.That(t, cell.Status == "pass" && slices.Equal(got, want), "%s, gates %v, planned were %v", cell.Status, got, want)
		})
	}
	for _, c := range []chapter{
		{"the main job, then again on one processor", oneProcessor},
		{"with a CPU TensorFlow, and without any patch", cpuTensorFlow},
		{"Ray with an edit without effect", rayWithTheSetEdit},
		{"NCCL without the patch for verbs", ncclUnlinked},
		{"Horovod for ROCm 6.1 on an image of a registry in AMD's layout", onAMDsLayout},
	} {
		t.Run(c.name, func(t *testing.T) {
			own := *b
			own.t = t
			c.tell(&own)
		})
	}
}

// ofClones returns the flag for the RCCL of ROCm 6.4, which only GitHub has, on a host that
// cannot reach it: BUILDER_E2E_RCCL names a clone.
func ofClones(args []string) []string {
	if dir := os.Getenv("BUILDER_E2E_RCCL"); dir != "" && slices.Contains(args, "6.4") {
		return []string{"--set", "source.rccl=" + dir}
	}
	return nil
}

// oneProcessor builds the main wheel, and again in a home with an engine on one
// processor.
func oneProcessor(b *tool) {
	b.want(0, "run", "horovod", "--rocm", "5.7", "--locked")
	own := *b
	own.home = filepath.Join(b.t.TempDir(), "home")
	own.copiesEngine()
	own.path = filepath.Join(b.t.TempDir(), "builder")
	own.stopsEngine()
	script := "#!/bin/sh\nexec taskset -c 0 " + b.path + ` "$@"` + "\n"
	must.Succeed(b.t, os.WriteFile(own.path, []byte(script), 0o755))
	dir := filepath.Join("out", b.runJSON("out").Cells[0].ID)
	r := own.want(0, "verify", dir, "--rebuild", "--trust", filepath.Join(b.home, "key.pem.pub"))
	contains(b.t, r.stdout, "2 files are equal in a second build")
}

// plannedGates returns the gates that plan lists for a cell, with the gate of
// --rebuild.
func (b *tool) plannedGates(args []string) []string {
	b.t.Helper()
	var rebuilt []string
	if i := slices.Index(args, "--rebuild"); i >= 0 {
		args, rebuilt = args[:i], []string{"reproducible"}
	}
	var plan struct{ Cells []struct{ Gates []string } }
	err := json.Unmarshal([]byte(b.want(0, append(append([]string{"plan"}, args...), "--json")...).stdout), &plan)
	must.Hold(b.t, err == nil && len(plan.Cells) == 1, "the plan of %v: %v", args, err)
	return append(plan.Cells[0].Gates, rebuilt...)
}
