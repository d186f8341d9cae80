package attest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"builder/internal/gates/gate"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

// A Policy defines the gates an artifact must have passed.
type Policy string

// The policies.
const (
	Candidate Policy = "candidate" // every gate without a GPU
	Stable    Policy = "stable"    // also gates that take minutes, gates on GPUs and a second build
)

// Policies lists the names of the policies.
func Policies() []string { return []string{string(Candidate), string(Stable)} }

// Gates returns the names of the gates required by a policy.
func (p Policy) Gates(e recipe.Expect) []string {
	most := gate.Container
	if p == Stable {
		most = gate.TwoBuilds
	}
	var names []string
	for _, g := range gate.Wanted(e, most) {
		names = append(names, g.Name)
	}
	return names
}

// Unreachable returns the reason why no artifact with these promises can meet the
// policy, or "". Stable promises working device code, which requires a gate that runs
// it on GPUs.
func (p Policy) Unreachable(e recipe.Expect) string {
	onGPUs := func(g gate.Gate) bool { return g.Needs == gate.GPUs }
	if p != Stable || len(e.DeviceCode) == 0 || slices.ContainsFunc(gate.Wanted(e, gate.GPUs), onGPUs) {
		return ""
	}
	return "stable requires a gate that runs its device code (" + strings.Join(e.DeviceCode, ", ") + ") on GPUs, and none exists yet"
}

// checkGates checks the verdicts, and that a build with the compiler cache was repeated
// without it. Without a provenance nothing says which gates are required, and its own
// check fails.
func (b Bundle) checkGates(policy Policy, now time.Time, err error) []Check {
	if b.Provenance == nil {
		return nil
	}
	judged, rounds := b.Judged(now), len(b.Counted())
	c := checkVerdicts(judged, b.Provenance.Definition.Internal.Entry.Expect, policy, err)
	c.Seen = fmt.Sprintf("%d gates in %d rounds, policy %s", len(judged), rounds, policy)
	if n := len(b.Rounds) - rounds; n > 0 {
		c.Seen += fmt.Sprintf("; %d rounds do not count: they judged by another entry, or before this build ended", n)
	}
	if b.Provenance.cached() {
		return []Check{c, checkRepeated(judged)}
	}
	return []Check{c}
}

// checkRepeated requires that a second build without the compiler cache has the same bytes.
func checkRepeated(judged []verdict.Verdict) Check {
	c := Check{Name: CacheCheck, Seen: "a second build without it has the same bytes", Remedy: howToAsk(reproducible)}
	same := func(v verdict.Verdict) bool { return v.Gate == reproducible && v.Status == verdict.Pass }
	if !slices.ContainsFunc(judged, same) {
		c.Wrong = []string{"the build could take objects from a compiler cache, and no second build without one has the same bytes"}
	}
	return c
}

// reproducible is the gate of a second build.
const reproducible = "reproducible"

// CacheCheck is the name of the check of a build with the compiler cache. A second build
// answers it.
const CacheCheck = "compiler cache"

// checkVerdicts requires a passing or waived verdict of every gate in the policy, and
// no refusal of any other gate. err is the error of reading the statements: one that does
// not count may be the missing verdict.
func checkVerdicts(verdicts []verdict.Verdict, promised recipe.Expect, policy Policy, err error) Check {
	c := Check{Name: "verdicts"}
	passed := map[string]bool{}
	var remedies []string
	wrong := func(remedy, format string, args ...any) {
		c.Wrong = append(c.Wrong, fmt.Sprintf(format, args...))
		if remedy != "" && !slices.Contains(remedies, remedy) {
			remedies = append(remedies, remedy)
		}
	}
	for _, v := range verdicts {
		if v.Refuses() {
			wrong(v.Remedy, "gate %s: %s: %s", v.Gate, v.Status, v.Evidence)
		}
		passed[v.Gate] = true
	}
	ask, missing := howToAsk, "gate %s did not run, and the policy %s requires it"
	if remedy := Remedy(err); remedy != changed {
		ask = func(string) string { return remedy }
		missing = "no trusted key signed a verdict of gate %s that counts, and the policy %s requires it"
	}
	wanted := policy.Gates(promised)
	for _, name := range wanted {
		if !passed[name] {
			wrong(ask(name), missing, name, policy)
		}
	}
	if why := policy.Unreachable(promised); why != "" {
		wrong("use the policy candidate, the highest that this recipe can reach", "%s", why)
	}
	if len(wanted) == 0 {
		wrong("add promises to the recipe's expect", "the entry promises nothing that a gate can check")
	}
	c.Remedy = strings.Join(remedies, "; ")
	return c
}

// howToAsk returns the command that adds the verdict of a gate.
func howToAsk(name string) string {
	for _, g := range gate.All() {
		switch {
		case g.Name != name:
		case g.Needs == gate.TwoBuilds:
			return "run `builder verify out/CELL --rebuild --attach` (with --key FILE if another key than the host's may judge it): it builds a second time and adds this verdict; then publish the cell again, if it is published"
		case g.Needs == gate.Tests || g.Needs == gate.Long:
			return "run `builder run RECIPE --tests full` with the axes of the cell: it adds these verdicts"
		case g.Framework:
			return "run `builder gate out/CELL --gpus all --python PYTHON --attach` on a host with GPUs: it adds these verdicts; then publish the cell again, if it is published"
		case g.Needs == gate.GPUs:
			return "run `builder gate out/CELL --gpus all --programs DIR --against LIBRARY --attach` on a host with GPUs: it adds these verdicts; then publish the cell again, if it is published"
		}
	}
	return "build the cell again with `builder run`, which runs this gate"
}
