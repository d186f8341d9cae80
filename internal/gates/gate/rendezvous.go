package gate

import (
	"context"
	"fmt"
	"slices"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var rendezvous = Gate{
	Name:   "rendezvous",
	Asks:   "the launcher's servers refuse values without the job's seal, and serve its workers",
	Remedy: "the wheel lacks the patch rendezvous-seal or holds half of it: any host that reaches a port of the launcher runs code in driver and workers (CVE-2024-10190, CVE-2026-31234); see docs/advisories.md",
	Promise: recipe.Promise{
		Of:    "",
		OneOf: []string{"sealed"},
		Says:  "the launcher takes values from members of the job alone",
	},
	Wants: wantsRendezvous,
	Needs: Container,
	check: checkRendezvous,
}

var wantsRendezvous = states("rendezvous")

// request is the script's result of one request. A hostile request is refused or has
// fired; an honest one is served or broken. A hostile request that could not be sent is
// broken too.
type request struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Outcome string `json:"outcome"`
	Detail  string `json:"detail"`
}

// requests lists all requests of the script, by kind.
var requests = map[string][]string{
	"hostile": {
		"pickled-registration", "connect-back", "stolen-key", "file-of-the-launcher", "replaced-function", "replaced-result",
		"replayed-value", "malformed-key", "malformed-body", "oversized-value",
	},
	"honest": {"registration", "native-scopes", "function-and-result"},
}

func checkRendezvous(ctx context.Context, s Subject) verdict.Verdict {
	said, err := s.in(s.Box).answers(ctx, "rendezvous")
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	all, err := reportsOf[request](&said[0].rankEnd)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	if exit := said[0].Exit; exit == nil || *exit != 0 {
		return verdict.Unmeasured("%s", said[0].how())
	}
	return judgeRequests(all)
}

// judgeRequests requires a report of every request. A fired or broken request is a
// failure even if others are missing.
func judgeRequests(all []request) verdict.Verdict {
	var problems, blind []string
	for _, kind := range []string{"hostile", "honest"} {
		for _, name := range requests[kind] {
			i := slices.IndexFunc(all, func(r request) bool { return r.Kind == kind && r.Name == name })
			if i < 0 {
				blind = append(blind, "no report of "+name)
				continue
			}
			switch r := all[i]; kind + " " + r.Outcome {
			case "hostile refused", "honest served":
			case "hostile fired":
				problems = append(problems, fmt.Sprintf("attack %s had an effect: %s", name, r.Detail))
			case "honest broken":
				problems = append(problems, fmt.Sprintf("honest request %s failed: %s", name, r.Detail))
			case "hostile broken":
				blind = append(blind, fmt.Sprintf("attack %s did not run: %s", name, r.Detail))
			default:
				blind = append(blind, fmt.Sprintf("%s has the unknown outcome %q", name, r.Outcome))
			}
		}
	}
	seen := fmt.Sprintf("%d attacks refused, %d honest requests served", len(requests["hostile"]), len(requests["honest"]))
	return verdict.Weigh(problems, blind, []string{seen})
}
