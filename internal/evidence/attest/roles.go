package attest

import (
	"fmt"
	"strings"

	"builder/internal/evidence/sbom"
	"builder/internal/evidence/signing"
)

// reproducible is the gate whose verdict a rebuilder signs.
const reproducible = "reproducible"

// forbidden returns the reason why a key may not make a statement, and the remedy, or
// "". A statement of an unknown type needs a key without limits.
func forbidden(k signing.PublicKey, s Statement) (why, remedy string) {
	if len(k.Grant.Roles) == 0 && len(k.Grant.Gates) == 0 {
		return "", ""
	}
	switch s.PredicateType {
	case ProvenanceType, sbom.PredicateType:
		if !k.Grant.May(signing.Maker) {
			return lacks(k, signing.Maker)
		}
	case TestResultType:
		var r TestResult
		if err := decode(s.Predicate, &r); err != nil {
			return fmt.Sprintf("reading its verdicts: %v", err), changed
		}
		for _, v := range r.Verdicts {
			role := signing.GateHost
			if v.Gate == reproducible {
				role = signing.Rebuilder
			}
			switch {
			case !k.Grant.May(role):
				why, remedy = lacks(k, role)
				return why + ": it has a verdict of " + v.Gate, remedy
			case !k.Grant.Judges(v.Gate):
				return limited(k, fmt.Sprintf("it may judge %s, and not %s", strings.Join(k.Grant.Gates, ", "), v.Gate)), allow(k, v.Gate, "gates")
			}
		}
	default:
		if _, older := olderTypes[s.PredicateType]; older && k.Grant.May(signing.Maker) {
			return "", ""
		}
		return limited(k, fmt.Sprintf("no role covers a statement of the type %s", s.PredicateType)),
			fmt.Sprintf("if %s may sign any statement, remove its roles and gates in %s", k, k.Grant.File)
	}
	return "", ""
}

// lacks names the role that a key does not have, and the remedy.
func lacks(k signing.PublicKey, role signing.Role) (why, remedy string) {
	return limited(k, fmt.Sprintf("it has the role %s, and not the role %s", strings.Join(names(k.Grant.Roles), ", "), role)),
		allow(k, string(role), "roles")
}

// allow says how to extend a list of a key in its trust file.
func allow(k signing.PublicKey, item, list string) string {
	return fmt.Sprintf("if %s may sign that, add %s to its %s in %s", k, item, list, k.Grant.File)
}

func limited(k signing.PublicKey, why string) string {
	return fmt.Sprintf("it is signed by %s, which %s limits: %s", k, k.Grant.File, why)
}

func names(roles []signing.Role) (all []string) {
	for _, r := range roles {
		all = append(all, string(r))
	}
	return all
}

// unknown reports whether keys that are not trusted signed all statements.
func (b Bundle) unknown() bool { return b.Signed == 0 && b.strangers > 0 }
