package gate

import (
	"strings"

	"builder/internal/plan/recipe"
)

// horovodTested returns Horovod on ROCm with upstream's tests and one known failure in
// its recipe.
func horovodTested() *specimen {
	s := horovodROCm()
	s.expect.Tests = recipe.Tests{Launcher: "horovodrun", Ranks: 2, Files: []recipe.TestFile{{
		File: "test/parallel/test_tensorflow.py", Seconds: 400, Quick: &recipe.Quick{Select: "grouped", Seconds: 60},
		Known: []recipe.Known{{Cases: []string{"test_known"}, Because: "averages of integers", Issue: "https://github.com/horovod/horovod/pull/2453"}},
	}}}
	s.tests = container{answers: map[string]Result{"upstream-tests": one(0, goodRank, goodRank)}}
	return s
}

var goodRank = suite("test_horovod_grouped_allreduce_cpu", "test_horovod_grouped_allreduce_gpu?", "test_known!")

// badTests lists wheels with good libraries that fail upstream's tests or prevent them
// from running.
func badTests() []bad {
	const lookAgain = "not-measured never counts as a pass"
	row := func(what string, blind bool, says, do string, answer Result) bad {
		return bad{
			what: what, of: horovodTested, gate: "upstream-tests", blind: blind, says: says, do: do,
			change: func(s *specimen) { s.tests.answers["upstream-tests"] = answer },
		}
	}
	wrong := strings.Replace(goodRank, `name="test_horovod_grouped_allreduce_cpu" time="0.1">`,
		`name="test_horovod_grouped_allreduce_cpu" time="0.1"><failure message="tensorflow.python.framework.errors_impl.InvalidArgumentError: incompatible shapes"/>`, 1)
	return []bad{
		row("upstream's Horovod on ROCm, whose grouped_allreduce adds tensors to a list", false,
			"test_horovod_grouped_allreduce_cpu failed on rank 0 1", "correct it with a patch", one(0, wrong, wrong)),
		row("a collective with a wrong result on one rank", false,
			"test_horovod_grouped_allreduce_cpu failed on rank 1", "correct it with a patch", one(0, goodRank, wrong)),
		row("a known failure that passes", false,
			"test_known passed, and is named as a known failure", "if a known failure passes, remove it there", one(0, suite("test_known"), suite("test_known"))),
		row("upstream's tests collect nothing", true, "rank 0: it collected no test", lookAgain,
			printed(ended{Ranks: []rankEnd{{Exit: exitNothing}, {Exit: exitNothing}}})),
		row("a rank crashes in upstream's tests", true, "rank 1: pytest ended with exit -1", lookAgain,
			printed(ended{Exit: 139, Ranks: []rankEnd{{Junit: goodRank}, {Exit: -1}}})),
		row("ranks that wait for each other for ever", true, "it did not end within 11m0s", lookAgain,
			printed(ended{Late: true, Ranks: []rankEnd{{}, {}}})),
		row("results of upstream's tests without one case", true, "counts 3 cases and holds 2", lookAgain,
			one(0, goodRank, strings.Replace(goodRank, `<testcase classname="test_x.T" name="test_horovod_grouped_allreduce_gpu" time="0.1"><skipped type="pytest.skip" message="No GPUs available"/></testcase>`, "", 1))),
		row("a rank that ran none of the others' cases", true, "the ranks ran different cases", lookAgain,
			one(0, goodRank, suite("test_known!"))),
	}
}
