package gate

import (
	"errors"
	"strings"
)

// badRuns lists bad answers of a container.
func badRuns() []bad {
	const lookAgain = "not-measured never counts as a pass"
	answers := func(gate, output string, exit int) func(*specimen) {
		return func(s *specimen) { s.box.answers[gate] = Result{Exit: exit, Output: output} }
	}
	linker := func(what, output string, exit int, says string) bad {
		return bad{what: what, of: horovodROCm, change: answers("elf-symbols", output, exit), gate: "elf-symbols", blind: true, says: says, do: lookAgain}
	}
	listed := func(what, output string, exit int, blind bool, says, do string) bad {
		return bad{what: what, of: horovodROCm, change: answers("check-build", output, exit), gate: "check-build", blind: blind, says: says, do: do}
	}
	ring := func(what, output string, exit int, blind bool, says, do string) bad {
		return bad{what: what, of: horovodROCm, change: answers("allreduce-2", output, exit), gate: "allreduce-2", blind: blind, says: says, do: do}
	}
	first, _, _ := strings.Cut(ranks, "\n")
	const mislead = "would hang or compute wrongly"
	return []bad{
		linker("the script for the dynamic linker crashes", "Segmentation fault (core dumped)\n", 139, "asking the dynamic linker: exit 139"),
		linker("the script for the dynamic linker prints nothing", "", 0, "asking the dynamic linker: exit 0: no output"),
		linker("the script for the dynamic linker leaves symbols out", `{"unloaded": {}, "missing": [], "found": {"libc.so.6": 3}}`, 0, "3 answers to 11 questions"),
		linker("the script for the dynamic linker counts below zero", `{"unloaded": {}, "missing": [], "found": {"a": 12, "b": -1}}`, 0, "12 answers to 11 questions"),
		{
			what: "the framework is missing in the run-time image", of: horovodROCm,
			change: func(s *specimen) {
				s.cannotImport("ModuleNotFoundError: No module named 'tensorflow'")
				s.box.answers["platform"] = s.box.answers["import"]
			},
			gate: "import", says: "exit 1: ModuleNotFoundError: No module named 'tensorflow'", do: "does not fit the installed framework", also: "platform check-build built-flags allreduce-2 train-step",
		},
		{
			what: "the wheel lacks the module", of: horovodROCm,
			change: func(s *specimen) {
				s.cannotImport("ModuleNotFoundError: No module named 'horovod.tensorflow.mpi_ops'")
			},
			gate: "import", says: "No module named 'horovod.tensorflow.mpi_ops'", do: "correct expect.import", also: "check-build built-flags allreduce-2 train-step",
		},
		{
			what: "the import ends in a crash", of: horovodROCm, change: answers("import", "", 139),
			gate: "import", says: "import horovod.tensorflow.mpi_ops: exit 139: no output", do: "does not fit the installed framework",
		},
		{
			what: "the engine cannot make the container", of: horovodROCm, change: func(s *specimen) { s.box.failure = errors.New("the engine is gone") },
			gate: "import", blind: true, says: "the engine is gone", do: lookAgain, also: "elf-symbols platform check-build built-flags rendezvous allreduce-2 train-step",
		},
		listed("a listing without a tick, and the exit status 0", strings.ReplaceAll(listing, "[X]", "[ ]"), 0, false, "framework [ ] TensorFlow; controller [ ] MPI; tensor operation [ ] NCCL", "was not compiled in"),
		listed("a listing without the framework", strings.Replace(listing, "    [X] TensorFlow\n", "", 1), 0, false, "framework TensorFlow is not listed", "was not compiled in"),
		listed("a truncated listing", strings.SplitAfter(listing, "[ ] Gloo\n")[0], 0, true, `no items under "Available Tensor Operations:"`, lookAgain),
		listed("horovodrun --check-build crashes in a child", "Traceback (most recent call last):\n_queue.Empty\n", 1, true, "(exit 1)", lookAgain),
		listed("horovodrun prints nothing, as up to 0.24.3 in a pipe", "", 0, true, "no items under", lookAgain),
		{
			what: "a listing with every tick, of a build for the CPU", of: horovodROCm,
			change: func(s *specimen) {
				s.expect.Controllers = []string{"MPI", "Gloo"}
				s.replace("check-build", "[ ]", "[X]")
				s.replace("built-flags", "21304", "0", `"rocm": "true"`, `"rocm": "false"`)
			},
			gate: "built-flags", says: "nccl_built() is 0, expected version 2.13.4; rocm_built() is false, expected true", do: "another stack than the cell's",
		},
		{
			what: "Python crashes after it printed the flags", of: horovodROCm, change: answers("built-flags", builtROCm+"\nSegmentation fault\n", 139),
			gate: "built-flags", blind: true, says: "exit 139", do: lookAgain,
		},
		{
			what: "a flag missing in the extension", of: horovodROCm, change: func(s *specimen) { s.replace("built-flags", `"rocm": "true", `, "") },
			gate: "built-flags", says: "rocm_built() is missing, expected true", do: "another stack than the cell's",
		},
		ring("an allreduce with its input as result", strings.Replace(ranks, "[3.0, 30.0]", "[1.0, 10.0]", 1), 0, false, "rank 0: allreduce gave [1 10], expected [3 30]", mislead),
		ring("an allgather in the wrong order", strings.Replace(ranks, "[1.0, 10.0, 2.0, 20.0]", "[2.0, 20.0, 1.0, 10.0]", 1), 0, false, "rank 0: allgather gave [2 20 1 10]", mislead),
		ring("a broadcast of the wrong rank", strings.ReplaceAll(ranks, `"broadcast": [2.0, 20.0]`, `"broadcast": [1.0, 10.0]`), 0, false, "rank 1: broadcast gave [1 10]", mislead),
		ring("two ranks, each in a ring of its own", strings.ReplaceAll(ranks, `"size": 2`, `"size": 1`), 0, false, "rank 0 sees 1 ranks", mislead),
		ring("a rank without a report", first+"\n", 0, true, "1 ranks reported, 2 started", lookAgain),
		ring("the launcher does not start", "mpirun: command not found\n", 127, false, "horovodrun: exit 127: mpirun: command not found", mislead),
	}
}
