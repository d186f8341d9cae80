package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"builder/internal/gates/device"
	"builder/internal/gates/verdict"
	"builder/internal/machine/gpu"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// gpuBox plays the ranks of a job on GPUs. change may edit a report, or omit it by
// clearing its case; Log lines follow the first case.
type gpuBox struct {
	library gpuLibrary
	built   int
	log     []string
	change  func(*gpuReport)
	exit    int
	failure error
	asked   []Command
}

func (b *gpuBox) Run(_ context.Context, c Command) (Result, error) {
	b.asked = append(b.asked, c)
	if b.failure != nil {
		return Result{}, b.failure
	}
	p := played{gpus: b.reports, training: nil, end: func(_ launch, e *ranksEnd) {
		if b.exit != 0 {
			e.Ranks[1].Exit, e.Ranks[1].End = at(b.exit), false
		}
	}}
	return p.ranks(c.Stdin, "cuda", ranksOnly), nil
}

// reports returns the right reports of a rank, changed by b.
func (b *gpuBox) reports(l launch, rank int) (lines []any) {
	ranks := len(l.Parts)
	reports := []gpuReport{{Rank: rank, Size: ranks, Case: "start", Built: b.built, Libraries: []gpuLibrary{b.library}, Name: "NVIDIA H200", GPU: fmt.Sprint("GPU-", rank)}}
	for _, c := range gpuCasesOf(l) {
		r := gpuReport{Rank: rank, Size: ranks, Case: c.Name, Calls: map[string]int{gpuCalls[c.operation()][0]: 1}, Own: 1}
		for _, t := range c.right(rank) {
			r.Out = append(r.Out, gpuResult{gpuTensor: t, Type: c.Type, Device: "cuda", Same: true})
		}
		reports = append(reports, r)
	}
	for _, line := range b.log {
		reports = append(reports, gpuReport{Rank: rank, Size: ranks, Log: line})
	}
	for _, r := range reports {
		if b.change != nil {
			b.change(&r)
		}
		if r.Case != "" || r.Log != "" {
			lines = append(lines, r)
		}
	}
	return lines
}

// gpuCasesOf returns the cases of which a launch has the parts, with the right results.
func gpuCasesOf(l launch) (cases []gpuCase) {
	parts := partsOf[gpuPart](l)
	for i, call := range parts[0].Cases {
		c := gpuCase{gpuCall: call}
		for _, p := range parts {
			c.in = append(c.in, p.Cases[i].In)
		}
		cases = append(cases, c)
	}
	return cases
}

// The lines are those of the logs in internal/machine/nccllog/testdata.
var (
	logNCCL = []string{
		"h200:1:2 [0] NCCL INFO NCCL version 2.28.9+cuda13.0",
		"h200:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM",
	}
	logRCCL = []string{
		"node1:4711:4720 [0] NCCL INFO RCCL version 2.20.5+hip6.2 HEAD:d380693+",
		"node1:4711:4720 [0] NCCL INFO Channel 00/0 : 0[c1000] -> 1[c5000] via P2P/IPC comm 0x1 nRanks 02",
	}
)

func cudaOnGPUs() (Subject, *gpuBox) {
	box := &gpuBox{library: gpuLibrary{"/env/nvidia/nccl/lib/libnccl.so.2", 22809}, built: 22809, log: logNCCL}
	return Subject{
		Expect: recipe.Expect{
			Import:   []string{"horovod.torch"},
			Launcher: "mpi",
			Gates: recipe.GateSettings{
				"gpu-allreduce": []string{"allreduce", "allgather", "broadcast", "alltoall", "reducescatter"},
				"check-build":   buildSettings{Controllers: []string{"MPI", "Gloo"}},
				"built-flags":   map[string]string{"cuda": "true", "rocm": "false", "nccl": "2.28.9"},
			},
		},
		Framework: box,
		Device: &device.Setup{GPUs: 2, Host: gpu.Host{
			GPUs:  []gpu.GPU{{Name: "NVIDIA H200", BusID: "0000:8d:00.0"}, {Name: "NVIDIA H200", BusID: "0000:95:00.0"}},
			Links: [][]string{{"", "NV18"}, {"NV18", ""}},
		}, Env: map[string]string{"NCCL_NVLS_ENABLE": "0"}},
	}, box
}

func rocmOnGPUs() (Subject, *gpuBox) {
	s, box := cudaOnGPUs()
	s.Expect.Gates = recipe.GateSettings{
		"check-build": buildSettings{Controllers: []string{"MPI"}, Operations: []string{"NCCL"}},
		"built-flags": map[string]string{"rocm": "true", "cuda": "false", "nccl": "2.20.5"},
	}
	s.Device.Host.Links = [][]string{{"", "XGMI"}, {"XGMI", ""}}
	box.library, box.built, box.log = gpuLibrary{"/opt/rocm-6.2.0/lib/librccl.so.1.0.60200", 22005}, 22005, logRCCL
	return s, box
}

func TestGPUOperations(t *testing.T) {
	onCase := func(name string, change func(*gpuReport)) func(*Subject, *gpuBox) {
		return func(_ *Subject, b *gpuBox) {
			b.change = func(r *gpuReport) {
				if r.Case == name {
					change(r)
				}
			}
		}
	}
	for name, c := range map[string]struct {
		of     func() (Subject, *gpuBox)
		change func(*Subject, *gpuBox)
		want   verdict.Status
		says   string
		remedy string
	}{
		"CUDA": {want: verdict.Pass, says: "mpi: 71 cases of allreduce allgather broadcast alltoall reducescatter on 2 x NVIDIA H200; by NCCL 2.28.9+cuda13.0 (/env/nvidia/nccl/lib/libnccl.so.2); nvlink: 2 via P2P/CUMEM; gloo: 71 cases"},
		"ROCm": {of: rocmOnGPUs, want: verdict.Pass, says: "39 cases of allreduce broadcast on 2 x NVIDIA H200; by RCCL 2.20.5+hip6.2 (/opt/rocm-6.2.0/lib/librccl.so.1.0.60200); nvlink: "},
		"a release without grouped_allgather": {want: verdict.Pass, says: "grouped_allgather is not in this release", change: onCase("allgather float32 x2", func(r *gpuReport) {
			r.Out, r.Calls, r.Absent = nil, nil, true
		})},
		"built with HOROVOD_GPU_OPERATIONS=MPI": {want: verdict.Fail, says: "rank 0: Horovod is built without NCCL and RCCL (nccl_built() is 0, as with HOROVOD_GPU_OPERATIONS=MPI), promised is allreduce", remedy: "HOROVOD_GPU_OPERATIONS", change: func(_ *Subject, b *gpuBox) { b.built = 0 }},
		"another NCCL": {want: verdict.Fail, says: "rank 1: its process loads /usr/lib/x86_64-linux-gnu/libnccl.so.2: the library is release 2.28.3, promised is 2.28.9", remedy: "the library that the process loads", change: func(_ *Subject, b *gpuBox) {
			b.library = gpuLibrary{"/usr/lib/x86_64-linux-gnu/libnccl.so.2", 22803}
		}},
		"the version that runs is promised": {want: verdict.Fail, says: "promised is 2.21.5", change: func(s *Subject, _ *gpuBox) { s.Expect.LibrarySays = "2.21.5" }},
		"NCCL for RCCL": {of: rocmOnGPUs, want: verdict.Fail, says: "its process loads /a/libnccl.so.2, promised is librccl.so", change: func(_ *Subject, b *gpuBox) {
			b.library.Path = "/a/libnccl.so.2"
		}},
		"two libraries": {want: verdict.Fail, says: "rank 0: its process loads 2 libraries: /a/libnccl.so.2 /b/libnccl.so.2", change: onCase("start", func(r *gpuReport) {
			r.Libraries = []gpuLibrary{{"/a/libnccl.so.2", 22809}, {"/b/libnccl.so.2", 22809}}
		})},
		"no library": {want: verdict.Fail, says: "its process loads no libnccl.so", change: onCase("start", func(r *gpuReport) { r.Libraries = nil })},
		"the log names another": {want: verdict.Fail, says: "the library is release 2.27.3, promised is 2.28.9", change: func(_ *Subject, b *gpuBox) {
			b.log = []string{strings.Replace(logNCCL[0], "2.28.9", "2.27.3", 1), logNCCL[1]}
		}},
		"a wrong sum": {want: verdict.Fail, says: "allreduce Sum float32, rank 1: the result is [99 ", change: onCase("allreduce Sum float32", func(r *gpuReport) {
			if r.Rank == 1 {
				r.Out[0].Values = slices.Concat([]float64{99}, r.Out[0].Values[1:])
			}
		})},
		"a large tensor with a wrong end": {want: verdict.Fail, says: "allreduce Sum float32 large, rank 0", change: onCase("allreduce Sum float32 large", func(r *gpuReport) { r.Out[0].Same = false })},
		"another type":                    {want: verdict.Fail, says: "of type float64 and shape", change: onCase("alltoall int32", func(r *gpuReport) { r.Out[0].Type = "float64" })},
		"a result on the host":            {want: verdict.Fail, says: "lies in the memory of the cpu", change: onCase("broadcast int8", func(r *gpuReport) { r.Out[0].Device = "cpu" })},
		"through the host": {want: verdict.Fail, says: "allgather uint8, rank 0: the result is right and the library was not called: the tensor went through the memory of the host", change: onCase("allgather uint8", func(r *gpuReport) {
			r.Calls = nil
		})},
		"a copy goes to the library": {want: verdict.Fail, says: "reducescatter Sum int64, rank 0: the library got another tensor", change: onCase("reducescatter Sum int64", func(r *gpuReport) { r.Own = 0 })},
		"tensors are lost":           {want: verdict.Fail, says: "2 tensors come out, right is 3", change: onCase("allreduce Sum int32 x3", func(r *gpuReport) { r.Out = r.Out[:2] })},
		"an error":                   {want: verdict.Fail, says: "RuntimeError: no", change: onCase("allreduce Max int32", func(r *gpuReport) { r.Error = "RuntimeError: no" })},
		"one GPU for two":            {want: verdict.Fail, says: "rank 1: it shares the GPU GPU-0 with another rank", change: onCase("start", func(r *gpuReport) { r.GPU = "GPU-0" })},
		"rings of their own":         {want: verdict.Fail, says: "it sees 1 ranks", change: onCase("start", func(r *gpuReport) { r.Size = 1 })},
		"over sockets": {want: verdict.Fail, says: "2 of 2 connections do not run over nvlink: 2 via NET/Socket/0", change: func(_ *Subject, b *gpuBox) {
			b.log = []string{logNCCL[0], "h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0"}
		}},
		"a crash": {want: verdict.Fail, says: "rank 1 ended before its end: exit 139: a warning; no report of allreduce Sum float64 of rank 0 allreduce Sum float64 of rank 1", change: func(s *Subject, b *gpuBox) {
			onCase("allreduce Sum float64", func(r *gpuReport) { r.Case = "" })(s, b)
			b.exit = 139
		}},
		"a crash at the end":  {want: verdict.Fail, says: "rank 1 ended before its end: exit 139", change: func(_ *Subject, b *gpuBox) { b.exit = 139 }},
		"a killed rank":       {want: verdict.Fail, says: "rank 1 ended before its end: a signal killed it", change: func(_ *Subject, b *gpuBox) { b.exit = 137 }},
		"silence":             {want: verdict.Fail, says: "no report of broadcast int8 of rank 0", change: onCase("broadcast int8", func(r *gpuReport) { r.Case = "" })},
		"no channel":          {want: verdict.NotMeasured, says: "the log names no connection", change: func(_ *Subject, b *gpuBox) { b.log = logNCCL[:1] }},
		"no box":              {want: verdict.NotMeasured, says: "no environment with the framework", remedy: "--python", change: func(s *Subject, _ *gpuBox) { s.Framework = nil }},
		"no device":           {want: verdict.NotMeasured, says: "no GPU requested", change: func(s *Subject, _ *gpuBox) { s.Device = nil }},
		"one GPU":             {want: verdict.NotMeasured, says: "1 GPU requested, at least 2 needed", remedy: "--gpus 2", change: func(s *Subject, _ *gpuBox) { s.Device.GPUs = 1 }},
		"too few GPUs":        {want: verdict.NotMeasured, says: "3 GPUs requested, this host has 2", change: func(s *Subject, _ *gpuBox) { s.Device.GPUs = 3 }},
		"the box fails":       {want: verdict.NotMeasured, says: "it was killed", change: func(_ *Subject, b *gpuBox) { b.failure = errors.New("it was killed") }},
		"settings of no type": {want: verdict.NotMeasured, says: "the settings of gpu-allreduce: the file has the wrong type", change: func(s *Subject, _ *gpuBox) { s.Expect.Gates["gpu-allreduce"] = 1 }},
		"no such operation":   {want: verdict.NotMeasured, says: `no operation is called "gossip"`, change: func(s *Subject, _ *gpuBox) { s.Expect.Gates["gpu-allreduce"] = []string{"gossip"} }},
	} {
		of := c.of
		if of == nil {
			of = cudaOnGPUs
		}
		s, box := of()
		if c.change != nil {
			c.change(&s, box)
		}
		v := gpuAllreduce.Check(t.Context(), s)
		check.That(t, v.Status == c.want && strings.Contains(v.Evidence, c.says) && strings.Contains(v.Remedy, c.remedy),
			"%s: got %v: %s\nremedy: %s", name, v.Status, v.Evidence, v.Remedy)
	}
}

// Every promised controller starts the ranks, each time with the variables of the user.
func TestGPUOperationsAskEveryController(t *testing.T) {
	s, box := cudaOnGPUs()
	gpuAllreduce.Check(t.Context(), s)
	gpuTrainStep.Check(t.Context(), s)
	var launched []string
	for i, c := range box.asked {
		job := (&recorder{asked: box.asked}).launch(t, i)
		launched = append(launched, fmt.Sprint(c.Name, job.Meet))
		check.That(t, c.Env["NCCL_NVLS_ENABLE"] == "0" && len(job.Parts) == 2 && job.Meet != (len(job.Launcher) > 0),
			"got %+v with %v", job, c.Env)
	}
	check.Same(t, "launched", "gpu-allreducefalse, gpu-allreducetrue, gpu-train-stepfalse, gpu-train-steptrue", strings.Join(launched, ", "))
}

func TestTrainingOnGPUs(t *testing.T) {
	s, box := cudaOnGPUs()
	judged(t, gpuTrainStep.Check(t.Context(), s), verdict.Pass, "gloo: 7 cases on 2 ranks")
	s.Framework = Box(container{})
	judged(t, gpuTrainStep.Check(t.Context(), s), verdict.Fail, `its results lie on "cpu", not on a GPU`)
	s.Device = nil
	v := gpuTrainStep.Check(t.Context(), s)
	check.That(t, v.Status == verdict.NotMeasured && len(box.asked) == 2, "%+v", v)
}

// Results are exact in every type, and no rank alone has them.
func TestGPUCases(t *testing.T) {
	for _, ranks := range []int{2, 3, 8, 16} {
		cases := must.Get(gpuCases([]string{"allreduce", "allgather", "broadcast", "alltoall", "reducescatter"}, ranks, random(nil, "gpu")))(t)
		seen := map[string]bool{}
		for _, c := range cases {
			check.That(t, !seen[c.Name], "%s stands there twice", c.Name)
			seen[c.Name] = true
			largest := map[string]float64{"int8": 127, "uint8": 255, "float16": 2048}[c.Type]
			same := 0
			for rank := range ranks {
				for i, tensor := range c.right(rank) {
					for _, v := range tensor.Values {
						check.That(t, v == float64(int(v)) && v >= 0 && (largest <= 0 || v <= largest),
							"%s of %d ranks: %v", c.Name, ranks, v)
					}
					check.That(t, len(tensor.Values)*c.Repeat == tensor.Shape[0]*tensor.Shape[1],
						"%s of %d ranks: %d values for the shape %v", c.Name, ranks, len(tensor.Values), tensor.Shape)
					if slices.Equal(tensor.Values, c.in[rank][i].Values) {
						same++
					}
				}
			}
			check.That(t, same != ranks*len(c.in[0]), "%s of %d ranks: every rank has its result before the call", c.Name, ranks)
		}
	}
}

// The right results of three ranks, by rows. Row n of rank r has the number 10r+n, and its
// elements begin with the number.
func TestGPUResults(t *testing.T) {
	const ranks = 3
	rows := func(numbers ...int) (all []float64) {
		for _, n := range numbers {
			all = append(all, float64(10*n+1), float64(10*n+2), float64(10*n+3))
		}
		return all
	}
	everywhere := func(values ...float64) [ranks][]float64 { return [ranks][]float64{values, values, values} }
	for name, c := range map[string]struct {
		held  [ranks]int // rows
		right [ranks][]float64
	}{
		"allgather":             {[ranks]int{1, 2, 3}, everywhere(rows(0, 10, 11, 20, 21, 22)...)},
		"broadcast":             {[ranks]int{1, 1, 1}, everywhere(rows(20)...)},
		"alltoall":              {[ranks]int{6, 6, 6}, [ranks][]float64{rows(0, 10, 20), rows(1, 2, 11, 12, 21, 22), rows(3, 4, 5, 13, 14, 15, 23, 24, 25)}},
		"reducescatter Sum":     {[ranks]int{4, 4, 4}, [ranks][]float64{{303, 306, 309, 333, 336, 339}, {363, 366, 369}, {393, 396, 399}}},
		"reducescatter Average": {[ranks]int{4, 4, 4}, [ranks][]float64{{101, 102, 103, 111, 112, 113}, {121, 122, 123}, {131, 132, 133}}},
		"allreduce Min":         {[ranks]int{1, 1, 1}, everywhere(1, 2, 3)},
		"allreduce Max":         {[ranks]int{1, 1, 1}, everywhere(201, 202, 203)},
		"allreduce Product":     {[ranks]int{1, 1, 1}, everywhere(1*101*201, 2*102*202, 3*103*203)},
	} {
		op, reduce, _ := strings.Cut(name, " ")
		try := gpuCase{gpuCall: gpuCall{Op: op, Reduce: reduce, Root: 2, Repeat: 5}}
		for rank, n := range c.held {
			var mine gpuTensor
			for i := range n {
				mine.Values = append(mine.Values, rows(10*rank+i)...)
			}
			try.in = append(try.in, []gpuTensor{mine})
		}
		for rank, want := range c.right {
			right := try.right(rank)
			check.That(t, len(right) == 1 && slices.Equal(right[0].Values, want) && slices.Equal(right[0].Shape, []int{5 * len(want) / 3, 3}),
				"%s, rank %d: %v, want %v", name, rank, right, want)
		}
	}
}
