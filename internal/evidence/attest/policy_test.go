package attest

import (
	"strings"
	"testing"

	"builder/internal/plan/recipe"
)

// The channel stable promises working device code. Without a gate on GPUs an artifact
// with device code cannot reach it, and Unreachable gives the reason.
func TestStableAsksForAGateOnGPUs(t *testing.T) {
	for name, c := range map[string]struct {
		policy Policy
		expect recipe.Expect
		why    string
	}{
		"device code without a gate": {Stable, recipe.Expect{DeviceCode: []string{"gfx90a", "gfx942"}}, "stable requires a gate that runs its device code (gfx90a, gfx942) on GPUs"},
		"device code with a gate":    {Stable, recipe.Expect{DeviceCode: []string{"sm_90"}, Collectives: []string{"all_reduce"}}, ""},
		"no device code":             {Stable, recipe.Expect{Packages: []string{"tiny"}}, ""},
		"candidate requires no gate": {Candidate, recipe.Expect{DeviceCode: []string{"gfx90a"}}, ""},
	} {
		if why := c.policy.Unreachable(c.expect); !strings.HasPrefix(why, c.why) || c.why == "" && why != "" {
			t.Errorf("%s: %q", name, why)
		}
	}
}
