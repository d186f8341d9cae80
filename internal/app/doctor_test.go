package app

import (
	"testing"

	"builder/internal/app/doctor"
	"builder/internal/base/diag"
)

func TestLackingIsNoEngine(t *testing.T) {
	r := doctor.Report{Schema: doctor.Schema, Checks: []doctor.Result{{Name: "rdma", For: doctor.Fabric, Finding: doctor.Finding{Verdict: doctor.Warn}}}}
	if err := lacking(r); err != nil {
		t.Errorf("a warning is an error: %v", err)
	}
	r.Checks[0].Verdict = doctor.Fail
	if err := lacking(r); err != nil {
		t.Errorf("what is not needed is an error: %v", err)
	}
	r.Checks[0].Needed = true
	if err := lacking(r); diag.CodeOf(err) != diag.NoEngine {
		t.Errorf("%v", err)
	}
}
