package gate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"builder/internal/gates/device"
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
		if v, lacks := lacksFramework(s.Device, s.Framework, 2); lacks {
			return v
		}
		return s.in(s.Framework).trainOnGPUs(ctx, s.Device.Env)
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

// vendorLibraries maps platforms to the library with the collectives.
var vendorLibraries = map[string]string{"cuda": "libnccl.so", "rocm": "librccl.so"}

// lacksFramework returns a verdict if the wheel cannot run on GPUs of this host.
func lacksFramework(gpus *device.Setup, framework Box, ranks int) (verdict.Verdict, bool) {
	if v, few := gpus.Few(ranks); few {
		return v, true
	}
	if framework == nil {
		return verdict.Unmeasured("no environment with the framework is named").Because("name its interpreter: --python PYTHON"), true
	}
	return verdict.Verdict{}, false
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
	if v, lacks := lacksFramework(s.Device, s.Framework, 2); lacks {
		return v
	}
	cases, err := gpuCases(gpuOperations(s.Expect), s.Device.GPUs, random(s.Box, "gpu"))
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	way, v := s.Device.Way()
	if v != nil {
		return *v
	}
	judgeLog := func(log nccllog.Evidence) verdict.Verdict { return s.Device.JudgeLog(way, log) }
	return eachController(s.Expect, func(controller string) verdict.Verdict {
		end, err := s.in(s.Framework).start(ctx, nil, way.Env, launch{
			gate: "gpu-allreduce", controller: controller, Parts: gpuParts(cases, s.Device.GPUs), Limit: 2 * gpuSeconds, Program: []string{"gpu.py", s.Expect.Import[0]},
		})
		if err != nil {
			return verdict.Unmeasured("%v", err)
		}
		return judgeGPUs(s.Expect, cases, end, judgeLog)
	})
}

// gpuReports returns the reports of each rank by case, and the log of the library.
func gpuReports(end ranksEnd) (reports []map[string]gpuReport, log string, err error) {
	var lines strings.Builder
	for rank, r := range end.Ranks {
		all, err := reportsOf[gpuReport](r)
		if err != nil {
			return nil, "", fmt.Errorf("rank %d: %w", rank, err)
		}
		of := map[string]gpuReport{}
		for _, report := range all {
			if report.Log != "" {
				lines.WriteString(report.Log + "\n")
			} else if _, again := of[report.Case]; report.Rank == rank && !again {
				of[report.Case] = report
			}
		}
		reports = append(reports, of)
	}
	return reports, lines.String(), nil
}

// judgeGPUs judges the reports of all ranks. A rank without a report of a case is a
// failure. judgeLog judges the transport.
func judgeGPUs(e recipe.Expect, cases []gpuCase, end ranksEnd, judgeLog func(nccllog.Evidence) verdict.Verdict) verdict.Verdict {
	faults, err := end.faults()
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	reports, lines, err := gpuReports(end)
	if err != nil {
		return verdict.Failed("%v", err)
	}
	library, missing, problems := judgeStarts(e, reports, end)
	if len(problems) > 0 {
		return verdict.Failed("%s", strings.Join(problems, "; ")) // nothing else can be told
	}
	absent := map[string]bool{}
	for _, c := range cases {
		for rank, of := range reports {
			r, there := of[c.Name]
			if !there {
				missing = append(missing, fmt.Sprintf("%s of rank %d", c.Name, rank))
			} else if r.Absent && c.Op != c.operation() {
				absent[c.Op] = true
			} else if problem := c.judge(r); problem != "" {
				problems = append(problems, fmt.Sprintf("%s, rank %d: %s", c.Name, rank, problem))
			}
		}
	}
	if len(missing) > 0 {
		problems = append(problems, "no report of "+listed(missing, 4))
	}
	problems = append(faults, problems...) // the end of one rank makes the cases of others fail
	log, err := nccllog.Parse(strings.NewReader(lines))
	if err != nil {
		problems = append(problems, fmt.Sprintf("the log of the library: %v", err))
	}
	if len(problems) > 0 {
		return verdict.Judge(problems, nil)
	}
	if fault := saysOtherwise(e, log.Version); fault != "" {
		return verdict.Failed("%s", fault)
	}
	how := judgeLog(log)
	if how.Status != verdict.Pass {
		return how
	}
	seen := []string{
		fmt.Sprintf("%d cases of %s on %d x %s", len(cases), strings.Join(gpuOperations(e), " "), len(reports), reports[0]["start"].Name),
		fmt.Sprintf("by %s %s (%s)", log.Library, log.Version, library), how.Evidence,
	}
	for _, name := range slices.Sorted(maps.Keys(absent)) {
		seen = append(seen, name+" is not in this release")
	}
	return verdict.Passed("%s", strings.Join(seen, "; "))
}

// judgeStarts judges the start of every rank, and returns the file of the library.
func judgeStarts(e recipe.Expect, reports []map[string]gpuReport, end ranksEnd) (library string, missing, problems []string) {
	gpus := map[string]bool{}
	for rank, of := range reports {
		r, there := of["start"]
		if !there {
			missing = append(missing, fmt.Sprintf("the start of rank %d", rank))
			continue
		}
		named, faults := judgeStart(e, r, end.Ranks[rank].Mapped, len(reports))
		if r.GPU != "" && gpus[r.GPU] && promisedPlatform(e) == "cuda" {
			faults = append(faults, "it shares the GPU "+r.GPU+" with another rank")
		}
		gpus[r.GPU], library = true, named
		for _, fault := range faults {
			problems = append(problems, fmt.Sprintf("rank %d: %s", rank, fault))
		}
	}
	return library, missing, problems
}

// judgeStart judges the library in the process of a rank, as the rank reports it and as
// it was mapped at its end, and returns its file.
func judgeStart(e recipe.Expect, r gpuReport, mapped []mappedFile, ranks int) (library string, problems []string) {
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	wanted := vendorLibraries[promisedPlatform(e)]
	var files []string
	for _, l := range r.Libraries {
		files = append(files, l.Path)
		if len(mapped) > 0 && !slices.ContainsFunc(mapped, func(m mappedFile) bool { return m.Path == l.Path }) {
			wrong("it reports %s, which its process does not map", l.Path)
		}
	}
	switch {
	case r.Built == 0:
		wrong("Horovod is built without NCCL and RCCL (nccl_built() is 0, as with HOROVOD_GPU_OPERATIONS=MPI), promised is %s", strings.Join(gpuOperations(e), " "))
	case len(files) == 0:
		wrong("its process loads no %s", wanted)
	case len(files) > 1:
		wrong("its process loads %d libraries: %s", len(files), listed(files, 4))
	case !strings.HasPrefix(path.Base(files[0]), wanted):
		wrong("its process loads %s, promised is %s", files[0], wanted)
	default:
		library = files[0]
		if fault := saysOtherwise(e, nccltests.VersionOf(r.Libraries[0].Version)); fault != "" {
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
func saysOtherwise(e recipe.Expect, says string) string {
	promised := cmp.Or(e.LibrarySays, built(e)["nccl"])
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
	right := c.right(r.Rank)
	calls := 0
	for _, kind := range gpuCalls[c.operation()] {
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
			return fmt.Sprintf("the result is %s, right is %s", cut(fmt.Sprint(have.Values), 200), cut(fmt.Sprint(want.Values), 200))
		}
	}
	switch {
	case calls == 0:
		return "the result is right and the library was not called: the tensor went through the memory of the host"
	case c.Op == c.operation() && c.Reduce != "Average" && r.Own == 0: // the library gets the address of the tensor itself
		return "the library got another tensor than the one on the GPU: it was copied"
	}
	return ""
}
