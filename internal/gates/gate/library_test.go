package gate

import (
	"fmt"
	"strings"
	"testing"

	"builder/internal/gates/verdict"
	"builder/test/kit/check"
)

func TestVerbsState(t *testing.T) {
	symbol, soname := []string{"ibv_reg_mr"}, []string{"libibverbs.so.1"}
	for _, c := range []struct {
		v    verbs
		want string
	}{
		{verbs{"libibverbs.so.1", symbol, nil}, "linked"},
		{verbs{"libibverbs.so.1", symbol, soname}, "linked"},
		{verbs{"libibverbs.so.1", nil, soname}, "linked but unused"},
		{verbs{"", symbol, soname}, "used but not linked"},
		{verbs{"", nil, soname}, "dlopened"},
		{verbs{}, "absent"},
	} {
		check.Same(t, fmt.Sprint(c.v), c.want, c.v.state())
	}
	const says = "absent: NEEDED none; 0 undefined ibv_ symbols none; names for dlopen none"
	check.Same(t, "no verbs", says, (verbs{}).String())
}

func TestJudgeLoaded(t *testing.T) {
	const want = "2.29.7+cuda13.0"
	good := loaded{Version: 22907, Error: "invalid argument"}
	for name, c := range map[string]struct {
		have loaded
		says []string
		evidence,
		remedy string // "" for a pass or for the gate's own remedy
	}{
		"good":          {good, []string{want}, "", ""},
		"no CUDA":       {good, []string{"2.29.7+cuda."}, `its version string is ["2.29.7+cuda."], expected "2.29.7+cuda13.0"`, ""},
		"other CUDA":    {good, []string{"2.29.7+cuda12.4"}, "2.29.7+cuda12.4", ""},
		"no text":       {good, nil, "its version string is []", ""},
		"two texts":     {good, []string{want, "2.29.7+cuda12.4"}, "2.29.7+cuda12.4", ""},
		"other release": {loaded{Version: 22304, Error: "x"}, []string{want}, "ncclGetVersion returns 22304, which is 2.23.4, with status 0", "another release"},
		"an error":      {loaded{Code: 3, Version: 22907, Error: "x"}, []string{want}, "with status 3", ""},
		"no message":    {loaded{Version: 22907}, []string{want}, "ncclGetErrorString returns nothing", ""},
		"nothing":       {loaded{}, []string{want}, "ncclGetVersion returns 0", "another release"},
	} {
		a := judgeLoaded(c.have, c.says, want)
		check.That(t, (a.Status == verdict.Pass) == (c.evidence == "") && strings.Contains(a.Evidence, c.evidence),
			"%s: %v %s", name, a.Status, a.Evidence)
		check.That(t, (a.Remedy == "") == (c.remedy == "") && strings.Contains(a.Remedy, c.remedy), "%s: remedy %q", name, a.Remedy)
	}
}
