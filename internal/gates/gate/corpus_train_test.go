package gate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"builder/internal/gates/verdict"
)

// training returns the output of two good ranks. change may edit a report, or omit it
// by clearing its case.
func training(module string, change func(*trainReport)) string {
	task := newTrainTask(module)
	var out strings.Builder
	for _, name := range trainCases[module] {
		for rank := range 2 {
			r := trainReport{Rank: rank, Size: 2, Case: name}
			if name == "grouped-allreduce" {
				r.Grouped = task.groups()
			} else {
				r.Weights = task.right(name, rank)
			}
			if change != nil {
				change(&r)
			}
			if r.Case == "" {
				continue
			}
			text, err := json.Marshal(r)
			if err != nil {
				panic(err) // unreachable: numbers and strings only
			}
			fmt.Fprintf(&out, "[1,%d]<stdout>: %s\n", rank, text)
		}
	}
	return out.String()
}

// groups returns the results of a correct grouped_allreduce.
func (t trainTask) groups() []groupedResult {
	var all []groupedResult
	for _, g := range t.Grouped {
		r := groupedResult{Type: g.Type, One: g.right(0), Shapes: slices.Clone(g.Shapes)}
		for i := range g.Values {
			r.Types, r.Values = append(r.Types, g.Type), append(r.Values, g.right(i))
		}
		all = append(all, r)
	}
	return all
}

// summed returns the weights if gradients are summed instead of averaged. With two
// ranks this doubles the rate.
func (t trainTask) summed() []float64 {
	t.Rate *= 2
	return t.trained(0, 1)
}

const (
	frameworkROCm = `{"platforms": ["rocm"], "loaded": {"rocm": ["libamdhip64.so.5.7.31921", "librccl.so.1.0"], "cuda": []}, "version": "2.13.0.570", "built": "2.13.0.570"}`
	frameworkCUDA = `{"platforms": ["cuda"], "loaded": {"rocm": [], "cuda": ["libcudart.so.12.4.127", "libnccl.so.2"]}, "version": "2.6.0+cu124", "built": "2.6.0+cu124"}`
)

// badTraining lists wheels with a working import and allreduce, but wrong training.
func badTraining() []bad {
	const trainsWrongly = "would train wrongly or stop"
	task := newTrainTask("horovod.tensorflow")
	row := func(what, says string, change func(*trainReport)) bad {
		return bad{
			what: what, of: horovodROCm, change: func(s *specimen) {
				s.box.answers["train-step"] = Result{Output: training("horovod.tensorflow", change)}
			},
			gate: "train-step", says: says, do: trainsWrongly,
		}
	}
	printed := func(what, output string, exit int, blind bool, says, do string) bad {
		b := row(what, says, nil)
		b.change = func(s *specimen) { s.box.answers["train-step"] = Result{Exit: exit, Output: output} }
		b.blind, b.do = blind, do
		return b
	}
	trained := func(r *trainReport) bool {
		return len(r.Weights) == len(task.trained(0)) && !strings.HasSuffix(r.Case, "-alone")
	}
	torch := func(b bad, change func(*trainReport)) bad {
		b.of = horovodCUDA
		b.change = func(s *specimen) { s.box.answers["train-step"] = Result{Output: training("horovod.torch", change)} }
		return b
	}
	unreduced := func(r *trainReport) {
		if trained(r) {
			r.Weights = task.trained(r.Rank)
		}
	}
	untilGroups := func(r *trainReport) {
		if strings.HasPrefix(r.Case, "optimizer") {
			r.Case = ""
		}
	}
	const lookAgain = "not-measured never counts as a pass"
	return []bad{
		row("upstream's Horovod for ROCm: grouped_allreduce adds to a list elementwise",
			"Incompatible shapes: [0] vs. [2,2]", func(r *trainReport) {
				if r.Case == "grouped-allreduce" {
					r.Grouped, r.Error = nil, "InvalidArgumentError: {{function_node __wrapped__AddV2_device_CPU:0}} Incompatible shapes: [0] vs. [2,2] [Op:AddV2] name: "
				}
			}),
		row("a grouped_allreduce that drops tensors of shape [1]", "Average of float32: 1 tensors returned for 3", func(r *trainReport) {
			for i := range r.Grouped {
				r.Grouped[i].Values = r.Grouped[i].Values[:1]
			}
		}),
		row("a grouped_allreduce with floats as averages of integers", "Average of uint8: tensor 0 is [2.5] of type float32 and shape [1], expected [2] of shape [1]", func(r *trainReport) {
			if r.Grouped != nil {
				r.Grouped[4].Types, r.Grouped[4].Values = []string{"float32", "float32", "float32"}, [][]float64{{2.5}, {6}, {5.5, 11, 17, 22}}
			}
		}),
		row("a grouped_allreduce with scalars for vectors", "tensor 0 is [2.5] of type float32 and shape [], expected [2.5] of shape [1]", func(r *trainReport) {
			if r.Grouped != nil {
				r.Grouped[0].Shapes[0] = nil
			}
		}),
		row("an allreduce with floats as averages of integers", "Average of int32: allreduce of one tensor returns [2.5] of type float64, expected [2]", func(r *trainReport) {
			if r.Grouped != nil {
				r.Grouped[2].Type, r.Grouped[2].One = "float64", []float64{2.5}
			}
		}),
		row("sparse gradients in a group: the sum in place of the average", "sparse-in-a-group, rank 0: its weights are [15 1 2], expected [15 0.5 1]", func(r *trainReport) {
			if r.Case == "sparse-in-a-group" {
				r.Weights = []float64{15, 1, 2}
			}
		}),
		// Recorded with Horovod 0.28.1 of upstream, TensorFlow 2.18.1 and Keras 3.15.1. Without
		// the patch every case after the broadcast of the weights ends this way.
		row("upstream's Horovod beside Keras 3, whose variables differ from TensorFlow's",
			"tape, rank 0: AttributeError:     AttributeError: 'SymbolicTensor' object has no attribute 'assign'", func(r *trainReport) {
				if r.Case != "grouped-allreduce" && r.Case != "sparse-in-a-group" {
					r.Weights, r.Error = nil, "AttributeError:     AttributeError: 'SymbolicTensor' object has no attribute 'assign'"
				}
			}),
		row("upstream's Horovod, with a dense and a sparse gradient in a group",
			"sparse-in-a-group, rank 0: AttributeError: 'tensorflow.python.framework.ops.EagerTensor' object has no attribute 'dense_shape'", func(r *trainReport) {
				if r.Case == "sparse-in-a-group" {
					r.Weights, r.Error = nil, "AttributeError: 'tensorflow.python.framework.ops.EagerTensor' object has no attribute 'dense_shape'"
				}
			}),
		row("gradients divided by a wrong number", "tape, rank 0: its weights are [", func(r *trainReport) {
			if trained(r) {
				r.Weights = task.summed()
			}
		}),
		row("an optimizer that reduces nothing", "optimizer, rank 1: its weights are those of its own batch alone", func(r *trainReport) {
			if strings.HasPrefix(r.Case, "optimizer") {
				unreduced(r)
			}
		}),
		torch(row("an optimizer for PyTorch that reduces nothing", "optimizer, rank 0: its weights are those of its own batch alone", nil), unreduced),
		row("an optimizer that forgets accumulated gradients", "optimizer-accumulates, rank 0: its weights are [", func(r *trainReport) {
			if r.Case == "optimizer-accumulates" {
				r.Weights[0] += 0.01
			}
		}),
		row("an optimizer that ignores its process set", "optimizer-alone, rank 0: its weights are those of the joined batch", func(r *trainReport) {
			if r.Case == "optimizer-alone" {
				r.Weights = task.trained(0, 1)
			}
		}),
		row("gradients from the wrong rank", "tape, rank 0: its weights are those of the other rank's batch alone", func(r *trainReport) {
			if r.Case == "tape" {
				r.Weights = task.trained(1 - r.Rank)
			}
		}),
		row("two ranks, each training in a ring of its own", "tape, rank 0: it sees 1 ranks", func(r *trainReport) { r.Size = 1 }),
		row("missing weights", "off by +Inf", func(r *trainReport) { r.Weights = nil }),
		printed("ranks that wait for each other until the time limit", training("horovod.tensorflow", untilGroups)+"Timeout (0:03:00)!\nThread 0x1 (most recent call first):\n", 1, false,
			"horovodrun: exit 1 before the end of optimizer of rank 0", trainsWrongly),
		printed("ranks that crash at their end", training("horovod.tensorflow", nil)+"Segmentation fault\n", 139, false, "exit 139 after all cases: Segmentation fault", trainsWrongly),
		printed("a training script without output", "", 0, true, "no report of grouped-allreduce of rank 0", lookAgain),
		printed("a rank without some cases", training("horovod.tensorflow", untilGroups), 0, true, "no report of optimizer of rank 0 optimizer of rank 1", lookAgain),
	}
}

// badPlatforms lists wheels installed with the framework of another platform.
func badPlatforms() []bad {
	const otherVendor = "the framework is of the other vendor"
	row := func(what, output string, exit int, says string) bad {
		return bad{
			what: what, of: horovodROCm, change: func(s *specimen) { s.box.answers["platform"] = Result{Exit: exit, Output: output} },
			gate: "platform", says: says, do: otherVendor,
		}
	}
	blind := func(b bad) bad {
		b.blind, b.do = true, "not-measured never counts as a pass"
		return b
	}
	return []bad{
		row("Horovod for ROCm, built against TensorFlow for CUDA and tested beside it", `{"platforms": ["cuda"], "loaded": {"rocm": [], "cuda": []}, "version": "2.13.0", "built": "2.13.0"}`, 0,
			"the framework 2.13.0 reports platform cuda, expected rocm"),
		row("Horovod for ROCm, built against TensorFlow for CUDA and tested beside TensorFlow for ROCm", strings.Replace(frameworkROCm, `"built": "2.13.0.570"`, `"built": "2.13.0"`, 1), 0,
			`the wheel was built against "2.13.0", and "2.13.0.570" is installed`),
		row("a framework for no GPU", strings.Replace(frameworkROCm, `["rocm"]`, `[]`, 1), 0, "reports platform none, expected rocm"),
		row("a framework for ROCm that loads CUDA", strings.Replace(frameworkROCm, `"cuda": []`, `"cuda": ["libcudart.so.12"]`, 1), 0, "its process loads libcudart.so.12 for cuda"),
		blind(row("a framework that cannot report its platform", "AttributeError: module 'tensorflow' has no attribute 'sysconfig'\n", 1, "exit 1: AttributeError")),
		blind(row("a framework that answers and crashes", frameworkROCm+"\nSegmentation fault\n", 139, "exit 139")),
		blind(row("a framework without a report of its platform", "{}\n", 0, "exit 0")),
	}
}

// Wrong results differ by far more than the tolerance. Otherwise the gate could not
// detect them.
func TestWrongTrainingIsFarOff(t *testing.T) {
	task := newTrainTask("horovod.tensorflow")
	right := task.trained(0, 1)
	for what, wrong := range map[string][]float64{
		"rank 0 alone": task.trained(0), "rank 1 alone": task.trained(1), "summed": task.summed(),
		"no step": slices.Concat(task.Start.Matrix, task.Start.Bias, task.Start.Scale),
	} {
		if off := distance(wrong, right); off < 1000*trainTolerance {
			t.Errorf("%s is %g from what is right", what, off)
		}
	}
}

// Every promised controller is checked, and the failure of one hides no other.
func TestEveryControllerTrains(t *testing.T) {
	box := &answers{result: Result{Output: training("horovod.tensorflow", nil)}}
	e := expect()
	e.Controllers = []string{"MPI", "Gloo"}
	v := trainStep.Check(t.Context(), Subject{Expect: e, Box: box})
	if v.Status != verdict.Pass || len(box.asked) != 2 || !slices.Contains(box.asked[0].Args, "--mpi") || !slices.Contains(box.asked[1].Args, "--gloo") {
		t.Errorf("%+v, %+v", v, box.asked)
	}
	box.result = Result{Output: training("horovod.tensorflow", func(r *trainReport) { r.Error = "RuntimeError: no" })}
	if v := trainStep.Check(t.Context(), Subject{Expect: e, Box: box}); v.Status != verdict.Fail || !strings.Contains(v.Evidence, "; gloo: grouped-allreduce, rank 0: RuntimeError: no") {
		t.Errorf("%+v", v)
	}
}
