package plan

import (
	"slices"
	"testing"

	"builder/internal/plan/lock"
	"builder/pipelines"
	"builder/test/kit/check"
)

// lock.Steps must be steps of the pipeline in pipeline order, plus the gates.
func TestChangesNameStepsOfThePipeline(t *testing.T) {
	last := -1
	all := stepsFrom(pipelines.Steps()[0].Name)
	for _, step := range lock.Steps() {
		i := slices.Index(all, step)
		check.That(t, i > last, "step %s is at %d of %v", step, i, all)
		last = i
	}
	check.That(t, last == len(all)-1, "something is behind the gates: %v", all)
}
