package gate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var trainStep = Gate{
	Name:   "train-step",
	Asks:   "after three optimizer steps, two ranks hold the weights of one process with the joined batch, and grouped_allreduce returns the correct values, shapes and types",
	Remedy: "a job with this wheel would train wrongly or stop: gradients are not reduced, are divided by the wrong number or are taken from the wrong ranks; for grouped_allreduce see docs/neighbours.md#grouped-allreduce",
	Wants:  wantsTraining,
	Needs:  Container,
	check:  checkTraining,
}

func wantsTraining(e recipe.Expect) bool {
	return e.Launcher != "" && len(e.Import) > 0 && len(trainCases[e.Import[0]]) > 0
}

// trainCases lists the cases reported by each rank, in order, by module.
var trainCases = map[string][]string{
	"horovod.tensorflow": {
		"grouped-allreduce", "sparse-in-a-group", "tape", "tape-graph", "tape-groups", "tape-alone",
		"optimizer", "optimizer-groups", "optimizer-accumulates", "optimizer-alone",
	},
	"horovod.torch": {
		"grouped-allreduce", "optimizer", "optimizer-groups", "optimizer-accumulates", "optimizer-alone",
		"optimizer-of-two-groups", "optimizer-state",
	},
}

// trainTolerance is the largest accepted difference of a weight from the result of one
// process. The weights are near 1 and computed in float32; a wrong factor changes them
// by 0.01 or more.
const trainTolerance = 1e-5

// A trainTask holds the parts of both ranks, and the results come from it alone.
type trainTask [2]trainPart

// A trainPart is the part of one rank.
type trainPart struct {
	Start       weights     `json:"start"`
	Rate        float64     `json:"rate"`
	Batches     []batch     `json:"batches"` // by step
	Sparse      float64     `json:"sparse"`
	Dense       float64     `json:"dense"`
	Grouped     []groupPart `json:"grouped"`
	Limit       int         `json:"limit"`       // seconds until a rank gives up
	GPUs        bool        `json:"gpus"`        // each rank on a GPU of its own
	Collectives *ringPart   `json:"collectives"` // of the gate allreduce-2, asked first; nil for none
}

// A groupPart is a rank's part of a call of grouped_allreduce, with values by tensor.
type groupPart struct {
	Op     string      `json:"op"`
	Type   string      `json:"type"`
	Shapes [][]int     `json:"shapes"`
	Values [][]float64 `json:"values"`
}

// learningRate is the rate of the optimizer. Weights then change by 0.01 or more.
const learningRate = 0.1

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

// rightOf returns the correct result of a tensor of a group on both ranks. Averages of
// integers are truncated, as in Horovod's C++ code.
func (t trainTask) rightOf(group, tensor int) []float64 {
	var sums []float64
	g := t[0].Grouped[group]
	for i, a := range g.Values[tensor] {
		sum := a + t[1].Grouped[group].Values[tensor][i]
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

// newTrainTask returns a random task for a module. Horovod for PyTorch reduces no bytes.
func newTrainTask(module string, random *rand.Rand) trainTask {
	number := func() float64 { return float64(float32(2*random.Float64() - 1)) }
	numbers := func(n int) (all []float64) {
		for range n {
			all = append(all, number())
		}
		return all
	}
	var t trainTask
	start := weights{Matrix: numbers(4), Bias: numbers(2), Scale: []float64{1 + random.Float64()/2}}
	for rank := range t {
		part := trainPart{Start: start, Rate: learningRate, Limit: rankSeconds}
		part.Sparse, part.Dense = float64(1+random.IntN(100)), float64(1+random.IntN(100))
		for range 3 {
			var b batch
			for range 4 {
				b.X = append(b.X, numbers(2))
				// The ranks pull in different directions, so a wrong reduction is far off.
				b.Y = append(b.Y, []float64{number() + 2*float64(rank), number() - 2*float64(rank)})
			}
			part.Batches = append(part.Batches, b)
		}
		t[rank] = part
	}
	groups := [][2]string{{"Average", "float32"}, {"Sum", "float32"}, {"Average", "int32"}, {"Sum", "int32"}}
	if module != "horovod.torch" {
		groups = append(groups, [2]string{"Average", "uint8"})
	}
	for _, g := range groups {
		first := groupPart{Op: g[0], Type: g[1], Shapes: [][]int{{1}, {1}, {2, 2}}}
		second := first
		for tensor, n := range []int{1, 1, 4} {
			var mine, other []float64
			for i := range n {
				mine = append(mine, float64(1+random.IntN(50)))
				odd := float64(2*random.IntN(25) + (tensor+i)%2) // some averages are no integers
				other = append(other, mine[i]+odd)
			}
			first.Values, second.Values = append(first.Values, mine), append(second.Values, other)
		}
		t[0].Grouped, t[1].Grouped = append(t[0].Grouped, first), append(t[1].Grouped, second)
	}
	return t
}

// trained returns the weights after the steps of one process, with the joined batches
// of the given ranks.
func (t trainTask) trained(ranks ...int) []float64 {
	start := t[0].Start
	w := weights{slices.Clone(start.Matrix), slices.Clone(start.Bias), slices.Clone(start.Scale)}
	for step := range t[0].Batches {
		var joined batch
		for _, rank := range ranks {
			joined.X = append(joined.X, t[rank].Batches[step].X...)
			joined.Y = append(joined.Y, t[rank].Batches[step].Y...)
		}
		w.descend(joined, learningRate)
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
		return []float64{(t[0].Dense + t[1].Dense) / 2, t[0].Sparse / 2, t[1].Sparse / 2} // the dense gradient and the two rows of the sparse one
	case name == "optimizer-state":
		start := t[0].Start
		return slices.Concat(start.Matrix, start.Bias, start.Scale, start.Scale[:1])
	case strings.HasSuffix(name, "-alone"):
		return t.trained(rank)
	}
	return t.trained(0, 1)
}

// trainReport is the report of a rank on a case.
type trainReport struct {
	Case    string          `json:"case"`
	Rank    int             `json:"rank"`
	Size    int             `json:"size"`
	Device  string          `json:"device"` // of the results
	Error   string          `json:"error"`
	Weights []float64       `json:"weights"`
	Grouped []groupedResult `json:"grouped"`
	task    *trainTask      // that of a test
}

type groupedResult struct {
	Type   string      `json:"type"` // from an allreduce of the first tensor alone
	One    []float64   `json:"one"`
	Types  []string    `json:"types"`
	Shapes [][]int     `json:"shapes"`
	Values [][]float64 `json:"values"`
}

func checkTraining(ctx context.Context, s Subject) verdict.Verdict {
	ends, err := s.in(s.Box).ends(ctx, "train-step")
	return eachController(s.Expect, func(controller string) verdict.Verdict {
		i := slices.IndexFunc(ends, func(end ranksEnd) bool { return end.launch.controller == controller })
		if i < 0 {
			return verdict.Unmeasured("%v", err)
		}
		return judgeTraining(ends[i])
	})
}

// trainOnGPUs runs all cases with every controller, each rank on a GPU of its own.
func (b boxed) trainOnGPUs(ctx context.Context, env map[string]string) verdict.Verdict {
	return eachController(b.promised, func(controller string) verdict.Verdict {
		end, err := b.start(ctx, nil, env, b.trainTask(controller, true).launch(controller, b.promised.Import[0]))
		if err != nil {
			return verdict.Unmeasured("%v", err)
		}
		return judgeTraining(end)
	})
}

// trainTask returns the task for the ranks of a controller.
func (b boxed) trainTask(controller string, gpus bool) trainTask {
	task := newTrainTask(b.promised.Import[0], random(b.box, "training"))
	for rank := range task {
		task[rank].GPUs = gpus
	}
	if !gpus && controller == b.promised.Launcher && b.trainsToo() {
		for rank, part := range ringOf(b.box, ranksOfAllreduce, b.promised) {
			task[rank].Collectives = &part
		}
	}
	return task
}

// launch returns the launch of the ranks with the task.
func (t trainTask) launch(controller, module string) launch {
	l := launch{
		gate: "train-step", controller: controller, Limit: rankSeconds, scripts: []string{"collectives.py"},
		Parts: []any{t[0], t[1]}, Program: []string{"train.py", module}, Clean: true,
	}
	if t[0].GPUs {
		l.gate, l.Clean = "gpu-train-step", false
	}
	return l
}

// judgeTraining requires every case from both ranks, once. A rank that ended early is a
// failure, and the first missing case names the place.
func judgeTraining(end ranksEnd) verdict.Verdict {
	task, cases := trainTask{end.launch.Parts[0].(trainPart), end.launch.Parts[1].(trainPart)}, trainCases[end.launch.Program[1]]
	faults, err := end.faults()
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	var problems []string
	worst, missing := 0.0, ""
	for rank, r := range end.Ranks {
		reports, err := reportsOf[trainReport](r)
		if err != nil {
			return verdict.Failed("rank %d: %v", rank, err)
		}
		for _, name := range cases {
			reports := slices.DeleteFunc(slices.Clone(reports), func(r trainReport) bool { return r.Case != name })
			switch {
			case len(reports) == 0:
				missing = cmp.Or(missing, fmt.Sprintf("no report of %s of rank %d", name, rank))
				continue
			case len(reports) > 1:
				problems = append(problems, fmt.Sprintf("rank %d reported %s %d times", rank, name, len(reports)))
				continue
			case reports[0].Rank != rank:
				problems = append(problems, fmt.Sprintf("rank %d sees itself as rank %d", rank, reports[0].Rank))
			}
			problem, off := task.judge(reports[0])
			if problem != "" {
				problems = append(problems, fmt.Sprintf("%s, rank %d: %s", name, rank, problem))
			}
			worst = max(worst, off)
		}
	}
	if missing != "" {
		problems = append(problems, missing)
	}
	return verdict.Judge(append(problems, faults...), []string{fmt.Sprintf("%d cases on 2 ranks started by %s, each with its own random batches (%s), weights within %.1g of those of one process", len(cases), end.launch.by(), strings.Join(cases, " "), worst)})
}

// judge returns the problem of a report, and the distance of its weights from the
// correct ones.
func (t trainTask) judge(r trainReport) (problem string, off float64) {
	switch {
	case r.Error != "":
		return r.Error, 0
	case r.Size != 2:
		return fmt.Sprintf("it sees %d ranks", r.Size), 0
	case t[0].GPUs && r.Device != "cuda":
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
	groups := t[0].Grouped
	if len(results) != len(groups) {
		return fmt.Sprintf("%d results for %d reduced groups", len(results), len(groups))
	}
	var problems []string
	for i, want := range groups {
		if problem := t.judgeGroup(i, results[i]); problem != "" {
			problems = append(problems, fmt.Sprintf("%s of %s: %s", want.Op, want.Type, problem))
		}
	}
	return strings.Join(problems, ", ")
}

func (t trainTask) judgeGroup(group int, r groupedResult) string {
	g, one := t[0].Grouped[group], t.rightOf(group, 0)
	n := len(g.Values)
	switch {
	case len(r.Values) != n || len(r.Types) != n || len(r.Shapes) != n:
		return fmt.Sprintf("%d tensors returned for %d", len(r.Values), n)
	case r.Type != g.Type || distance(r.One, one) > trainTolerance:
		return fmt.Sprintf("allreduce of one tensor returns %v of type %s, expected %v", r.One, r.Type, one)
	}
	for i := range g.Values {
		right := t.rightOf(group, i)
		if r.Types[i] != g.Type || !slices.Equal(r.Shapes[i], g.Shapes[i]) || distance(r.Values[i], right) > trainTolerance {
			return fmt.Sprintf("tensor %d is %v of type %s and shape %v, expected %v of shape %v", i, r.Values[i], r.Types[i], r.Shapes[i], right, g.Shapes[i])
		}
	}
	return ""
}
