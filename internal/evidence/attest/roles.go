package attest

import (
	"fmt"

	"builder/internal/evidence/sbom"
	"builder/internal/evidence/signing"
)

// reproducible is the gate whose verdict a rebuilder signs.
const reproducible = "reproducible"

// A lack is a statement of a trusted key that has no role for it, and the remedy.
type lack struct{ why, remedy string }

func (l lack) Error() string { return l.why }

// checkRole returns a [lack] unless the trust file lets a key make a statement. A
// statement of an unknown type needs a key without roles.
func checkRole(k signing.PublicKey, s Statement) error {
	if len(k.Roles) == 0 {
		return nil
	}
	switch s.PredicateType {
	case ProvenanceType, sbom.PredicateType:
		if !k.May(signing.Maker) {
			return lacks(k, signing.Maker, "")
		}
	case TestResultType:
		var r TestResult
		if err := read(s.Predicate, &r); err != nil {
			return fmt.Errorf("reading its verdicts: %w", err)
		}
		for _, v := range r.Verdicts {
			if role := roleOf(v.Gate); !k.May(role) {
				return lacks(k, role, ": it has a verdict of "+v.Gate)
			}
		}
	default:
		return lack{fmt.Sprintf("it is signed by %s, and no role of %s covers a statement of the type %s", k, k.File, s.PredicateType),
			fmt.Sprintf("if %s may sign any statement, remove its roles in %s", k, k.File)}
	}
	return nil
}

func lacks(k signing.PublicKey, role signing.Role, because string) lack {
	return lack{fmt.Sprintf("it is signed by %s, and %s does not give it the role %s%s", k, k.File, role, because),
		fmt.Sprintf("if %s may sign that, add %s to its roles in %s", k, role, k.File)}
}

// roleOf returns the role that may sign a verdict of a gate.
func roleOf(gate string) signing.Role {
	if gate == reproducible {
		return signing.Rebuilder
	}
	return signing.GateHost
}
