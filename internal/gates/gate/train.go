package gate

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var trainStep = Gate{
	Name:   "train-step",
	Asks:   "after three optimizer steps, two ranks hold the weights of one process with the joined batch, and grouped_allreduce returns the correct values, shapes and types",
	Remedy: "a job with this wheel would train wrongly or stop: gradients are not reduced, are divided by the wrong number or are taken from the wrong ranks; for grouped_allreduce see docs/grouped-allreduce.md",
	Wants:  wantsTraining,
	Needs:  Container,
	check:  checkTraining,
}

func wantsTraining(e recipe.Expect) bool {
	return e.Launcher != "" && len(e.Import) > 0 && len(trainCases[e.Import[0]]) > 0
}

//go:embed scripts/train.py
var trainScript string

// trainCases lists the cases reported by each rank, in order, by module.
var trainCases = map[string][]string{
	"horovod.tensorflow": {
		"grouped-allreduce", "sparse-in-a-group", "tape", "tape-graph", "tape-groups", "tape-alone",
		"optimizer", "optimizer-groups", "optimizer-accumulates", "optimizer-alone",
	},
	"horovod.torch": {"grouped-allreduce", "optimizer", "optimizer-groups", "optimizer-accumulates", "optimizer-alone"},
}

// trainTolerance is the largest accepted difference of a weight from the result of one
// process. The weights are near 1 and computed in float32; a wrong factor changes them
// by 0.01 or more.
const trainTolerance = 1e-5

// A trainTask is the input of the script: data, different for each rank, without the
// results.
type trainTask struct {
	Start   weights         `json:"start"`
	Rate    float64         `json:"rate"`
	Batches [][]batch       `json:"batches"` // by rank and step
	Grouped []groupedTensor `json:"grouped"`
	Limit   int             `json:"limit"` // seconds until a rank gives up
	GPUs    bool            `json:"gpus"`  // each rank on a GPU of its own
	// Collectives asks for the report of the gate allreduce-2 first.
	Collectives bool `json:"collectives"`
}

// weights holds the weights of y = scale·(x·matrix + bias).
type weights struct {
	Matrix []float64 `json:"matrix"` // 2×2
	Bias   []float64 `json:"bias"`
	Scale  []float64 `json:"scale"` // of shape [1]: a faulty list of tensors loses it
}

type batch struct {
	X [][]float64 `json:"x"`
	Y [][]float64 `json:"y"`
}

// groupedTensor is one call of grouped_allreduce, with values by tensor and rank.
type groupedTensor struct {
	Op     string        `json:"op"`
	Type   string        `json:"type"`
	Shapes [][]int       `json:"shapes"`
	Values [][][]float64 `json:"values"`
}

// right returns the correct result of a tensor of the group on both ranks. Averages of
// integers are truncated, as in Horovod's C++ code.
func (g groupedTensor) right(tensor int) []float64 {
	var sums []float64
	for i, a := range g.Values[tensor][0] {
		sum := a + g.Values[tensor][1][i]
		if g.Op == "Average" {
			sum /= 2
		}
		if g.Type != "float32" {
			sum = math.Trunc(sum)
		}
		sums = append(sums, sum)
	}
	return sums
}

// newTrainTask returns the task for a module. Horovod for PyTorch reduces no bytes.
func newTrainTask(module string) trainTask {
	t := trainTask{
		Start: weights{Matrix: []float64{0.5, -0.3, 0.2, 0.8}, Bias: []float64{0.1, -0.2}, Scale: []float64{1.2}},
		Rate:  0.1, Limit: 900,
	}
	// Any numbers will do, as long as the ranks differ.
	for rank := range 2 {
		var steps []batch
		for step := range 3 {
			var b batch
			for row := range 4 {
				n := float64(12*rank + 4*step + row)
				b.X = append(b.X, []float64{math.Sin(n), math.Cos(2 * n)})
				b.Y = append(b.Y, []float64{math.Sin(3*n) + float64(rank), math.Cos(n) - float64(rank)})
			}
			steps = append(steps, b)
		}
		t.Batches = append(t.Batches, steps)
	}
	groups := [][2]string{{"Average", "float32"}, {"Sum", "float32"}, {"Average", "int32"}, {"Sum", "int32"}}
	if module != "horovod.torch" {
		groups = append(groups, [2]string{"Average", "uint8"})
	}
	for _, g := range groups {
		t.Grouped = append(t.Grouped, groupedTensor{
			Op: g[0], Type: g[1], Shapes: [][]int{{1}, {1}, {2, 2}},
			Values: [][][]float64{{{1}, {4}}, {{3}, {9}}, {{1, 2, 3, 4}, {10, 20, 31, 40}}},
		})
	}
	return t
}

// trained returns the weights after the steps of one process, with the joined batches
// of the given ranks.
func (t trainTask) trained(ranks ...int) []float64 {
	w := weights{slices.Clone(t.Start.Matrix), slices.Clone(t.Start.Bias), slices.Clone(t.Start.Scale)}
	for step := range t.Batches[0] {
		var joined batch
		for _, rank := range ranks {
			joined.X = append(joined.X, t.Batches[rank][step].X...)
			joined.Y = append(joined.Y, t.Batches[rank][step].Y...)
		}
		w.descend(joined, t.Rate)
	}
	return slices.Concat(w.Matrix, w.Bias, w.Scale)
}

// descend takes one step against the gradient of the mean squared error.
func (w *weights) descend(b batch, rate float64) {
	var matrix [4]float64
	var bias [2]float64
	var scale float64
	for i, x := range b.X {
		for j := range bias {
			z := x[0]*w.Matrix[j] + x[1]*w.Matrix[2+j] + w.Bias[j]
			d := 2 * (w.Scale[0]*z - b.Y[i][j]) / float64(2*len(b.X))
			scale += d * z
			d *= w.Scale[0]
			bias[j] += d
			matrix[j] += d * x[0]
			matrix[2+j] += d * x[1]
		}
	}
	for i := range matrix {
		w.Matrix[i] -= rate * matrix[i]
	}
	for j := range bias {
		w.Bias[j] -= rate * bias[j]
	}
	w.Scale[0] -= rate * scale
}

// right returns the correct weights of a rank in a case.
func (t trainTask) right(name string, rank int) []float64 {
	switch {
	case name == "sparse-in-a-group":
		return []float64{15, 0.5, 1} // the dense gradient and the two rows of the sparse one
	case strings.HasSuffix(name, "-alone"):
		return t.trained(rank)
	}
	return t.trained(0, 1)
}

// trainReport is the JSON line printed by each rank for each case.
type trainReport struct {
	Rank    int             `json:"rank"`
	Size    int             `json:"size"`
	Case    string          `json:"case"`
	Device  string          `json:"device"` // of the results
	Error   string          `json:"error"`
	Weights []float64       `json:"weights"`
	Grouped []groupedResult `json:"grouped"`
}

type groupedResult struct {
	Type   string      `json:"type"` // from an allreduce of the first tensor alone
	One    []float64   `json:"one"`
	Types  []string    `json:"types"`
	Shapes [][]int     `json:"shapes"`
	Values [][]float64 `json:"values"`
}

func checkTraining(ctx context.Context, s Subject) verdict.Verdict {
	return s.train(ctx, nil, false)
}

// controllers lists the promised controllers, that of the launcher first.
func (s Subject) controllers() []string {
	controllers := []string{s.Expect.Launcher}
	if slices.Contains(s.Expect.Controllers, "Gloo") && s.Expect.Launcher != "gloo" {
		controllers = append(controllers, "gloo")
	}
	return controllers
}

// train runs all cases with every controller, on GPUs or on the CPU.
func (s Subject) train(ctx context.Context, env map[string]string, gpus bool) verdict.Verdict {
	var verdicts []verdict.Verdict
	controllers := s.controllers()
	for _, controller := range controllers {
		verdicts = append(verdicts, s.trains(ctx, controller, env, gpus))
	}
	return joinVerdicts(controllers, verdicts)
}

// joinVerdicts joins the verdicts on the controllers. A failure counts more than a run
// that was not measured, and that more than a pass.
func joinVerdicts(controllers []string, verdicts []verdict.Verdict) verdict.Verdict {
	var problems, blind, seen []string
	remedy := ""
	for i, v := range verdicts {
		says := controllers[i] + ": " + v.Evidence
		switch v.Status {
		case verdict.Pass:
			seen = append(seen, says)
		case verdict.Fail:
			problems = append(problems, says)
		default:
			blind = append(blind, says)
		}
		remedy = cmp.Or(remedy, v.Remedy)
	}
	joined := verdict.Judge(slices.Concat(problems, blind), seen)
	if len(problems) == 0 && len(blind) > 0 {
		joined = verdict.Unmeasured("%s", strings.Join(blind, "; "))
	}
	joined.Remedy = remedy
	return joined
}

// ranksEnv adds to an environment what Open MPI needs to start ranks for root. A rank
// that waits for the other yields its processor: without that, two ranks take half as
// much time again.
func ranksEnv(env map[string]string) map[string]string {
	all := map[string]string{"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
	maps.Copy(all, env)
	return all
}

// trains runs all cases with one controller.
func (s Subject) trains(ctx context.Context, controller string, env map[string]string, gpus bool) verdict.Verdict {
	args, ok := launchers[controller]
	if !ok {
		return verdict.Unmeasured("unknown launcher %q", controller)
	}
	task := s.trainTask(controller, gpus)
	c, err := s.trainCommand(args, env, task)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	out, err := s.run(ctx, c)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	return judgeTraining(task, trainCases[s.Expect.Import[0]], out)
}

// trainTask returns the task for the ranks of a controller.
func (s Subject) trainTask(controller string, gpus bool) trainTask {
	task := newTrainTask(s.Expect.Import[0])
	task.GPUs = gpus
	task.Collectives = !gpus && controller == s.Expect.Launcher && s.trainsToo()
	return task
}

// trainCommand returns the command that starts the ranks with a task.
func (s Subject) trainCommand(launcher []string, env map[string]string, task trainTask) (Command, error) {
	name := "train-step"
	if task.GPUs {
		name = "gpu-train-step"
	}
	text, err := json.Marshal(task)
	if err != nil {
		return Command{}, err
	}
	return Command{
		Name:  name,
		Args:  launch("2", launcher, "train.py", s.Expect.Import[0]),
		Env:   ranksEnv(env),
		Files: map[string]string{"train.py": trainScript, "allreduce.py": allreduceScript, "task.json": string(text)},
	}, nil
}

// judgeTraining requires every case from both ranks. A problem is a failure even if
// other cases are missing. If the program failed early, the first missing case names
// the place.
func judgeTraining(task trainTask, cases []string, out Result) verdict.Verdict {
	reports := rankReports[trainReport](out.Output)
	var problems, missing []string
	worst := 0.0
	for _, name := range cases {
		for rank := range 2 {
			i := slices.IndexFunc(reports, func(r trainReport) bool { return r.Case == name && r.Rank == rank })
			if i < 0 {
				missing = append(missing, fmt.Sprintf("%s of rank %d", name, rank))
				continue
			}
			problem, off := task.judge(reports[i])
			if problem != "" {
				problems = append(problems, fmt.Sprintf("%s, rank %d: %s", name, rank, problem))
			}
			worst = max(worst, off)
		}
	}
	switch {
	case out.Exit != 0 && len(missing) > 0:
		problems = append(problems, fmt.Sprintf("horovodrun: exit %d before the end of %s: %s", out.Exit, missing[0], lastLine(out.Output)))
	case out.Exit != 0:
		problems = append(problems, fmt.Sprintf("horovodrun: exit %d after all cases: %s", out.Exit, lastLine(out.Output)))
	case len(problems) == 0 && len(missing) > 0:
		return verdict.Unmeasured("no report of %s", listed(missing, 4))
	}
	return verdict.Judge(problems, []string{fmt.Sprintf("%d cases on 2 ranks (%s), weights within %.1g of those of one process", len(cases), strings.Join(cases, " "), worst)})
}

// judge returns the problem of a report, and the distance of its weights from the
// correct ones.
func (t trainTask) judge(r trainReport) (problem string, off float64) {
	switch {
	case r.Error != "":
		return r.Error, 0
	case r.Size != 2:
		return fmt.Sprintf("it sees %d ranks", r.Size), 0
	case t.GPUs && r.Device != "cuda":
		return fmt.Sprintf("its results lie on %q, not on a GPU", r.Device), 0
	case r.Case == "grouped-allreduce":
		return t.judgeGrouped(r.Grouped), 0
	}
	right := t.right(r.Case, r.Rank)
	off = distance(r.Weights, right)
	if off <= trainTolerance {
		return "", off
	}
	for _, other := range []struct {
		have []float64
		says string
	}{
		{t.trained(r.Rank), "those of its own batch alone"},
		{t.trained(0, 1), "those of the joined batch"},
		{t.trained(1 - r.Rank), "those of the other rank's batch alone"},
	} {
		if distance(r.Weights, other.have) <= trainTolerance {
			return fmt.Sprintf("its weights are %s, off by %.2g", other.says, off), off
		}
	}
	return fmt.Sprintf("its weights are %.5g, expected %.5g (off by %.2g, allowed %.0g)", r.Weights, right, off, trainTolerance), off
}

// distance returns the largest difference, or infinity if the lengths differ.
func distance(have, want []float64) float64 {
	if len(have) != len(want) {
		return math.Inf(1)
	}
	worst := 0.0
	for i := range have {
		worst = max(worst, math.Abs(have[i]-want[i])) // never NaN: JSON has none
	}
	return worst
}

func (t trainTask) judgeGrouped(results []groupedResult) string {
	if len(results) != len(t.Grouped) {
		return fmt.Sprintf("%d results for %d reduced groups", len(results), len(t.Grouped))
	}
	var problems []string
	for i, want := range t.Grouped {
		if problem := want.judge(results[i]); problem != "" {
			problems = append(problems, fmt.Sprintf("%s of %s: %s", want.Op, want.Type, problem))
		}
	}
	return strings.Join(problems, ", ")
}

func (g groupedTensor) judge(r groupedResult) string {
	n := len(g.Values)
	switch {
	case len(r.Values) != n || len(r.Types) != n || len(r.Shapes) != n:
		return fmt.Sprintf("%d tensors returned for %d", len(r.Values), n)
	case r.Type != g.Type || distance(r.One, g.right(0)) > trainTolerance:
		return fmt.Sprintf("allreduce of one tensor returns %v of type %s, expected %v", r.One, r.Type, g.right(0))
	}
	for i := range g.Values {
		right := g.right(i)
		if r.Types[i] != g.Type || !slices.Equal(r.Shapes[i], g.Shapes[i]) || distance(r.Values[i], right) > trainTolerance {
			return fmt.Sprintf("tensor %d is %v of type %s and shape %v, expected %v of shape %v", i, r.Values[i], r.Types[i], r.Shapes[i], right, g.Shapes[i])
		}
	}
	return ""
}
