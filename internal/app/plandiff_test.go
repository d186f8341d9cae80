package app

import (
	"slices"
	"testing"

	"builder/internal/plan/lock"
	"builder/pipelines"
)

// lock.Steps must be steps of the pipeline in pipeline order, plus the gates.
func TestChangesNameStepsOfThePipeline(t *testing.T) {
	last := -1
	all := stepsFrom(pipelines.Steps()[0].Name)
	for _, step := range lock.Steps() {
		i := slices.Index(all, step)
		if i <= last {
			t.Errorf("step %s is at %d of %v", step, i, all)
		}
		last = i
	}
	if last != len(all)-1 {
		t.Errorf("something is behind the gates: %v", all)
	}
}
