package attest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"builder/internal/evidence/signing"
	"builder/internal/gates/verdict"
)

// rebuilds compares the verdicts of second builds by the key that signed them. It returns
// one problem for each key whose newest build has other bytes, even if a later build of
// another key agrees, and one problem if fewer keys agree than the trust file requires.
// The key of the first build does not count as one of them.
func (b Bundle) rebuilds(policy Policy, trust signing.Trust) (problems []string) {
	rounds := slices.Clone(b.Rounds)
	slices.SortStableFunc(rounds, func(x, y TestResult) int { return x.Finished.Compare(y.Finished) })
	newest := map[string]verdict.Verdict{}
	var signers []string // newest last
	for _, r := range rounds {
		for _, v := range r.Verdicts {
			if v.Gate != reproducible {
				continue
			}
			signers = append(slices.DeleteFunc(signers, func(id string) bool { return id == r.signer }), r.signer)
			newest[r.signer] = v.Waive(b.Provenance.Definition.Internal.Entry.Expect.Waivers, trust.Now)
		}
	}
	var agree []string
	for i, id := range signers {
		key, _ := trust.Find(id)
		switch v := newest[id]; {
		case v.Refuses() && i < len(signers)-1: // the last is the verdict of the gate
			problems = append(problems, fmt.Sprintf("gate %s: %s in the build of %s: %s", reproducible, v.Status, key, v.Evidence))
		case v.Status == verdict.Pass && id != b.maker:
			agree = append(agree, key.String())
		}
	}
	if wanted := trust.Rebuilders[string(policy)]; len(agree) < wanted {
		slices.Sort(agree)
		problems = append(problems, fmt.Sprintf("second builds of %d keys agree (%s), and the trust file requires %d for the channel %s, without the key of the first build",
			len(agree), cmp.Or(strings.Join(agree, ", "), "none"), wanted, policy))
	}
	return problems
}
