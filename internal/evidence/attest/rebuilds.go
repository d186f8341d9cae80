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
	waivers := b.Provenance.Definition.Internal.Entry.Expect.Waivers
	var agree []string
	for _, v := range newestOfKeys(b.Counted()) {
		if v.Gate != reproducible {
			continue
		}
		key, _ := trust.Find(v.signer)
		switch v, of := v.Waive(waivers, trust.Now), v.signer; {
		case v.Refuses():
			v.Evidence = fmt.Sprintf("in the build of %s: %s", key, v.Evidence)
			refused = append(refused, v)
		case v.Status == verdict.Pass && of != b.maker:
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
