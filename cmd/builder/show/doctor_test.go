package show

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"builder/internal/machine/doctor"
	"builder/internal/view/term"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// hostile returns a report whose texts contain control characters.
func hostile() doctor.Report {
	const evil = "\x1b]0;owned\x07\x1b[2Jfine\u009b31m\r\n\u202etext"
	return doctor.Report{Schema: doctor.Schema, Checks: []doctor.Result{
		{Name: "rdma", For: doctor.Fabric, Finding: doctor.Finding{Verdict: doctor.Warn, Found: evil, Remedy: evil, Detail: []string{evil}}},
	}}
}

func TestReportIsClean(t *testing.T) {
	var b bytes.Buffer
	Doctor(term.Printer{Stdout: &b}, hostile())
	got := b.String()
	check.That(t, term.Clean(got) == got && strings.Contains(got, "fine"), "%q", got)
	b.Reset()
	must.Succeed(t, (term.Printer{Stdout: &b}).JSON(hostile()))
	check.That(t, !strings.ContainsAny(b.String(), "\x1b\x07\r"), "%q", b.String())
	var back struct {
		Schema int
		Checks []struct{ Check, Verdict string }
	}
	err := json.Unmarshal(b.Bytes(), &back)
	check.That(t, err == nil && back.Schema == doctor.Schema && back.Checks[0].Verdict == "warn", "%+v, %v", back, err)
}
