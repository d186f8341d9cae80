package gate

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
)

// The output of a container is not trusted, because the artifact's own code runs in it.

func FuzzCheckBuild(f *testing.F) {
	f.Add(listing)
	f.Add(checkBuildOf("0.19.0"))
	f.Add("Available Frameworks:\n[X] \n[ ] a\nAvailable Frameworks:\n")
	f.Fuzz(func(t *testing.T, output string) {
		l, err := parseCheckBuild(output)
		check.That(t, err != nil || len(l["Frameworks"]) != 0 && len(l["Controllers"]) != 0 && len(l["Tensor Operations"]) != 0,
			"a listing without a section was read")
		ticks, have := strings.Count(output, "[X] "), 0
		for _, items := range l {
			for _, on := range items {
				if on {
					have++
				}
			}
		}
		check.That(t, have <= ticks, "%d items are ticked, the output has %d ticks", have, ticks)
	})
}

// No lines of ranks that lack a report of each pass, and none crash a gate.
func FuzzRanks(f *testing.F) {
	task := ringOf(nil, ranksOfAllreduce, recipe.Expect{})
	f.Add(`{"case": "collectives", "rank": 0, "size": 2, "allreduce": [3, 30], "allgather": null}`, "")
	f.Add("{", `{"case": "collectives", "rank": 1}`)
	f.Fuzz(func(t *testing.T, first, second string) {
		end := ranksEnd{Exit: at(0), Ranks: []*rankEnd{{Lines: []string{first}, End: true, Exit: at(0)}, {Lines: []string{second}, End: true, Exit: at(0)}}}
		problems := 0
		for rank, r := range end.Ranks {
			reports, err := reportsOf[ringReport](r)
			if err != nil || len(task.problems(rank, reports[0], task.largeResults())) > 0 {
				problems++
			}
		}
		check.That(t, problems != 0, "random results were reported: %q, %q", first, second)
	})
}

func FuzzRequests(f *testing.F) {
	f.Add(regexp.MustCompile(`,"detail":"[^"]*"`).ReplaceAllString(allRequests(nil), ""))
	f.Add(`{"requests": [{"name": "registration", "kind": "honest", "outcome": "served"}, null]}`)
	f.Fuzz(func(t *testing.T, output string) {
		v := rendezvous.Check(t.Context(), Subject{Expect: expect(), Box: &answers{result: Result{Output: output}}})
		check.That(t, v.Status != verdict.Pass || strings.Count(output, "refused") >= len(requests["hostile"]),
			"every attack was refused, fewer are reported: %q", output)
	})
}

// No output of a container makes a gate crash, or pass with exit status 1.
func FuzzOutput(f *testing.F) {
	for _, s := range []*specimen{horovodROCm(), ncclVerbs()} {
		for _, answer := range s.box.answers {
			f.Add(answer.Output, answer.Exit)
		}
	}
	f.Fuzz(func(t *testing.T, output string, exit int) {
		box := &answers{result: Result{Exit: exit, Output: output}}
		for _, g := range []Gate{importModule, platform, checkBuild, builtFlags, rendezvous, allreduce2, trainStep} {
			v := g.Check(context.Background(), Subject{Expect: expect(), Box: box})
			check.That(t, !strings.Contains(v.Evidence, "the gate crashed") &&
				(v.Status != verdict.Pass || exit == 0 || g.Name == checkBuild.Name), "%+v", v)
		}
	})
}
