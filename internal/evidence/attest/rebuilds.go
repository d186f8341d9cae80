package attest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"builder/internal/evidence/signing"
	"builder/internal/gates/verdict"
)

// rebuilds compares the verdicts of second builds by the key that signed them. refused has
// the newest verdict of each key whose build has other bytes, even if a later build of
// another key agrees; its evidence names the key. few is the problem if fewer keys agree
// than the trust file requires, and otherwise empty. The key of the first build does not
// count as one of them.
func (b Bundle) rebuilds(policy Policy, trust signing.Trust) (refused []verdict.Verdict, few string) {
	rounds := slices.Clone(b.Rounds)
	slices.SortStableFunc(rounds, func(x, y TestResult) int { return x.Finished.Compare(y.Finished) })
	newest := map[string]verdict.Verdict{}
	var signers []string // newest last
	for _, r := range rounds {
		for _, v := range r.Verdicts {
			if v.Gate != reproducible {
				continue
			}
			if _, asked := newest[r.signer]; asked && v.Status == verdict.NotMeasured {
				continue // it does not replace a measurement
			}
			signers = append(slices.DeleteFunc(signers, func(id string) bool { return id == r.signer }), r.signer)
			newest[r.signer] = v.Waive(b.Provenance.Definition.Internal.Entry.Expect.Waivers, trust.Now)
		}
	}
	var agree []string
	for _, id := range signers {
		key, _ := trust.Find(id)
		switch v := newest[id]; {
		case v.Refuses():
			v.Evidence = fmt.Sprintf("in the build of %s: %s", key, v.Evidence)
			refused = append(refused, v)
		case v.Status == verdict.Pass && id != b.maker:
			agree = append(agree, key.String())
		}
	}
	if wanted := trust.Rebuilders[string(policy)]; len(agree) < wanted {
		slices.Sort(agree)
		few = fmt.Sprintf("second builds of %d keys agree (%s), and the trust file requires %d for the channel %s, without the key of the first build",
			len(agree), cmp.Or(strings.Join(agree, ", "), "none"), wanted, policy)
	}
	return refused, few
}
