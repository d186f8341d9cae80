package e2e

import (
	"os"
	"testing"
)

// TestFull runs cells that fetch and build for longer than every change can
// wait for: make test-full. Its inputs are 8 GB.
func TestFull(t *testing.T) {
	if os.Getenv("BUILDER_E2E") != "full" {
		t.Skip("run make test-full")
	}
	b := newTool(t)
	for _, c := range []struct {
		name  string
		gates int
		args  []string
	}{
		{"Horovod for CUDA and PyTorch", 9, []string{"horovod", "--cuda", "12.4", "--torch", "2.6.0"}},
		{"NCCL for CUDA 12.4 with verbs, one function", 11, []string{"nccl", "--cuda", "12.4", "--functions", "allreduce-sum-f32", "--rdma", "verbs"}},
		{"NCCL with dlopen, one function, twice", 12, []string{"nccl", "--cuda", "13.0", "--functions", "allreduce-sum-f32", "--rdma", "dlopen", "--rebuild"}},
		{"NCCL whole, twice", 12, []string{"nccl", "--cuda", "13.0", "--rdma", "verbs", "--rebuild"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			own := *b
			own.t = t
			own.want(0, append(append([]string{"run"}, c.args...), "--locked")...)
			cell := own.runJSON("out").Cells[0]
			if cell.Status != "pass" || len(cell.Verdicts) != c.gates {
				t.Errorf("got %+v", cell)
			}
		})
	}
}
