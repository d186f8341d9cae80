package gate

import (
	"errors"
	"slices"
	"strings"
)

// badRuns lists bad answers of a container.
func badRuns() []bad {
	const lookAgain = "not-measured never counts as a pass"
	const mislead = "would hang or compute wrongly"
	answers := func(gate, output string, exit int) func(*specimen) {
		return func(s *specimen) { s.box.answers[gate] = Result{Exit: exit, Output: output} }
	}
	linker := func(what, output string, exit int, says string) bad {
		return bad{what: what, of: horovodROCm, change: answers("elf-symbols", output, exit), gate: "elf-symbols", blind: true, says: says, do: lookAgain}
	}
	listed := func(what, output string, exit int, blind bool, says, do string) bad {
		return bad{what: what, of: horovodROCm, change: answers("check-build", output, exit), gate: "check-build", blind: blind, says: says, do: do}
	}
	ring := func(what string, change func(*ringReport), says string) bad {
		return bad{what: what, of: horovodROCm, change: func(s *specimen) { s.box.ring = change }, gate: "allreduce-2", says: says, do: mislead, also: "launcher"}
	}
	return []bad{
		linker("the script for the dynamic linker crashes", "Segmentation fault (core dumped)\n", 139, "asking the dynamic linker: exit 139"),
		linker("the script for the dynamic linker prints nothing", "", 0, "asking the dynamic linker: exit 0: no output"),
		linker("the script for the dynamic linker leaves symbols out", `{"unloaded": {}, "missing": [], "found": {"libc.so.6": 3}}`, 0, "3 answers to 11 questions"),
		linker("the script for the dynamic linker counts below zero", `{"unloaded": {}, "missing": [], "found": {"a": 12, "b": -1}}`, 0, "12 answers to 11 questions"),
		refused("the framework is missing in the run-time image", horovodROCm, func(s *specimen) {
			s.cannotImport("ModuleNotFoundError: No module named 'tensorflow'")
			s.box.answers["platform"] = s.box.answers["import"]
		}, "import", "exit 1: ModuleNotFoundError: No module named 'tensorflow'", "does not fit the installed framework",
			"platform check-build built-flags launcher allreduce-2 train-step"),
		refused("the wheel lacks the module", horovodROCm,
			func(s *specimen) { s.cannotImport("ModuleNotFoundError: No module named 'horovod.tensorflow.mpi_ops'") },
			"import", "No module named 'horovod.tensorflow.mpi_ops'", "correct expect.import",
			"check-build built-flags launcher allreduce-2 train-step"),
		refused("the import ends in a crash", horovodROCm, answers("import", "", 139),
			"import", "import horovod.tensorflow.mpi_ops: exit 139: no output", "does not fit the installed framework"),
		refused("the engine cannot make the container", horovodROCm, func(s *specimen) { s.box.failure = errors.New("the engine is gone") },
			"import", "the engine is gone", lookAgain,
			"elf-symbols platform check-build built-flags rendezvous launcher allreduce-2 train-step").unmeasured(),
		listed("a listing without a tick, and the exit status 0", strings.ReplaceAll(listing, "[X]", "[ ]"), 0, false, "framework [ ] TensorFlow; controller [ ] MPI; tensor operation [ ] NCCL", "was not compiled in"),
		listed("a listing without the framework", strings.Replace(listing, "    [X] TensorFlow\n", "", 1), 0, false, "framework TensorFlow is not listed", "was not compiled in"),
		listed("a truncated listing", strings.SplitAfter(listing, "[ ] Gloo\n")[0], 0, true, `no items under "Available Tensor Operations:"`, lookAgain),
		listed("horovodrun --check-build crashes in a child", "Traceback (most recent call last):\n_queue.Empty\n", 1, true, "(exit 1)", lookAgain),
		listed("horovodrun prints nothing, as up to 0.24.3 in a pipe", "", 0, true, "no items under", lookAgain),
		refused("a listing with every tick, of a build for the CPU", horovodROCm, func(s *specimen) {
			s.expect.Gates["check-build"] = buildSettings{Controllers: []string{"MPI", "Gloo"}, Operations: []string{"NCCL"}}
			s.replace("check-build", "[ ]", "[X]")
			s.replace("built-flags", "21304", "0", `"rocm": "true"`, `"rocm": "false"`)
		},
			"built-flags", "nccl_built() is 0, expected version 2.13.4; rocm_built() is false, expected true", "another stack than the cell's",
			"check-build"),
		refused("Python crashes after it printed the flags", horovodROCm, answers("built-flags", builtROCm+"\nSegmentation fault\n", 139),
			"built-flags", "exit 139", lookAgain).unmeasured(),
		refused("a flag missing in the extension", horovodROCm, func(s *specimen) { s.replace("built-flags", `"rocm": "true", `, "") },
			"built-flags", "rocm_built() is missing, expected true", "another stack than the cell's"),
		ring("an allreduce with its input as result", func(r *ringReport) { r.Allreduce = r.Allgather[5*r.Rank : 5*r.Rank+5] }, "rank 0: allreduce gave the rank's own input"),
		ring("an allgather in the wrong order", func(r *ringReport) { r.Allgather = slices.Concat(r.Allgather[5:], r.Allgather[:5]) }, "rank 0: allgather gave ["),
		ring("a broadcast of the wrong rank", func(r *ringReport) {
			other := slices.Equal(r.Broadcast, r.Allgather[:5])
			r.Broadcast = r.Allgather[:5]
			if other {
				r.Broadcast = r.Allgather[5:10]
			}
		}, "broadcast gave "),
		ring("two ranks, each in a ring of its own", func(r *ringReport) { r.Size = 1 }, "rank 0 sees itself as rank 0 of 1"),
		ring("every rank sees itself as the first of its host, and takes the same GPU", func(r *ringReport) { r.Place[0] = 0 }, "rank 1: its local rank and size, and its cross rank and size, are [0 2 0 1], expected [1 2 0 1]"),
		ring("a sum without NaN, by which training finds its faults", func(r *ringReport) { r.Extremes[0] = "0.0" }, "rank 0: the sum of [[nan inf 1 -inf 1e-45 2.384185791015625e-07 1 1] [1 2 nan 3 1e-45 2.384185791015625e-07 9e-08 4e-08]] is [0.0 inf nan"),
		ring("numbers next to 0 that are lost, as after -ffast-math", func(r *ringReport) { r.Extremes[4] = "0.0" }, "rank 0: the sum of [[nan inf 1 -inf 1e-45 2.384185791015625e-07 1 1] [1 2 nan 3 1e-45 2.384185791015625e-07 9e-08 4e-08]] is [nan inf nan -inf 0.0 4.76837158203125e-07 1.0000001192092896 1.0], expected [nan"),
		ring("a rank without a report", func(r *ringReport) {
			if r.Rank == 1 {
				r.Case = ""
			}
		}, "rank 1 reported its collectives 0 times"),
		refused("the launcher of the image does not start", horovodROCm, func(s *specimen) {
			s.box.end = func(_ launch, e *ranksEnd) {
				e.Exit, e.Log, e.Ranks = at(127), "mpirun: command not found\n", make([]*rankEnd, len(e.Ranks))
			}
		}, "allreduce-2", "rank 0 did not start: mpirun: exit 127: mpirun: command not found", lookAgain,
			"launcher train-step").unmeasured(),
	}
}
