package nccllog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

func survey(t *testing.T, text string) Evidence {
	t.Helper()
	return must.Get(Survey(strings.NewReader(text)))(t)
}

// The logs are of jobs on one and two hosts. The first has GPUs that could use NICs but
// use sockets, and RCCL's warnings.
func TestSurveyOfJobs(t *testing.T) {
	of := map[string]Evidence{}
	for _, name := range []string{"rccl-2.16.5-mi250x.log", "rccl-2.21.5-mi50.log", "nccl-two-hosts.log"} {
		data := must.Get(os.ReadFile(filepath.Join("testdata", name)))(t)
		of[name] = survey(t, string(data))
		check.That(t, of[name].Shown() && !of[name].Cut, "%s: got %+v", name, of[name])
	}
	first := of["rccl-2.16.5-mi250x.log"]
	check.That(t, first.Speaker() == "RCCL 2.16.5+hip5.6" && len(first.Warnings) == 3, "got %+v", first)
	check.Same(t, "connections", map[string]int{"P2P/IPC": 4, "NET/Socket/1": 2, "NET/Socket/2": 2}, first.Connections)
	check.Same(t, "settings", []Setting{{Name: "NCCL_P2P_LEVEL", Value: "XGMI"}}, first.Settings)
	second := of["rccl-2.21.5-mi50.log"]
	check.That(t, second.Speaker() == "RCCL 2.21.5-HEAD:9a0e6a1" && slices.Equal(second.Networks, []string{"Socket"}), "got %+v", second)
	check.That(t, slices.Contains(second.Reasons, "Failed to open libibverbs.so[.1]"), "reasons: %v", second.Reasons)
	check.Same(t, "connections", map[string]int{"P2P/direct pointer": 2, "NET/IB/3": 3}, of["nccl-two-hosts.log"].Connections)
}

// Many settings must not displace the library's lines on devices.
func TestManySettings(t_ *testing.T) {
	var b strings.Builder
	for i := range 2 * maxSettings {
		fmt.Fprintf(&b, "%sNCCL_SETTING_%d set by environment to 1.\n", h, i)
	}
	e := survey(t_, b.String()+h+"NCCL_SETTING_0 set by environment to 2.\n"+h+"NET/IB : No device found.\n")
	check.That(t_, len(e.Settings) == maxSettings && len(e.Reasons) == 1 && e.Settings[0].Value == "2", "%d settings, reasons %v", len(e.Settings), e.Reasons)
}

// A text without a run gives no run. A log of two libraries is marked, not refused.
func TestSurveyMarks(t_ *testing.T) {
	e := survey(t_, "make: nothing to be done\n"+h+"NET/IB : No device found.\n")
	check.That(t_, !e.Shown(), "got %+v", e)
	e = survey(t_, h+"NCCL version 2.29.7+cuda13.0\n"+h+"NCCL version 2.28.9+cuda13.0\n"+h+"Using network IB\n")
	check.That(t_, e.Cut && e.Version == "2.29.7+cuda13.0" && len(e.Networks) == 1, "got %+v", e)
	_, err := Survey(io.MultiReader(strings.NewReader("x\n"), broken{}))
	check.That(t_, errors.Is(err, io.ErrUnexpectedEOF), "got %v", err)
}
