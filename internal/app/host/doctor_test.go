package host

import (
	"testing"

	"builder/internal/base/diag"
	"builder/internal/machine/doctor"
	"builder/test/kit/check"
)

func TestLackingIsNoEngine(t *testing.T) {
	r := doctor.Report{Schema: doctor.Schema, Checks: []doctor.Result{{Name: "rdma", For: doctor.Fabric, Finding: doctor.Finding{Verdict: doctor.Warn}}}}
	err := lacking(r)
	check.That(t, err == nil, "a warning is an error: %v", err)
	r.Checks[0].Verdict = doctor.Fail
	err = lacking(r)
	check.That(t, err == nil, "what is not needed is an error: %v", err)
	r.Checks[0].Needed = true
	check.Same(t, "the class", diag.NoEngine, diag.CodeOf(lacking(r)))
}
