package gate

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/internal/gates/verdict"
	"builder/test/kit/check"
	"builder/test/kit/elftest"
	"builder/test/kit/must"
)

// badLies lists wheels that answer the questions of the gates in the place of what they
// should do. Each is made from a good one.
func badLies() []bad {
	const (
		lookAgain = "not-measured never counts as a pass"
		wrongly   = "would hang or compute wrongly"
	)
	early := func(e *ranksEnd) {
		for _, r := range e.Ranks {
			r.End, r.Exit = false, at(0)
		}
	}
	return []bad{
		refused("a wheel that never loads its extension", horovodROCm, func(s *specimen) { s.box.mapped = []mappedFile{} },
			"allreduce-2", "rank 0: its process maps no horovod/tensorflow/mpi_lib.cpython-311-x86_64-linux-gnu.so of the wheel", wrongly,
			"import launcher train-step"),
		refused("a wheel that loads another library in the place of its extension", horovodROCm, func(s *specimen) {
			s.box.mapped = []mappedFile{{"/env/lib/python3.11/site-packages/" + s.extension, strings.Repeat("0", 64)}}
		}, "allreduce-2", "that is not the wheel's", wrongly, "import launcher train-step"),
		refused("ranks that report and end themselves with 0", horovodROCm, func(s *specimen) { s.box.end = inTraining(early) },
			"train-step", "rank 0 ended before its end: exit 0", "would train wrongly or stop"),
		refused("horovodrun that starts nothing and says that all went well", horovodROCm, func(s *specimen) {
			s.box.end = func(l launch, e *ranksEnd) {
				if l.Launcher[0] == "horovodrun" {
					e.Ranks, e.Exit = make([]*rankEnd, len(e.Ranks)), at(0)
				}
			}
		}, "launcher", "rank 0 did not start: horovodrun: exit 0", lookAgain).unmeasured(),
		refused("an import that ends its process with 0", horovodROCm, func(s *specimen) {
			s.box.question = func(gate string, a *answer) {
				if gate == "import" {
					a.End, a.Exit = false, at(0)
				}
			}
		}, "import", "the process ended with exit 0 before the import had", "does not fit the installed framework"),
		refused("an import that makes every exit status 0", horovodROCm, func(s *specimen) {
			s.box.question = func(gate string, a *answer) {
				if gate == "import" {
					a.Exit = at(0)
				}
			}
		}, "import", "the program ended with 33, and its process with 0: a job that fails looks like one that did not", "does not fit the installed framework"),
		refused("an import that waits for connections from the network", horovodROCm, func(s *specimen) {
			s.box.question = func(gate string, a *answer) {
				if gate == "import" {
					a.Sockets = []string{"tcp 00000000:5C9D"}
				}
			}
		}, "import", "it opens the network with tcp 00000000:5C9D", "does not fit the installed framework"),
		refused("an import that sends datagrams", horovodROCm, func(s *specimen) {
			s.box.question = func(gate string, a *answer) {
				if gate == "import" {
					a.all.Datagrams = 2
				}
			}
		}, "import", "it sends 2 datagrams", "does not fit the installed framework"),
		refused("an import that writes over the code of another library in memory", horovodROCm, func(s *specimen) {
			s.box.question = func(gate string, a *answer) {
				if gate == "import" {
					a.Patched = []string{"/usr/lib/x86_64-linux-gnu/libcrypto.so.3"}
				}
			}
		}, "import", `its process writes over the code of "/usr/lib/x86_64-linux-gnu/libcrypto.so.3" in memory`, "does not fit the installed framework"),
		refused("an import that starts a process which runs on", horovodROCm, func(s *specimen) {
			s.box.question = func(gate string, a *answer) {
				if gate == "import" {
					a.all.Left = []string{"python"}
				}
			}
		}, "import", "it starts python, which runs on after its process has ended", "has a reason to start a process of its own"),
		refused("an import that writes a file for the next start of Python", horovodROCm, func(s *specimen) {
			s.box.question = func(gate string, a *answer) {
				if gate == "import" {
					a.all.Written = []string{"/opt/venv/lib/python3.11/site-packages/sitecustomize.py"}
				}
			}
		}, "import", `it writes "/opt/venv/lib/python3.11/site-packages/sitecustomize.py"`, "or to write a file when it is loaded"),
		refused("ranks that write to the home of their user", horovodROCm, func(s *specimen) {
			s.box.end = inTraining(func(e *ranksEnd) { e.Written = []string{"/gate/.config/a"} })
		}, "train-step", `the ranks wrote "/gate/.config/a"`, "would train wrongly or stop"),
		refused("an extension that answers for the functions of another library", horovodROCm, func(s *specimen) {
			s.library().Exported = append(slices.Clone(s.library().Exported), elftest.Symbol{Name: "X509_verify_cert", Code: []byte{0xb8, 1, 0, 0, 0, 0xc3}})
		}, "elf-symbols", "exports X509_verify_cert: Horovod loads it for all, and libraries loaded later call these", "read the gate elf-needed"),
		refused("an extension that needs a library of the image which nobody promised", horovodROCm, func(s *specimen) {
			s.library().Needed = append(slices.Clone(s.library().Needed), "libze_loader.so.1")
			s.box.libraries["libze_loader.so.1"] = []string{}
		}, "elf-needed", "needs libze_loader.so.1, which nobody promised", "correct expect.elf-needed if the promise is wrong"),
		refused("an extension with an allocator of its own for the whole process", horovodROCm, func(s *specimen) {
			s.library().Exported = append(slices.Clone(s.library().Exported), elftest.Symbol{Name: "_Znwm", Weak: true})
		}, "elf-symbols", "exports _Znwm: Horovod loads it for all", "read the gate elf-needed"),
		refused("an extension with a handler of crashes for the whole process", horovodROCm, func(s *specimen) {
			s.library().Exported = append(slices.Clone(s.library().Exported), elftest.Symbol{Name: "_ZSt9terminatev"})
		}, "elf-symbols", "exports _ZSt9terminatev: Horovod loads it for all", "read the gate elf-needed"),
		refused("an extension that can do without its reduction", horovodROCm, func(s *specimen) {
			s.library().Undefined = append(slices.Clone(s.library().Undefined), elftest.Symbol{Name: "cclAllReduce", Weak: true})
		}, "elf-symbols", "requires 1 symbols missing from all its libraries: cclAllReduce", "missing from the link line"),
		refused("a rank that reports for two", horovodROCm, func(s *specimen) {
			s.box.end = inTraining(func(e *ranksEnd) {
				last := len(e.Ranks[1].Lines) - 1
				e.Ranks[0].Lines = append(e.Ranks[0].Lines, e.Ranks[1].Lines[last])
				e.Ranks[1].Lines = e.Ranks[1].Lines[:last]
			})
		}, "train-step", "rank 0 reported optimizer-alone 2 times", "would train wrongly or stop"),
		refused("results of an earlier task", horovodROCm, func(s *specimen) {
			s.box.ring = func(r *ringReport) {
				r.Allreduce, r.Allgather, r.Broadcast = []float64{3, 30}, []float64{1, 10, 2, 20}, []float64{2, 20}
			}
		}, "allreduce-2", "rank 0: allreduce gave [3 30], expected [", wrongly, "launcher"),
		refused("a reduction that happens among two ranks only", horovodROCm, func(s *specimen) {
			s.box.ring = func(r *ringReport) {
				if r.Size > 2 {
					r.Allreduce = r.Allgather[5*r.Rank : 5*r.Rank+5]
				}
			}
		}, "launcher", "rank 0: allreduce gave the rank's own input", "compare with the gate allreduce-2"),
		refused("ranks that start a process which runs on", horovodROCm, func(s *specimen) {
			s.box.end = inTraining(func(e *ranksEnd) { e.Left = []string{"python"} })
		}, "train-step", `the ranks started "python", which run on after their end`, "would train wrongly or stop"),
		refused("an extension that takes the largest for the smallest", horovodROCm, func(s *specimen) {
			s.box.ring = func(r *ringReport) { r.More["Min of int64"] = r.More["Max of int64"] }
		}, "allreduce-2", "rank 0: Min of int64 gave [", wrongly, "launcher"),
		refused("an extension that loses the sums of a type", horovodROCm, func(s *specimen) {
			s.box.ring = func(r *ringReport) { delete(r.More, "Sum of float16") }
		}, "allreduce-2", "rank 0: Sum of float16 gave []", wrongly, "launcher"),
		refused("an extension that adds integers of 64 bits in 32", horovodROCm, func(s *specimen) {
			s.box.ring = func(r *ringReport) {
				for i, sum := range r.More["Sum of int64"] {
					r.More["Sum of int64"][i] = float64(int32(int64(sum)))
				}
			}
		}, "allreduce-2", "rank 0: Sum of int64 gave [", wrongly, "launcher"),
		refused("an extension that adds numbers of 64 bits in 32", horovodROCm, func(s *specimen) {
			s.box.ring = func(r *ringReport) {
				for i, sum := range r.More["Sum of float64"] {
					r.More["Sum of float64"][i] = float64(float32(sum))
				}
			}
		}, "allreduce-2", "rank 0: Sum of float64 gave [", wrongly, "launcher"),
		refused("an extension whose reducescatter adds nothing", horovodROCm, func(s *specimen) {
			s.box.ring = func(r *ringReport) { r.More["reducescatter of float64"][0] /= 2 }
		}, "allreduce-2", "rank 0: reducescatter of float64 gave [", wrongly, "launcher"),
		refused("an extension that reduces in a process set over all ranks", horovodROCm, func(s *specimen) {
			s.box.ring = func(r *ringReport) {
				if r.More["Sum in a process set of float32"] != nil {
					r.More["Sum in a process set of float32"] = r.More["Sum of float32"]
				}
			}
		}, "launcher", "rank 0: Sum in a process set of float32 gave [", "compare with the gate allreduce-2"),
		refused("an extension that sends parts of the first rank's size", horovodROCm, func(s *specimen) {
			s.box.ring = func(r *ringReport) { r.More["allgather of int8"] = r.More["allgather of int8"][:r.Size] }
		}, "allreduce-2", "rank 0: allgather of int8 gave [", wrongly, "launcher"),
		refused("an extension that adds tensors of different shapes", horovodROCm, func(s *specimen) {
			s.box.ring = func(r *ringReport) { r.Refused = mismatches[1:] }
		}, "allreduce-2", "rank 0: a collective of ranks with different lengths was no error", wrongly, "launcher"),
		refused("an extension that adds tensors of different types", horovodROCm, func(s *specimen) {
			s.box.ring = func(r *ringReport) { r.Refused = slices.Delete(slices.Clone(mismatches), 1, 2) }
		}, "allreduce-2", "rank 0: a collective of ranks with different types was no error", wrongly, "launcher"),
		refused("an extension that reduces no more after 1000 calls", horovodROCm, func(s *specimen) {
			s.box.ring = func(r *ringReport) {
				if calls := r.More[callsCase]; calls != nil {
					calls[len(calls)-1]--
				}
			}
		}, "allreduce-2", "rank 0: calls of float32 gave [", wrongly),
		refused("an extension that loses memory in each call", horovodROCm, func(s *specimen) {
			s.box.ring = func(r *ringReport) {
				if r.More[growthCase] != nil {
					r.More[growthCase][0] = 64
				}
			}
		}, "allreduce-2", "rank 0: its memory grows by 64 MiB in calls that need none", wrongly),
		refused("a process that does not say how its memory grows", horovodROCm, func(s *specimen) {
			s.box.ring = func(r *ringReport) { delete(r.More, growthCase) }
		}, "allreduce-2", "rank 0: it does not report by how much its memory grows", wrongly),
		refused("an extension that rounds sums down", horovodROCm, func(s *specimen) {
			s.box.ring = func(r *ringReport) { r.Extremes[6] = "1.0" }
		}, "allreduce-2", "4.76837158203125e-07 1.0 1.0], expected [nan", wrongly, "launcher"),
		refused("a wheel that hides the GPUs from its process", horovodROCm, func(s *specimen) {
			s.box.ring = func(r *ringReport) {
				if r.Size > 2 {
					r.Changed = []string{"the environment variable HIP_VISIBLE_DEVICES"}
				}
			}
		}, "launcher", `rank 0: Horovod changes "the environment variable HIP_VISIBLE_DEVICES"`, "compare with the gate allreduce-2"),
		refused("a rank that fails and ends with 0", horovodROCm, func(s *specimen) {
			s.box.end = inTraining(func(e *ranksEnd) {
				for _, r := range e.Ranks {
					r.Exit = at(0)
				}
			})
		}, "train-step", "failed, and its process ended with 0: a job that fails looks like one that did not", "would train wrongly or stop"),
		refused("horovodrun that ends with 0 when a rank fails", horovodROCm, func(s *specimen) {
			s.box.end = func(l launch, e *ranksEnd) {
				if l.Launcher[0] == "horovodrun" {
					e.Exit = at(0)
				}
			}
		}, "launcher", "failed, and horovodrun ended with 0: a job that fails looks like one that did not", "compare with the gate allreduce-2"),
		refused("an extension whose ranks all are the first of a process set", horovodROCm, func(s *specimen) {
			s.box.ring = func(r *ringReport) {
				if place := r.More["place in a process set"]; place != nil {
					place[0] = 0
				}
			}
		}, "launcher", "rank 2: place in a process set gave [0 2], expected [1 2]", "compare with the gate allreduce-2"),
		refused("an extension with cycles of 100 ms, whatever its user sets", horovodROCm, func(s *specimen) {
			s.box.ring = func(r *ringReport) { r.Pace = 5 }
		}, "launcher", "rank 0: with HOROVOD_CYCLE_TIME=20 an allreduce takes 5.0 cycles at best, expected at most 3", "compare with the gate allreduce-2"),
		refused("an extension that does not measure its pace", horovodROCm, func(s *specimen) {
			s.box.ring = func(r *ringReport) { r.Pace = 0 }
		}, "launcher", "takes 0.0 cycles at best", "compare with the gate allreduce-2"),
		refused("an extension without a check for ranks that stall", horovodROCm, func(s *specimen) {
			s.box.ring = func(r *ringReport) { r.Stalled = false }
		}, "launcher", "rank 0: it did not warn that rank 1 holds up the others", "compare with the gate allreduce-2"),
		refused("an extension that does not add eight bits", horovodROCm, func(s *specimen) {
			s.box.ring = func(r *ringReport) { r.More["Sum of int8"] = []float64{1, 2, 3, 4, 5} }
		}, "launcher", "rank 0: Sum of int8 gave [1 2 3 4 5], expected [", "compare with the gate allreduce-2", "allreduce-2"),
		refused("an extension that prefers the system's libraries to those of a module", horovodROCm, func(s *specimen) {
			s.library().Rpath, s.library().Runpath = "/usr/lib/x86_64-linux-gnu", ""
		}, "elf-needed", `in "/usr/lib/x86_64-linux-gnu" before LD_LIBRARY_PATH`, "correct expect.elf-needed if the promise is wrong"),
		refused("flags that the extension does not return", horovodROCm, func(s *specimen) {
			s.box.flags = map[string]string{"nccl": "0", "rocm": "true", "cuda": "false", "mpi": "true", "gloo": "false", "ddl": "false", "ccl": "false"}
		}, "built-flags", "nccl_built() of the module is 21304, and that of its extension is 0", "another stack than the cell's"),
		refused("a listing and flags with Gloo, of an extension without", horovodROCm, func(s *specimen) {
			s.expect.Gates["check-build"] = buildSettings{Controllers: []string{"MPI", "Gloo"}, Operations: []string{"NCCL"}}
			s.expect.Gates["built-flags"].(map[string]string)["gloo"] = "true"
			s.replace("check-build", "[ ] Gloo\n\n", "[X] Gloo\n\n")
			s.replace("built-flags", `"gloo": "false"`, `"gloo": "true"`)
		}, "check-build", "[X] of gloo is a claim that the extension's bytes deny", "was not compiled in", "built-flags"),
		refused("a second answer of another process", horovodROCm, func(s *specimen) {
			for _, asked := range strings.Fields("framework import platform check-build built-flags rendezvous allreduce-2 train-step") {
				s.box.answers["ranks.py of "+asked] = Result{Output: `{"nonce": "", "ends": []}` + "\n"}
			}
		}, "allreduce-2", "exit 0 and 0 answers", lookAgain, "import platform check-build built-flags rendezvous train-step").unmeasured(),
	}
}

func init() {
	grace, manyCalls, repeats, vastCount, groupOfRanks, largeCount = 5, 20, [][2]int{{1013, 1}, {1, 1}}, 1009, 12, 10007
}

// standIns are modules in the place of PyTorch and Horovod: the ranks exchange their
// values by the key-value server at which ranks with Gloo meet, and load the extension.
var standIns = map[string]string{
	"torch.py": `
import array
class T(list):
    def tolist(self): return list(self)
    def numpy(self): return self
    def reshape(self, *shape): return self
    def tobytes(self): return array.array("f", self).tobytes()
    permute = reshape
    def min(self): return min(self)
    def max(self): return max(self)
    def __getitem__(self, at): return T(list.__getitem__(self, at)) if isinstance(at, slice) else list.__getitem__(self, at)
def tensor(values, dtype=None):
    made = T(values)
    made.kind, made.half = "f" if dtype in (None, "half") else dtype, dtype == "half"
    return made
def tile(t, times): return tensor(t * times[0])
float16 = "half"
float32 = uint8 = int8 = int16 = None
float64 = int32 = int64 = "d"
__version__ = "2.6.0"
`,
	"horovod/__init__.py": "",
	"horovod/torch/__init__.py": `
import array, ctypes, http.client, json, math, os, sys, time, zlib
import torch
from horovod.torch.mpi_ops import library
Sum, Average, Min, Max, Product = sum, lambda all: sum(all) / len(all), min, max, math.prod
class ProcessSet:
    def __init__(self, ranks): self.ranks = ranks
    def included(self): return rank() in self.ranks
    def rank(self): return self.ranks.index(rank())
    def size(self): return len(self.ranks)
def rank(): return int(os.environ["HOROVOD_RANK"])
def size(): return int(os.environ["HOROVOD_SIZE"])
local_rank, local_size, cross_rank, cross_size = rank, size, lambda: 0, lambda: 1
def init(process_sets=()): pass
def warn(n): os.write(2, b"Missing ranks:\n%d: [x]\n" % n)
def ask(method, key, body=None):
    late = time.monotonic() + float(os.environ.get("HOROVOD_STALL_CHECK_TIME_SECONDS", 60))
    while True:
        server = http.client.HTTPConnection(os.environ["HOROVOD_GLOO_RENDEZVOUS_ADDR"], int(os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"]))
        server.request(method, "/" + key, body)
        answer = server.getresponse()
        if answer.status < 400: return answer.read()
        time.sleep(0.01)
        if time.monotonic() > late and rank() == 0: warn(int(key[-1]))
calls = {}
def everyones(mine, kind="x", among=None):
    calls[kind] = call = calls.get(kind, 0) + 1
    bits = getattr(mine, "kind", "f")
    ask("PUT", "%s/%d-%d" % (kind, call, rank()), array.array(bits, mine).tobytes())
    return [list(array.array(bits, ask("GET", "%s/%d-%d" % (kind, call, n)))) for n in among or range(size())]
def agree(kind, *what):
    mine = torch.T([zlib.crc32(repr(what).encode())])
    mine.kind = "L"
    if any(theirs != mine for theirs in everyones(mine, "agree.%s" % kind)): raise ValueError("ranks differ")
def allreduce(t, op, prescale_factor=1, name=None, process_set=None):
    if not process_set: agree(name, op.__name__, prescale_factor, getattr(t, "kind", "f"))
    sums = (op(values) * prescale_factor for values in zip(*everyones(t, name or "x", process_set and process_set.ranks), strict=True))
    if getattr(t, "half", False): sums = (v if abs(v) < 65520 else math.copysign(math.inf, v) for v in sums)
    return torch.T(array.array(getattr(t, "kind", "f"), sums))
def grouped_allreduce(group, op): return [allreduce(t, op, name="group") for t in group]
def reducescatter(t, op):
    each, more = divmod(len(t), size())
    first = rank() * each + min(rank(), more)
    return allreduce(t, op)[first:first + each + (rank() < more)]
def alltoall(t, splits):
    counts = [[int(n) for n in row] for row in everyones(splits)]
    firsts = [sum(row[:rank()]) for row in counts]
    return torch.T(v for row, first, n in zip(everyones(t), firsts, counts) for v in row[first:first + n[rank()]])
def allgather(t, name=None):
    agree(name, getattr(t, "kind", "f"))
    return torch.T(sum(everyones(t, name or "x"), []))
def broadcast(t, root_rank, name=None, process_set=None):
    if process_set: return torch.T(everyones(t, name, process_set.ranks)[process_set.ranks.index(root_rank)])
    agree(name, root_rank, len(t))
    return torch.T(everyones(t)[root_rank])
nccl_built = lambda: 22203
cuda_built = mpi_built = lambda: True
rocm_built = gloo_built = ddl_built = ccl_built = lambda: False
`,
	"horovod/torch/mpi_ops.py": `
import ctypes, glob, os
library = ctypes.CDLL(glob.glob(os.path.dirname(os.path.abspath(__file__)) + "/mpi_lib_v2*.so")[0])
`,
}

// returns is a function of the extension that returns a number.
func returns(name string, number byte) elftest.Symbol {
	return elftest.Symbol{Name: name, Code: []byte{0xb8, number, 0, 0, 0, 0xc3}}
}

// onThisHost installs the wheel with changed modules. Its ranks are real processes.
func onThisHost(t *testing.T, change map[string]string) Subject {
	t.Helper()
	h := newHost(t)
	s := horovodCUDA()
	s.expect.Launcher = "gloo"
	l := s.library()
	l.Needed, l.Runpath = nil, ""
	l.Undefined = slices.DeleteFunc(l.Undefined, func(s elftest.Symbol) bool { return s.Library != "" })
	l.Undefined = append(l.Undefined, elftest.Named("cudaMalloc")...)
	l.Exported = []elftest.Symbol{{Name: "horovod_nccl_built", Code: []byte{0xb8, 0xbb, 0x56, 0, 0, 0xc3}}} // 22203
	for name, number := range map[string]byte{"rocm": 0, "cuda": 1, "mpi": 1, "gloo": 0, "ddl": 0, "ccl": 0} {
		l.Exported = append(l.Exported, returns("horovod_"+name+"_built", number))
	}
	h.install(t, s)
	for name, text := range standIns {
		if changed, ok := change[name]; ok {
			text = strings.Replace(changed, "GOOD", text, 1)
		}
		path := filepath.Join(h.site, name)
		must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755))
		write(t, path, []byte(text))
	}
	subject := s.subject(t)
	subject.Box = h
	return subject
}

// Lying wheels, with real processes. A liar is refused by the gate that names its lie,
// and the honest wheel passes.
func TestLyingWheels(t *testing.T) {
	t.Parallel()
	const horovod, ops = "horovod/torch/__init__.py", "horovod/torch/mpi_ops.py"
	for name, c := range map[string]struct {
		change map[string]string
		gate   Gate
		says   string // "" if it passes
	}{
		"honest":                         {nil, allreduce2, ""},
		"honest, its import":             {nil, importModule, ""},
		"honest, with Keras":             {map[string]string{ops: "GOOD\nsettings = os.environ['KERAS_HOME'] + '/keras.json'\nif not os.path.exists(settings): open(settings, 'w')"}, importModule, ""},
		"honest, its flags":              {nil, builtFlags, ""},
		"the reduction is skipped":       {map[string]string{horovod: "GOOD\nallreduce = lambda t, op, **more: t"}, allreduce2, "rank 0: allreduce gave the rank's own input"},
		"only small tensors are reduced": {map[string]string{horovod: "GOOD\nreduced = allreduce\nallreduce = lambda t, op, **more: reduced(t, op) if len(t) < 1000 else t"}, allreduce2, "rank 0: the sum of a large tensor is wrong"},
		"no rank hears of a NaN": {map[string]string{horovod: "GOOD\nreduced = allreduce\nallreduce = lambda t, op, **more: torch.T([0.0 if v != v else v for v in reduced(t, op)])"}, allreduce2,
			"rank 0: the sum of [[nan inf 1 -inf 1e-45 2.384185791015625e-07 1 1] [1 2 nan 3 1e-45 2.384185791015625e-07 9e-08 4e-08]] is [0.0 inf 0.0 -inf 2.802596928649634e-45 4.76837158203125e-07 1.0000001192092896 1.0], expected [nan inf nan"},
		"only small tensors are sent":             {map[string]string{horovod: "GOOD\nsent = broadcast\nbroadcast = lambda t, root_rank, **more: sent(t, root_rank, **more) if len(t) < 1000 else t"}, allreduce2, "the broadcast of a large tensor is wrong"},
		"every collective is skipped":             {map[string]string{horovod: "GOOD\nallgather = allreduce = lambda t, op=None, **more: t\nbroadcast = lambda t, root_rank, **more: t"}, allreduce2, "allgather gave the rank's own input"},
		"every rank is the first of its host":     {map[string]string{horovod: "GOOD\nlocal_rank = lambda: 0"}, allreduce2, "rank 1: its local rank and size, and its cross rank and size, are [0 2 0 1], expected [1 2 0 1]"},
		"the extension is never loaded":           {map[string]string{ops: "library = None"}, allreduce2, "rank 0: its process maps no horovod/torch/mpi_lib_v2"},
		"the extension is never imported":         {map[string]string{ops: "library = None"}, importModule, "its process maps no horovod/torch/mpi_lib_v2"},
		"the import leaves a process":             {map[string]string{ops: "GOOD\nif os.fork() == 0:\n    os.setsid()\n    os.closerange(0, 99)\n    import time\n    time.sleep(99)"}, importModule, "which runs on after its process has ended"},
		"the import hides exit statuses":          {map[string]string{ops: "GOOD\nimport atexit\natexit.register(os._exit, 0)"}, importModule, "the program ended with 33, and its process with 0"},
		"the import waits for connections":        {map[string]string{ops: "GOOD\nimport socket\nwaiting = socket.create_server(('127.0.0.1', 0))"}, importModule, "it opens the network with tcp 0100007F:"},
		"the import writes over code":             {map[string]string{ops: "GOOD\nat = ctypes.cast(library.horovod_mpi_built, ctypes.c_void_p).value & -4096\nctypes.CDLL(None).mprotect(ctypes.c_void_p(at), 4096, 7)\nctypes.memmove(at, at, 1)\nctypes.CDLL(None).mprotect(ctypes.c_void_p(at), 4096, 5)"}, importModule, "its process writes over the code of \""},
		"the import writes beside the packages":   {map[string]string{ops: "GOOD\nopen(os.path.dirname(__file__) + '/../../sitecustomize.py', 'w')"}, importModule, "/sitecustomize.py\""},
		"the import writes to the home":           {map[string]string{ops: "GOOD\nos.makedirs(os.path.expanduser('~/.config/a'))"}, importModule, "/.config/a\""},
		"the import writes the settings of Keras": {map[string]string{ops: "GOOD\nopen(os.environ['KERAS_HOME'] + '/keras.json', 'w')"}, importModule, "/keras.json\""},
		"the import changes a file and its time":  {map[string]string{ops: "GOOD\nimport torch\nopen(torch.__file__, 'a').write('#')\nos.utime(torch.__file__, (1, 1))"}, importModule, "/torch.py\""},
		"the import removes a module":             {map[string]string{ops: "GOOD\nimport torch\nos.remove(torch.__file__)"}, importModule, "/site-packages\""},
		"a rank writes to the home":               {map[string]string{horovod: "GOOD\ndef init(): open(os.path.expanduser('~/.a'), 'w')"}, allreduce2, "the ranks wrote \""},
		"the import ends the process":             {map[string]string{ops: "import os\nos._exit(0)"}, importModule, "exit 0 before the import had"},
		"the process is killed with success":      {map[string]string{horovod: "GOOD\nimport json, sys\nprint(json.dumps({'case': 'collectives', 'rank': 0, 'size': 2}))\nsys.stdout.flush()\nos._exit(0)"}, allreduce2, "rank 0 reported its collectives 0 times"},
		"json is patched":                         {map[string]string{horovod: "GOOD\nallreduce = lambda t, op, **more: t\nimport asked\nasked._dumps = lambda said: json.dumps(dict(said, allreduce=[3.0, 30.0]))"}, allreduce2, "allreduce gave [3 30], expected ["},
		"an answer on standard output":            {map[string]string{horovod: "GOOD\nallreduce = lambda t, op, **more: t\nprint('{\"nonce\": \"0\", \"exit\": 0, \"log\": \"\", \"ranks\": []}')"}, allreduce2, "allreduce gave the rank's own input"},
		"one rank works for both": {map[string]string{horovod: "import os\nif os.environ['HOROVOD_RANK'] == '1': os._exit(0)\nGOOD"}, allreduce2,
			"rank 1 ended before its end: exit 0"},
		"results come from a file":            {map[string]string{horovod: "GOOD\nallreduce = lambda t, op, **more: torch.T([3.0, 30.0])"}, allreduce2, "allreduce gave [3 30], expected ["},
		"a part is reported twice":            {map[string]string{horovod: "GOOD\nimport asked\nonce = asked.report\ndef twice(**said):\n    once(**said)\n    once(**said)\nasked.report = twice"}, allreduce2, "reported its collectives 2 times"},
		"Python lies about the extension":     {map[string]string{horovod: "GOOD\nnccl_built = lambda: 22204"}, builtFlags, "nccl_built() of the module is 22204, and that of its extension is 22203"},
		"types are mixed":                     {map[string]string{horovod: "GOOD\nagree = lambda *what: None"}, allreduce2, "rank 0: a collective of ranks with different operations was no error"},
		"no call after the tenth":             {map[string]string{horovod: "GOOD\nreduced = allreduce\nallreduce = lambda t, op, **more: t if calls.get('call.10') else reduced(t, op, **more)"}, allreduce2, "rank 0: calls of float32 gave ["},
		"it hides the GPUs":                   {map[string]string{horovod: "GOOD\nos.environ['HIP_VISIBLE_DEVICES'] = ''"}, allreduce2, `rank 0: Horovod changes "the environment variable HIP_VISIBLE_DEVICES" "the environment variable HIP_VISIBLE_DEVICES of C"`},
		"C hides the GPUs":                    {map[string]string{horovod: "GOOD\nctypes.CDLL(None).setenv(b'HIP_VISIBLE_DEVICES', b'', 1)"}, allreduce2, `rank 0: Horovod changes "the environment variable HIP_VISIBLE_DEVICES of C"`},
		"C ignores crashes":                   {map[string]string{horovod: "GOOD\nctypes.CDLL(None).signal(11, ctypes.c_void_p(1))"}, allreduce2, `Horovod changes "the signals SigIgn"`},
		"the log is silent":                   {map[string]string{horovod: "GOOD\nimport logging\nlogging.disable(50)"}, allreduce2, `Horovod changes "logging"`},
		"random numbers begin again":          {map[string]string{horovod: "GOOD\nimport random\nreduced = allreduce\ndef allreduce(t, op, **more):\n    random.seed(0)\n    return reduced(t, op, **more)"}, allreduce2, `Horovod changes "random"`},
		"small averages are lost":             {map[string]string{horovod: "GOOD\nreduced = allreduce\nallreduce = lambda t, op, **more: torch.T([0.0 if op is Average and abs(v) < 1e-6 else v for v in reduced(t, op, **more)])"}, allreduce2, "rank 0: the average of [["},
		"a broadcast changes its input":       {map[string]string{horovod: "GOOD\nsent = broadcast\ndef broadcast(t, root_rank, **more):\n    t[:] = sent(t, root_rank, **more)\n    return torch.T(t)"}, allreduce2, `Horovod changes "the input of collectives"`},
		"a group loses its fifth tensor":      {map[string]string{horovod: "GOOD\ngroup = grouped_allreduce\ngrouped_allreduce = lambda all, op: group(all[:4], op) + all[4:]"}, allreduce2, "rank 0: together of float32 gave ["},
		"each call keeps its tensor":          {map[string]string{horovod: "GOOD\nkept, reduced = [], allreduce\ndef allreduce(t, op, **more):\n    if len(t) > 1000: kept.append(b'x' * (20 << 20))\n    return reduced(t, op, **more)"}, allreduce2, "rank 0: its memory grows by 2"},
		"sums of float16 are finite":          {map[string]string{horovod: "GOOD\nreduced = allreduce\ndef allreduce(t, op, **more):\n    sums = reduced(t, op, **more)\n    return torch.T(max(-65504.0, min(65504.0, v)) for v in sums) if getattr(t, 'half', False) else sums"}, allreduce2, "rank 0: overflow of float16 gave ["},
		"a name keeps its first factor":       {map[string]string{horovod: "GOOD\nfactors, reduced = {}, allreduce\ndef allreduce(t, op, name=None, prescale_factor=1, **more):\n    return reduced(t, op, name=name, prescale_factor=factors.setdefault(name, prescale_factor) if name else prescale_factor, **more)"}, allreduce2, "rank 0: factors of one name gave ["},
		"the end of a kernel is not added":    {map[string]string{horovod: "GOOD\nreduced = allreduce\ndef allreduce(t, op, **more):\n    sums = reduced(t, op, **more)\n    return torch.T(sums[:27] + t[27:]) if len(t) == 54 else sums"}, allreduce2, "rank 0: Sum of four dimensions gave ["},
		"a vast tensor is not added":          {map[string]string{horovod: "GOOD\nreduced = allreduce\nallreduce = lambda t, op, **more: torch.T(t) if len(t) == 5045 else reduced(t, op, **more)"}, allreduce2, "rank 0: the sum of a vast tensor is wrong"},
		"a vast tensor is reversed":           {map[string]string{horovod: "GOOD\nreduced = allreduce\nallreduce = lambda t, op, **more: torch.T(reduced(t, op, **more)[::-1 if len(t) == 5045 else 1])"}, allreduce2, "rank 0: the sum of a vast tensor is wrong"},
		"a vast sum changes its input":        {map[string]string{horovod: "GOOD\nreduced = allreduce\ndef allreduce(t, op, **more):\n    sums = reduced(t, op, **more)\n    if len(t) == 5045: t[:] = sums\n    return sums"}, allreduce2, `Horovod changes "the input of a vast sum"`},
		"a group changes its inputs":          {map[string]string{horovod: "GOOD\ndef grouped_allreduce(group, op):\n    sums = [allreduce(t, op, name='group') for t in group]\n    for t, s in zip(group, sums): t[:] = s\n    return sums"}, allreduce2, `Horovod changes "the input of a group"`},
		"a rank hears the wrong splits":       {map[string]string{horovod: "GOOD\nsent = alltoall\nalltoall = lambda t, splits: (sent(t, splits), torch.T([9, 9]))"}, allreduce2, "rank 0: received of float16 gave [9 9], expected ["},
		"a small call keeps a megabyte":       {map[string]string{horovod: "GOOD\nkept, reduced = [], allreduce\ndef allreduce(t, op, name=None, **more):\n    if name == 'memory' and len(t) == 1: kept.append(b'x' * (20 << 20))\n    return reduced(t, op, name=name, **more)"}, allreduce2, "rank 0: its memory grows by 2"},
		"shapes are mixed":                    {map[string]string{horovod: "GOOD\nreduced = allreduce\nallreduce = lambda t, op, **more: torch.T(t) if isinstance(t[0], list) else reduced(t, op, **more)"}, allreduce2, "a collective of ranks with different shapes was no error"},
		"the import lays code over a library": {map[string]string{ops: "GOOD\nlibm, libc = ctypes.CDLL('libm.so.6'), ctypes.CDLL(None)\nlibc.mmap.restype = ctypes.c_void_p\nat = ctypes.cast(libm.lgamma, ctypes.c_void_p).value & -4096\nwas = ctypes.string_at(at, 4096)\nlibc.mmap(ctypes.c_void_p(at), ctypes.c_size_t(4096), 7, 0x32, -1, ctypes.c_long(0))\nctypes.memmove(at, was, 4096)"}, importModule, "its process writes over the code of \""},
		"the import runs nameless code":       {map[string]string{ops: "GOOD\nimport mmap\ncode = os.memfd_create('code')\nos.write(code, b'x' * 4096)\nmapped = mmap.mmap(code, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)"}, importModule, "/memfd:code"},
		"a barrier lets all pass":             {map[string]string{horovod: "GOOD\nbarrier = lambda: None"}, allreduce2, "rank 0: waits at a barrier gave [0], expected [1]"},
		"other hosts can connect":             {map[string]string{horovod: "GOOD\nimport socket\nwaiting = socket.create_server(('0.0.0.0', 0))"}, allreduce2, "rank 0 waits for connections of other hosts with tcp 00000000:"},
		"a failure ends with 0":               {map[string]string{horovod: "GOOD\nimport atexit\ndef init(process_sets=()): atexit.register(os._exit, 0)"}, allreduce2, "failed, and its process ended with 0"},
		"an exception ends with 0":            {map[string]string{horovod: "GOOD\ndef init(process_sets=()): sys.excepthook = lambda *error: os._exit(0)"}, allreduce2, `Horovod changes "sys.excepthook"`},
		"a rank never ends":                   {map[string]string{horovod: "GOOD\nimport atexit\natexit.register(lambda: time.sleep(3600))"}, allreduce2, "did not exit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := onThisHost(t, c.change)
			v := c.gate.Check(t.Context(), s)
			check.That(t, (v.Status == verdict.Pass) == (c.says == "") && strings.Contains(v.Evidence, c.says), "want %q, got %+v", c.says, v)
		})
	}
}

// The right result depends on every rank.
func TestThreeRanks(t *testing.T) {
	t.Parallel()
	const horovod = "horovod/torch/__init__.py"
	for name, c := range map[string]struct{ module, says string }{
		"honest":                         {"GOOD", ""},
		"only two ranks reduce":          {"GOOD\nreduced = allreduce\nallreduce = lambda t, op, **more: reduced(t, op) if size() == 2 else t", "rank 0: allreduce gave the rank's own input"},
		"a small allreduce takes 800 ms": {"GOOD\nreduced = allreduce\ndef allreduce(t, op, **more):\n    if t == [1.0]: time.sleep(0.8)\n    return reduced(t, op, **more)", "rank 0: with HOROVOD_CYCLE_TIME=200 an allreduce takes"},
		"a large allreduce takes 800 ms": {"GOOD\nreduced = allreduce\ndef allreduce(t, op, **more):\n    if len(t) > 1000: time.sleep(0.8)\n    return reduced(t, op, **more)", "rank 0: with HOROVOD_CYCLE_TIME=200 an allreduce takes"},
		"a set hears its first rank":     {"GOOD\nsent = broadcast\ndef broadcast(t, root_rank, process_set=None, **more):\n    return sent(t, process_set.ranks[0] if process_set else root_rank, process_set=process_set, **more)", "rank 0: broadcast in a process set of float32 gave ["},
		"nobody is named":                {"GOOD\nwarn = lambda n: None", "rank 0: it did not warn that rank 1 holds up the others"},
		"only the first two are reduced": {"GOOD\nallreduce = lambda t, op, **more: torch.T(map(op, zip(*everyones(t, more.get('name') or 'x', (more.get('process_set') or ProcessSet(None)).ranks)[:2])))", "rank 0: the sum of a large tensor is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := onThisHost(t, map[string]string{horovod: c.module})
			task := ringOf(s.Box, ranksOfLauncher, s.Expect)
			for i := range task {
				task[i].Large[2] = 5003
				task[i].Settings = map[string]string{"HOROVOD_CYCLE_TIME": "200", "HOROVOD_STALL_CHECK_TIME_SECONDS": "0.2"}
			}
			end := must.Get(s.in(s.Box).start(t.Context(), []string{"torch"}, nil, task.launch(s.Expect)))(t)
			v := task.judge(end, false)
			check.That(t, (v.Status == verdict.Pass) == (c.says == "") && strings.Contains(v.Evidence, c.says), "want %q, got %+v", c.says, v)
		})
	}
}

// A launcher of MPICH speaks with a rank over a descriptor that the rank inherits.
// A rank writes its answer at once: print writes twice, and two ranks share the log.
func TestRanksHearTheirLauncher(t *testing.T) {
	const mpirun = `#!/usr/bin/env python3
import os, socket, subprocess, sys
ranks = []
for n in "01":
    mine, theirs = socket.socketpair()
    env = dict(os.environ, PMI_RANK=n, PMI_FD=str(theirs.fileno()))
    ranks.append(subprocess.Popen(sys.argv[5:], env=env, pass_fds=[theirs.fileno()]))
    mine.sendall(b"rank " + n.encode())
    mine.detach()
sys.exit(max(rank.wait() for rank in ranks))
`
	bin := t.TempDir()
	must.Succeed(t, os.WriteFile(filepath.Join(bin, "mpirun"), []byte(mpirun), 0o700))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	s := onThisHost(t, map[string]string{
		"horovod/torch/__init__.py": "import os\ndef init():\n    os.write(1, b'HEARD ' + os.read(int(os.environ['PMI_FD']), 9) + b'\\n')\n    os._exit(0)\n",
	})
	s.Expect.Launcher = "mpich"
	end, err := s.in(s.Box).start(t.Context(), []string{"torch"}, nil, ringOf(s.Box, ranksOfAllreduce, s.Expect).launch(s.Expect))
	check.That(t, err == nil && strings.Contains(end.Log, "HEARD rank 0") && strings.Contains(end.Log, "HEARD rank 1"), "%+v, %v", end, err)
}

// A rank gets its own part only: nothing of the other's is in its files, its environment
// or the processes that it may read.
func TestRanksKnowTheirOwnPartOnly(t *testing.T) {
	t.Parallel()
	const spy = `GOOD
import glob
def seen():
    text = b""
    for path in glob.glob("*") + glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
        try:
            text += open(path, "rb").read()
        except OSError:
            pass
    return text
import asked
other = json.dumps(asked.part["values"]).encode()[1:-1]
print("SEEN" if seen().count(other) else "CLEAN", flush=True)
`
	s := onThisHost(t, map[string]string{"horovod/torch/__init__.py": spy})
	task := ringOf(s.Box, ranksOfAllreduce, s.Expect)
	end, err := s.in(s.Box).start(t.Context(), []string{"torch"}, nil, task.launch(s.Expect))
	check.That(t, err == nil && strings.Count(end.Log, "CLEAN") == 2 && !slices.Contains(end.Ranks, nil), "%+v, %v", end, err)
}
