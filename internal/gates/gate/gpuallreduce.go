package gate

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"

	"builder/internal/gates/verdict"
	"builder/internal/machine/nccllog"
	"builder/internal/machine/nccltests"
	"builder/internal/plan/recipe"
	"builder/internal/plan/version"
)

var gpuAllreduce = Gate{
	Name:   "gpu-allreduce",
	Asks:   "each rank on a GPU of its own gets correct results from every collective on GPU tensors, from the promised NCCL or RCCL, over the requested transport, without a copy through host memory",
	Remedy: "a job with this wheel would compute wrongly, stop, or copy its tensors through the host: compare HOROVOD_GPU_OPERATIONS and HOROVOD_GPU_<NAME> of the build with gpu-operations, and the library that the process loads with the promised one (`builder gate --env PYTHON`)",
	Promise: recipe.Promise{
		Of:   []string{},
		Says: "collectives that give tensors on GPUs to NCCL or RCCL: allreduce; allgather; broadcast; alltoall; reducescatter; without this list allreduce and broadcast if check-build has the operation NCCL",
	},
	Wants: wantsFramework,
	Needs: GPUs,
	check: checkGPUOperations,

	Framework: true,
}

var gpuTrainStep = Gate{
	Name:   "gpu-train-step",
	Asks:   "after three optimizer steps on GPUs, two ranks hold the weights of one process with the joined batch",
	Remedy: trainStep.Remedy,
	Wants: func(e recipe.Expect) bool {
		return wantsFramework(e) && trainStep.Wants(e)
	},
	Needs:     GPUs,
	Framework: true,
	check: func(ctx context.Context, s Subject) verdict.Verdict {
		if v, lacks := s.lacksFramework(2); lacks {
			return v
		}
		s.Box = s.Framework
		return s.train(ctx, s.Device.Env, true)
	},
}

func wantsFramework(e recipe.Expect) bool {
	stated := states("gpu-allreduce")(e) || len(gpuOperations(e)) > 0
	return stated && len(e.Import) > 0 && e.Launcher != "" && promisedPlatform(e) != ""
}

// gpuOperations lists the collectives that give tensors on GPUs to the library. Wheels
// with NCCL do so for allreduce and broadcast if they state nothing else.
func gpuOperations(e recipe.Expect) []string {
	stated := settings[[]string](e, "gpu-allreduce")
	if !states("gpu-allreduce")(e) && slices.Contains(listedBuild(e).Operations, "NCCL") {
		return []string{"allreduce", "broadcast"}
	}
	return stated
}

// gpuCalls lists the calls of NCCL by which Horovod runs an operation.
var gpuCalls = map[string][]string{
	"allreduce":     {"AllReduce"},
	"allgather":     {"AllGather", "Broadcast"},
	"broadcast":     {"Broadcast"},
	"alltoall":      {"Send", "Recv", "AllToAll", "AlltoAll"},
	"reducescatter": {"ReduceScatter", "Reduce"},
}

// vendorLibraries maps platforms to the library with the collectives.
var vendorLibraries = map[string]string{"cuda": "libnccl.so", "rocm": "librccl.so"}

// lacksFramework returns a verdict if the wheel cannot run on GPUs of this host.
func (s Subject) lacksFramework(ranks int) (verdict.Verdict, bool) {
	if s.Device == nil {
		return verdict.Unmeasured("no GPU requested").Because("run it on a host with GPUs: builder gate PATH --gpus all --python PYTHON"), true
	}
	if v, short := s.Device.Short(); short {
		return v, true
	}
	switch {
	case s.Device.GPUs < ranks:
		return verdict.Unmeasured("with %d GPU nothing goes from one to another", s.Device.GPUs).Because("run it with --gpus %d or more", ranks), true
	case s.Framework == nil:
		return verdict.Unmeasured("no environment with the framework is named").Because("name its interpreter: --python PYTHON"), true
	}
	return verdict.Verdict{}, false
}

// A gpuCase is one call on every rank. The script repeats the values of a tensor, and
// returns one period of a result after checking that it repeats.
type gpuCase struct {
	gpuCall
	in        [][]gpuTensor // by rank
	right     [][]gpuTensor // by rank
	operation string        // name in gpu-operations
	direct    bool          // the library gets the address of a tensor itself
}

// A gpuCall is the part of a case that one rank gets.
type gpuCall struct {
	Name   string      `json:"name"`
	Op     string      `json:"op"`
	Reduce string      `json:"reduce"`
	Type   string      `json:"type"`
	Root   int         `json:"root"`
	Splits []int       `json:"splits"`
	Repeat int         `json:"repeat"`
	Period int         `json:"period"` // 0 for a result that does not repeat
	In     []gpuTensor `json:"in"`
}

// A gpuPart is the part of one rank.
type gpuPart struct {
	Cases []gpuCall `json:"cases"`
	Limit int       `json:"limit"` // seconds until a rank gives up
}

// gpuSeconds is the time limit of ranks on GPUs.
const gpuSeconds = 240

// gpuParts returns the part of each rank.
func gpuParts(cases []gpuCase, ranks int) (parts []any) {
	for rank := range ranks {
		p := gpuPart{Limit: gpuSeconds}
		for _, c := range cases {
			call := c.gpuCall
			call.In = c.in[rank]
			p.Cases = append(p.Cases, call)
		}
		parts = append(parts, p)
	}
	return parts
}

type gpuTensor struct {
	Shape  []int     `json:"shape"`
	Values []float64 `json:"values"`
}

// Types of tensors for which Horovod has operations on GPUs.
var (
	reducedTypes = []string{"float32", "float16", "float64", "int32", "int64"}
	movedTypes   = append(slices.Clone(reducedTypes), "uint8", "int8", "int16")
)

const (
	gpuColumns = 3
	gpuRepeats = 1 << 18 // of the large case: 6 values in float32 make 6 MiB
)

// gpuCases returns every promised operation with every type, for a number of ranks,
// with random data.
func gpuCases(operations []string, ranks int, random *rand.Rand) (cases []gpuCase, err error) {
	for _, op := range operations {
		switch op {
		case "allreduce":
			for _, kind := range reducedTypes {
				for _, reduce := range []string{"Sum", "Average", "Min", "Max", "Product"} {
					cases = append(cases, reduction(op, reduce, kind, ranks, 1, 1, random))
				}
				cases = append(cases, reduction(op, "Sum", kind, ranks, 3, 1, random))
			}
			cases = append(cases, reduction(op, "Sum", "float32", ranks, 1, gpuRepeats, random))
		case "reducescatter":
			for _, kind := range reducedTypes {
				for _, reduce := range []string{"Sum", "Average"} {
					cases = append(cases, reduction(op, reduce, kind, ranks, 1, 1, random))
				}
				cases = append(cases, reduction(op, "Sum", kind, ranks, 2, 1, random))
			}
		case "allgather", "broadcast", "alltoall":
			for _, kind := range movedTypes {
				cases = append(cases, moved(op, kind, ranks, 1, random))
			}
			if op == "allgather" {
				cases = append(cases, moved(op, "float32", ranks, 2, random))
			}
		default:
			return nil, fmt.Errorf("no operation is called %q", op)
		}
	}
	return cases, nil
}

// newCase names a case, such as allreduce Sum float32 or allreduce Sum float32 x3.
func newCase(op, reduce, kind string, tensors int) gpuCase {
	c := gpuCase{operation: op}
	c.gpuCall = gpuCall{Name: strings.Join(strings.Fields(op+" "+reduce+" "+kind), " "), Op: op, Reduce: reduce, Type: kind, Repeat: 1}
	c.direct = tensors == 1 && reduce != "Average"
	if tensors > 1 {
		c.Op, c.Name = "grouped_"+op, fmt.Sprintf("%s x%d", c.Name, tensors)
	}
	return c
}

// reduction returns an allreduce or a reducescatter. All numbers are small integers:
// every type holds the results exactly, and an average is one too.
func reduction(op, reduce, kind string, ranks, tensors, repeat int, random *rand.Rand) gpuCase {
	c := newCase(op, reduce, kind, tensors)
	if c.Repeat = repeat; repeat > 1 {
		c.Name += " large"
	}
	rows := 2
	if op == "reducescatter" {
		rows = ranks + 1 // rank 0 gets two rows
	}
	n := rows * gpuColumns
	if op == "allreduce" {
		c.Period = n
	}
	for rank := range ranks {
		var mine []gpuTensor
		for range tensors {
			values := make([]float64, n)
			for i := range values {
				values[i] = reduced(reduce, ranks, rank, random)
			}
			mine = append(mine, gpuTensor{[]int{rows * repeat, gpuColumns}, values})
		}
		c.in = append(c.in, mine)
	}
	c.complete(ranks)
	return c
}

// complete adds the right results, which follow from what the ranks hold.
func (c *gpuCase) complete(ranks int) {
	c.right = make([][]gpuTensor, ranks)
	if c.Reduce != "" {
		c.reduce(ranks)
		return
	}
	c.move(ranks)
}

// reduce adds the right results of an allreduce or a reducescatter.
func (c *gpuCase) reduce(ranks int) {
	for tensor, first := range c.in[0] {
		values := make([]float64, len(first.Values))
		for i := range values {
			values[i] = first.Values[i]
			for _, other := range c.in[1:] {
				values[i] = combine(c.Reduce, values[i], other[tensor].Values[i])
			}
			if c.Reduce == "Average" {
				values[i] /= float64(ranks)
			}
		}
		for rank := range ranks {
			out := gpuTensor{first.Shape, values}
			if c.operation == "reducescatter" { // rank 0 gets two rows
				from, to := rank+1, rank+2
				if rank == 0 {
					from = 0
				}
				out = gpuTensor{[]int{to - from, gpuColumns}, values[from*gpuColumns : to*gpuColumns]}
			}
			c.right[rank] = append(c.right[rank], out)
		}
	}
}

// reduced returns a random element of a rank's tensor. The product of many ranks stays
// below 1024.
func reduced(reduce string, ranks, rank int, random *rand.Rand) float64 {
	switch {
	case reduce == "Product" && rank < 10:
		return float64(1 + random.IntN(2))
	case reduce == "Product":
		return 1
	case reduce == "Average":
		return float64(ranks * (1 + random.IntN(3)))
	}
	return float64(1 + random.IntN(7))
}

func combine(reduce string, a, b float64) float64 {
	switch reduce {
	case "Min":
		return min(a, b)
	case "Max":
		return max(a, b)
	case "Product":
		return a * b
	}
	return a + b
}

// moved returns an operation that copies elements. The ranks hold different numbers of
// rows, except for broadcast.
func moved(op, kind string, ranks, tensors int, random *rand.Rand) gpuCase {
	c := newCase(op, "", kind, tensors)
	c.Root = ranks - 1
	for rank := range ranks {
		rows := rank + 1
		switch op {
		case "broadcast":
			rows = 2
		case "alltoall":
			rows = ranks * (ranks + 1) / 2
			c.Splits = append(c.Splits, rank+1) // one row to rank 0, two to rank 1
		}
		var mine []gpuTensor
		for range tensors {
			t := gpuTensor{Shape: []int{rows, gpuColumns}}
			for range rows * gpuColumns {
				t.Values = append(t.Values, float64(random.IntN(100)))
			}
			mine = append(mine, t)
		}
		c.in = append(c.in, mine)
	}
	c.complete(ranks)
	return c
}

// move adds the right results of an operation that copies elements. Of an alltoall, one
// row goes to rank 0 and two to rank 1.
func (c *gpuCase) move(ranks int) {
	for rank := range ranks {
		for tensor := range c.in[0] {
			out := gpuTensor{}
			switch c.operation {
			case "broadcast":
				out.Values = c.in[c.Root][tensor].Values
			case "allgather":
				for _, from := range c.in {
					out.Values = append(out.Values, from[tensor].Values...)
				}
			case "alltoall":
				start := rank * (rank + 1) / 2 * gpuColumns
				for _, from := range c.in {
					out.Values = append(out.Values, from[tensor].Values[start:start+(rank+1)*gpuColumns]...)
				}
			}
			out.Shape = []int{len(out.Values) / gpuColumns, gpuColumns}
			c.right[rank] = append(c.right[rank], out)
		}
	}
}

// A gpuReport is a JSON line of a rank: its start, a case, its end, or a line of the
// library's log.
type gpuReport struct {
	Rank      int            `json:"rank"`
	Size      int            `json:"size"`
	Case      string         `json:"case"`
	Error     string         `json:"error"`
	Built     int            `json:"nccl_built"`
	Libraries []gpuLibrary   `json:"libraries"`
	Name      string         `json:"name"` // of the GPU
	GPU       string         `json:"gpu"`  // what tells it from others
	Absent    bool           `json:"absent"`
	Out       []gpuResult    `json:"out"`
	Calls     map[string]int `json:"calls"` // of the library, by kind
	Own       int            `json:"own"`   // calls with the address of a tensor; -1 if unknown
	Log       string         `json:"log"`
	by        int            // the rank by the launcher
}

type gpuLibrary struct {
	Path    string `json:"path"`
	Version int    `json:"version"`
}

type gpuResult struct {
	gpuTensor
	Type   string `json:"type"`
	Device string `json:"device"`
	Same   bool   `json:"same"`
}

func checkGPUOperations(ctx context.Context, s Subject) verdict.Verdict {
	if v, lacks := s.lacksFramework(2); lacks {
		return v
	}
	cases, err := gpuCases(gpuOperations(s.Expect), s.Device.GPUs, s.random("gpu"))
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	way, v := s.Device.Way()
	if v != nil {
		return *v
	}
	s.Box = s.Framework
	var verdicts []verdict.Verdict
	controllers := s.controllers()
	for _, controller := range controllers {
		end, err := s.start(ctx, nil, way.Env, launch{
			gate: "gpu-allreduce", controller: controller, parts: gpuParts(cases, s.Device.GPUs), limit: 2 * gpuSeconds, program: []string{"gpu.py", s.Expect.Import[0]},
		})
		if err != nil {
			verdicts = append(verdicts, verdict.Unmeasured("%v", err))
			continue
		}
		v := s.judgeGPUs(cases, end, func(log nccllog.Evidence) verdict.Verdict { return s.Device.JudgeLog(way, log) })
		verdicts = append(verdicts, v)
	}
	return joinVerdicts(controllers, verdicts)
}

// judgeGPUs judges the reports of all ranks. A rank without a report of a case is a
// failure.
func (s Subject) judgeGPUs(cases []gpuCase, end ranksEnd, connected func(nccllog.Evidence) verdict.Verdict) verdict.Verdict {
	faults, err := end.faults()
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	var reports []gpuReport
	for rank, r := range end.Ranks {
		of, err := reportsOf[gpuReport](r)
		if err != nil {
			return verdict.Failed("rank %d: %v", rank, err)
		}
		for i := range of {
			of[i].by = rank
		}
		reports = append(reports, of...)
	}
	ranks := s.Device.GPUs
	of := func(name string, rank int) *gpuReport {
		i := slices.IndexFunc(reports, func(r gpuReport) bool { return r.Case == name && r.by == rank && r.Rank == rank })
		if i < 0 {
			return nil
		}
		return &reports[i]
	}
	var problems, missing []string
	library, gpus := "", map[string]bool{}
	for rank := range ranks {
		r := of("start", rank)
		if r == nil {
			missing = append(missing, fmt.Sprintf("the start of rank %d", rank))
			continue
		}
		named, faults := s.judgeStart(*r, end.Ranks[rank].Mapped, ranks)
		if r.GPU != "" && gpus[r.GPU] && promisedPlatform(s.Expect) == "cuda" {
			faults = append(faults, "it shares the GPU "+r.GPU+" with another rank")
		}
		gpus[r.GPU], library = true, named
		for _, fault := range faults {
			problems = append(problems, fmt.Sprintf("rank %d: %s", rank, fault))
		}
	}
	if len(problems) > 0 {
		return verdict.Failed("%s", strings.Join(problems, "; ")) // nothing else can be told
	}
	absent := map[string]bool{}
	for _, c := range cases {
		for rank := range ranks {
			r := of(c.Name, rank)
			switch {
			case r == nil:
				missing = append(missing, fmt.Sprintf("%s of rank %d", c.Name, rank))
			case r.Absent && strings.HasPrefix(c.Op, "grouped_"):
				absent[c.Op] = true
			default:
				if problem := c.judge(*r); problem != "" {
					problems = append(problems, fmt.Sprintf("%s, rank %d: %s", c.Name, rank, problem))
				}
			}
		}
	}
	if len(missing) > 0 {
		problems = append(problems, "no report of "+listed(missing, 4))
	}
	problems = append(problems, faults...)
	var lines strings.Builder
	for _, r := range reports {
		if r.Log != "" {
			lines.WriteString(r.Log + "\n")
		}
	}
	log, err := nccllog.Parse(strings.NewReader(lines.String()))
	if err != nil {
		problems = append(problems, fmt.Sprintf("the log of the library: %v", err))
	}
	if len(problems) > 0 {
		return verdict.Judge(problems, nil)
	}
	if fault := s.saysOtherwise(log.Version); fault != "" {
		return verdict.Failed("%s", fault)
	}
	how := connected(log)
	if how.Status != verdict.Pass {
		return how
	}
	seen := []string{
		fmt.Sprintf("%d cases of %s on %d x %s", len(cases), strings.Join(gpuOperations(s.Expect), " "), ranks, of("start", 0).Name),
		fmt.Sprintf("by %s %s (%s)", log.Library, log.Version, library), how.Evidence,
	}
	for _, name := range slices.Sorted(maps.Keys(absent)) {
		seen = append(seen, name+" is not in this release")
	}
	return verdict.Passed("%s", strings.Join(seen, "; "))
}

// judgeStart judges the library in the process of a rank, as the rank reports it and as
// it was mapped at its end, and returns its file.
func (s Subject) judgeStart(r gpuReport, mapped []mappedFile, ranks int) (library string, problems []string) {
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	wanted := vendorLibraries[promisedPlatform(s.Expect)]
	var files []string
	for _, l := range r.Libraries {
		files = append(files, l.Path)
	}
	for _, file := range files {
		if len(mapped) > 0 && !slices.ContainsFunc(mapped, func(m mappedFile) bool { return m.Path == file }) {
			wrong("it reports %s, which its process does not map", file)
		}
	}
	switch {
	case r.Built == 0:
		wrong("Horovod is built without NCCL and RCCL (nccl_built() is 0, as with HOROVOD_GPU_OPERATIONS=MPI), promised is %s", strings.Join(gpuOperations(s.Expect), " "))
	case len(files) == 0:
		wrong("its process loads no %s", wanted)
	case len(files) > 1:
		wrong("its process loads %d libraries: %s", len(files), listed(files, 4))
	case !strings.HasPrefix(path.Base(files[0]), wanted):
		wrong("its process loads %s, promised is %s", files[0], wanted)
	default:
		library = files[0]
		if fault := s.saysOtherwise(nccltests.VersionOf(r.Libraries[0].Version)); fault != "" {
			wrong("its process loads %s: %s", library, fault)
		}
	}
	if r.Size != ranks {
		wrong("it sees %d ranks", r.Size)
	}
	if r.Error != "" {
		wrong("%s", r.Error)
	}
	return library, problems
}

// saysOtherwise compares a version that the library reports with the promise: the
// version that runs, or else the version that Horovod was built with.
func (s Subject) saysOtherwise(says string) string {
	promised := s.Expect.LibrarySays
	if promised == "" {
		promised = built(s.Expect)["nccl"]
	}
	want, err := version.ParseConstraint(promised)
	if err != nil {
		return fmt.Sprintf("the promised version %q: %v", promised, err)
	}
	release, _, _ := strings.Cut(says, "+")
	release, _, _ = strings.Cut(release, "-") // RCCL: 2.20.5-HEAD:9d6de3c
	is, err := version.Parse(release)
	if err != nil {
		return fmt.Sprintf("the library reports no version: %.100q", says)
	}
	if !want.Allows(is) {
		return fmt.Sprintf("the library is release %s, promised is %s", is, promised)
	}
	return ""
}

// judge returns the problem of a rank's report on a case.
func (c gpuCase) judge(r gpuReport) string {
	right := c.right[r.Rank]
	calls := 0
	for _, kind := range gpuCalls[c.operation] {
		calls += r.Calls[kind]
	}
	switch {
	case r.Error != "":
		return r.Error
	case len(r.Out) != len(right):
		return fmt.Sprintf("%d tensors come out, right is %d", len(r.Out), len(right))
	}
	for i, have := range r.Out {
		want := right[i]
		switch {
		case have.Device != "cuda":
			return fmt.Sprintf("the result lies in the memory of the %s", have.Device)
		case have.Type != c.Type || !slices.Equal(have.Shape, want.Shape):
			return fmt.Sprintf("the result is of type %s and shape %v, right is %s and %v", have.Type, have.Shape, c.Type, want.Shape)
		case !have.Same || distance(have.Values, want.Values) > 0:
			return fmt.Sprintf("the result is %s, right is %s", firstValues(have.Values), firstValues(want.Values))
		}
	}
	switch {
	case calls == 0:
		return "the result is right and the library was not called: the tensor went through the memory of the host"
	case c.direct && r.Own == 0:
		return "the library got another tensor than the one on the GPU: it was copied"
	}
	return ""
}

// firstValues prints the first values of a tensor.
func firstValues(values []float64) string {
	const shown = 8
	if len(values) > shown {
		return fmt.Sprintf("%.15g and %d more", values[:shown], len(values)-shown)
	}
	return fmt.Sprintf("%.15g", values)
}
