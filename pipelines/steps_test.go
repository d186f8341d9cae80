package pipelines

import (
	"errors"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/test/kit/check"
)

// Each error of a patch names the patch and the position of the edit, and its hint the
// audit that finds all versions with the error.
func TestAFailedPatchNamesItsAudit(t *testing.T) {
	at := diag.Pos{File: "ours/patches/dotprod/no-native.yaml", Line: 7, Column: 5}
	err := unpatched("dotprod", "no-native", errors.Join(
		&diag.Error{Pos: at, Code: diag.Patch, Err: errors.New("Makefile: search text matches 0 times, not 1")},
		&diag.Error{Code: diag.Patch, Err: errors.New("b.c: there"), Hint: "state merged"},
	))
	const audit = "`builder patch audit --fetch dotprod` applies the patches to every version, without a build"
	all := diag.All(err)
	if len(all) != 2 || all[0].Code != diag.Patch || all[0].Error() != "patch no-native: ours/patches/dotprod/no-native.yaml:7:5: Makefile: search text matches 0 times, not 1" || all[0].Hint != audit {
		t.Fatalf("%+v", all[0])
	}
	check.That(t, all[1].Hint == "state merged; "+audit && strings.HasPrefix(all[1].Error(), "patch no-native: b.c"), "%+v", all[1])
}
