package gate

import (
	"slices"

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
	s.tests = container{played: played{cases: [][]testCase{goodRank, goodRank}}}
	return s
}

var goodRank = suite("test_horovod_grouped_allreduce_cpu", "test_horovod_grouped_allreduce_gpu?", "test_known!")

// badTests lists wheels with good libraries that fail upstream's tests or prevent them
// from running.
func badTests() []bad {
	const lookAgain = "not-measured never counts as a pass"
	row := func(what string, blind bool, says, do string, change func(*played)) bad {
		return bad{
			what: what, of: horovodTested, gate: "upstream-tests", blind: blind, says: says, do: do,
			change: func(s *specimen) { change(&s.tests.played) },
		}
	}
	cases := func(all ...[]testCase) func(*played) { return func(p *played) { p.cases = all } }
	end := func(change func(*ranksEnd)) func(*played) {
		return func(p *played) { p.end = func(_ launch, e *ranksEnd) { change(e) } }
	}
	wrong := slices.Clone(goodRank)
	wrong[0].Status, wrong[0].Message = caseFailed, "tensorflow.python.framework.errors_impl.InvalidArgumentError: incompatible shapes"
	return []bad{
		row("upstream's Horovod on ROCm, whose grouped_allreduce adds tensors to a list", false,
			"test_horovod_grouped_allreduce_cpu failed on rank 0 1", "correct it with a patch", cases(wrong, wrong)),
		row("a collective with a wrong result on one rank", false,
			"test_horovod_grouped_allreduce_cpu failed on rank 1", "correct it with a patch", cases(goodRank, wrong)),
		row("a known failure that passes", false,
			"test_known passed, and is named as a known failure", "if a known failure passes, remove it there", cases(suite("test_known"), suite("test_known"))),
		row("upstream's tests collect nothing", true, "rank 0: it collected no test", lookAgain, cases([]testCase{}, []testCase{})),
		row("a rank crashes in upstream's tests", true, "rank 1: pytest did not come to its end; rank 1 ended before its end: exit 139", lookAgain,
			end(func(e *ranksEnd) { *e.Ranks[1] = rankEnd{Exit: at(139)} })),
		row("ranks that wait for each other for ever", true, "rank 0: pytest did not come to its end", lookAgain,
			end(func(e *ranksEnd) {
				for _, r := range e.Ranks {
					*r = rankEnd{Why: "it was still running after 660 seconds"}
				}
			})),
		row("results of upstream's tests without one case", true, "3 cases were collected and 2 reported", lookAgain,
			end(func(e *ranksEnd) { e.Ranks[1].Lines = e.Ranks[1].Lines[1:] })),
		row("a rank that ran none of the others' cases", true, "the ranks ran different cases", lookAgain, cases(goodRank, suite("test_known!"))),
	}
}
