package gate

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"builder/internal/gates/verdict"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// groups returns the results of a correct grouped_allreduce.
func (t trainTask) groups() []groupedResult {
	var all []groupedResult
	for group, g := range t[0].Grouped {
		r := groupedResult{Type: g.Type, One: t.rightOf(group, 0), Shapes: slices.Clone(g.Shapes)}
		for i := range g.Values {
			r.Types, r.Values = append(r.Types, g.Type), append(r.Values, t.rightOf(group, i))
		}
		all = append(all, r)
	}
	return all
}

// summed returns the weights if gradients are summed instead of averaged: both batches
// weigh twice as much.
func (t trainTask) summed() []float64 {
	start := t[0].Start
	w := weights{slices.Clone(start.Matrix), slices.Clone(start.Bias), slices.Clone(start.Scale)}
	for step, b := range t[0].Batches {
		other := t[1].Batches[step]
		joined := batch{X: slices.Concat(b.X, other.X), Y: slices.Concat(b.Y, other.Y)}
		w.descend(joined, 2*learningRate)
	}
	return slices.Concat(w.Matrix, w.Bias, w.Scale)
}

const (
	frameworkROCm = `{"platforms": ["rocm"], "loaded": {"rocm": ["libamdhip64.so.5.7.31921", "librccl.so.1.0"], "cuda": []}, "version": "2.13.0.570", "built": "2.13.0.570"}`
	frameworkCUDA = `{"platforms": ["cuda"], "loaded": {"rocm": [], "cuda": ["libcudart.so.12.4.127", "libnccl.so.2"]}, "version": "2.6.0+cu124", "built": "2.6.0+cu124"}`
)

// badTraining lists wheels with a working import and allreduce, but wrong training.
func badTraining() []bad {
	const trainsWrongly = "would train wrongly or stop"
	row := func(what, says string, change func(*trainReport)) bad {
		return refused(what, horovodROCm, func(s *specimen) { s.box.training = change }, "train-step", says, trainsWrongly)
	}
	ending := func(what string, change func(*trainReport), end func(*ranksEnd), says string) bad {
		b := row(what, says, nil)
		b.change = func(s *specimen) { s.box.training, s.box.end = change, inTraining(end) }
		return b
	}
	trained := func(r *trainReport) bool {
		return len(r.Weights) == len(r.task.trained(0)) && !strings.HasSuffix(r.Case, "-alone")
	}
	torch := func(b bad, change func(*trainReport)) bad {
		b.of = horovodCUDA
		b.change = func(s *specimen) { s.box.training = change }
		return b
	}
	unreduced := func(r *trainReport) {
		if trained(r) {
			r.Weights = r.task.trained(r.Rank)
		}
	}
	untilGroups := func(r *trainReport) {
		if strings.HasPrefix(r.Case, "optimizer") {
			r.Case = ""
		}
	}
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
		row("a grouped_allreduce with floats as averages of integers", "Average of uint8: tensor 0 is [2.5] of type float32 and shape [1], expected [", func(r *trainReport) {
			if r.Grouped != nil {
				r.Grouped[4].Types, r.Grouped[4].Values = []string{"float32", "float32", "float32"}, [][]float64{{2.5}, {6}, {5.5, 11, 17, 22}}
			}
		}),
		row("a grouped_allreduce with scalars for vectors", "of type float32 and shape [], expected [", func(r *trainReport) {
			if r.Grouped != nil {
				r.Grouped[0].Shapes[0] = nil
			}
		}),
		row("an allreduce with floats as averages of integers", "Average of int32: allreduce of one tensor returns [2.5] of type float64, expected [", func(r *trainReport) {
			if r.Grouped != nil {
				r.Grouped[2].Type, r.Grouped[2].One = "float64", []float64{2.5}
			}
		}),
		row("sparse gradients in a group: the sum in place of the average", "sparse-in-a-group, rank 0: its weights are [15 1 2], expected [", func(r *trainReport) {
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
				r.Weights = r.task.summed()
			}
		}),
		row("an optimizer that reduces nothing", "optimizer, rank 1: its weights are those of its own batch alone", func(r *trainReport) {
			if strings.HasPrefix(r.Case, "optimizer") {
				unreduced(r)
			}
		}),
		torch(row("an optimizer for PyTorch that reduces nothing", "optimizer, rank 0: its weights are those of its own batch alone", nil), unreduced),
		torch(row("an optimizer that reduces its first group of parameters alone", "optimizer-of-two-groups, rank 0: its weights are [", nil), func(r *trainReport) {
			if r.Case == "optimizer-of-two-groups" {
				r.Weights[4] += 0.01
			}
		}),
		torch(row("the state of an optimizer that stays on its rank", "optimizer-state, rank 1: its weights are [", nil), func(r *trainReport) {
			if r.Case == "optimizer-state" && r.Rank == 1 {
				r.Weights[0]++
			}
		}),
		row("an optimizer that forgets accumulated gradients", "optimizer-accumulates, rank 0: its weights are [", func(r *trainReport) {
			if r.Case == "optimizer-accumulates" {
				r.Weights[0] += 0.01
			}
		}),
		row("an optimizer that ignores its process set", "optimizer-alone, rank 0: its weights are those of the joined batch", func(r *trainReport) {
			if r.Case == "optimizer-alone" {
				r.Weights = r.task.trained(0, 1)
			}
		}),
		row("gradients from the wrong rank", "tape, rank 0: its weights are those of the other rank's batch alone", func(r *trainReport) {
			if r.Case == "tape" {
				r.Weights = r.task.trained(1 - r.Rank)
			}
		}),
		row("two ranks, each training in a ring of its own", "tape, rank 0: it sees 1 ranks", func(r *trainReport) { r.Size = 1 }),
		row("missing weights", "off by +Inf", func(r *trainReport) { r.Weights = nil }),
		ending("ranks that wait for each other until the time limit", untilGroups, func(e *ranksEnd) {
			for _, r := range e.Ranks {
				r.End, r.Exit = false, at(1)
			}
			e.Log = "Timeout (0:03:00)!\nThread 0x1 (most recent call first):\n"
		}, "no report of optimizer of rank 0; rank 0 ended before its end: exit 1"),
		ending("ranks that crash at their end", nil, func(e *ranksEnd) { e.Ranks[0].Exit, e.Log = at(139), "Segmentation fault\n" }, "rank 0 came to its end and then ended with exit 139: Segmentation fault"),
		ending("a rank without some cases", untilGroups, nil, "no report of optimizer of rank 0"),
		ending("a rank that reports a case twice", nil, func(e *ranksEnd) {
			e.Ranks[1].Lines = append(e.Ranks[1].Lines, e.Ranks[1].Lines[len(e.Ranks[1].Lines)-1])
		}, "rank 1 reported optimizer-alone 2 times"),
	}
}

// inTraining changes the end of the ranks that train.
func inTraining(change func(*ranksEnd)) func(launch, *ranksEnd) {
	return func(l launch, e *ranksEnd) {
		if change != nil && l.Program[0] == "train.py" {
			change(e)
		}
	}
}

// badPlatforms lists wheels installed with the framework of another platform.
func badPlatforms() []bad {
	const otherVendor = "the framework is of the other vendor"
	row := func(what, output string, exit int, says string) bad {
		return refused(what, horovodROCm, func(s *specimen) { s.box.answers["platform"] = Result{Exit: exit, Output: output} },
			"platform", says, otherVendor)
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
	for range 1000 {
		task := newTrainTask("horovod.tensorflow", random(nil, "training"))
		right := task.trained(0, 1)
		for what, wrong := range map[string][]float64{
			"rank 0 alone": task.trained(0), "rank 1 alone": task.trained(1), "summed": task.summed(),
			"no step": slices.Concat(task[0].Start.Matrix, task[0].Start.Bias, task[0].Start.Scale),
		} {
			off := distance(wrong, right)
			check.That(t, off >= 100*trainTolerance, "%s is %g from what is right", what, off)
		}
	}
}

// A step goes against the gradient of the loss, which this test measures by small changes
// of each weight. The weights of a rank are compared with nothing else.
func TestTrainingFollowsTheGradient(t *testing.T) {
	loss := func(w []float64, b batch) (sum float64) {
		for i, x := range b.X {
			for j, y := range b.Y[i] {
				off := w[6]*(x[0]*w[j]+x[1]*w[2+j]+w[4+j]) - y
				sum += off * off
			}
		}
		return sum / float64(2*len(b.X))
	}
	for range 20 {
		task := newTrainTask("horovod.torch", random(nil, "training"))
		task[0].Batches = task[0].Batches[:1]
		start := slices.Concat(task[0].Start.Matrix, task[0].Start.Bias, task[0].Start.Scale)
		want := slices.Clone(start)
		for i := range want {
			const step = 1e-5
			more, less := slices.Clone(start), slices.Clone(start)
			more[i] += step
			less[i] -= step
			b := task[0].Batches[0]
			want[i] -= learningRate * (loss(more, b) - loss(less, b)) / (2 * step)
		}
		off := distance(task.trained(0), want)
		check.That(t, off < trainTolerance/100, "a step is %g from the measured gradient", off)
	}
}

// Every promised controller is checked, and the failure of one hides no other.
func TestEveryControllerTrains(t *testing.T) {
	s := horovodROCm()
	s.expect.Gates["check-build"] = buildSettings{Controllers: []string{"MPI", "Gloo"}, Operations: []string{"NCCL"}}
	subject := s.subject(t)
	box := &recorder{box: s.box}
	subject.Box = box
	v := trainStep.Check(t.Context(), subject)
	launches := box.launches(t, 0)
	check.That(t, v.Status == verdict.Pass && len(box.asked) == 1 && len(launches) == 2 && launches[0].Launcher[0] == "mpirun" && launches[1].Meet,
		"%+v, %+v", v, box.asked)
	s.box.training = func(r *trainReport) { r.Error = "RuntimeError: no" }
	subject.Box = s.box
	judged(t, trainStep.Check(t.Context(), subject), verdict.Fail, "; gloo: grouped-allreduce, rank 0: RuntimeError: no")
}

// recorder is a box that records the commands to another.
type recorder struct {
	box   Box
	asked []Command
}

func (r *recorder) Run(ctx context.Context, c Command) (Result, error) {
	r.asked = append(r.asked, c)
	return r.box.Run(ctx, c)
}

// launches returns the launches of a command that starts ranks.
func (r *recorder) launches(t *testing.T, n int) []launch {
	t.Helper()
	var job rankJob
	must.Succeed(t, json.Unmarshal([]byte(r.asked[n].Stdin), &job))
	return job.Launches
}

// launch returns the only launch of a command.
func (r *recorder) launch(t *testing.T, n int) launch {
	t.Helper()
	all := r.launches(t, n)
	must.Hold(t, len(all) == 1, "%+v", all)
	return all[0]
}
