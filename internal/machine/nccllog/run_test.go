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

func parseRun(t *testing.T, text string) Run {
	t.Helper()
	r, err := ParseRun(strings.NewReader(text))
	must.Succeed(t, err)
	return r
}

func logOf(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	must.Succeed(t, err)
	return string(data)
}

// Two hosts with GPUs that could use NICs but use sockets. The log has RCCL's warnings.
func TestRunOfMI250X(t *testing.T) {
	r := parseRun(t, logOf(t, "rccl-2.16.5-mi250x.log"))
	must.Hold(t, r.Library == "RCCL" && r.Version == "2.16.5+hip5.6" && len(r.Communicators) == 1 && len(r.Warnings) == 3 && !r.Cut,
		"got %+v", r)
	c := r.Communicators[0]
	check.That(t, c.Ranks == 8, "%d ranks", c.Ranks)
	check.Same(t, "connections", map[string]int{"P2P/IPC": 4, "NET/Socket/1": 2, "NET/Socket/2": 2}, c.Connections)
	check.Same(t, "settings", []Setting{{Name: "NCCL_P2P_LEVEL", Value: "XGMI"}}, r.Settings)
}

func TestRunOfMI50(t *testing.T) {
	r := parseRun(t, logOf(t, "rccl-2.21.5-mi50.log"))
	must.Hold(t, r.Library == "RCCL" && r.Version == "2.21.5-HEAD:9a0e6a1" && slices.Equal(r.Networks, []string{"Socket"}) &&
		len(r.Communicators) == 1, "got %+v", r)
	c := r.Communicators[0]
	check.That(t, c.Ranks == 4 && c.Nodes == 1, "got %+v", c)
	check.That(t, slices.Contains(r.Reasons, "Failed to open libibverbs.so[.1]"), "reasons: %v", r.Reasons)
}

func TestRunOfTwoHosts(t *testing.T) {
	c := parseRun(t, logOf(t, "nccl-two-hosts.log")).Communicators[0]
	must.Hold(t, c.Ranks == 16 && c.Nodes == 2, "got %+v", c)
	check.Same(t, "connections", map[string]int{"P2P/direct pointer": 2, "NET/IB/3": 3}, c.Connections)
}

// Two successive communicators in one process, and settings with a cost.
func TestRunsAfterOneAnother(t_ *testing.T) {
	var b strings.Builder
	for _, line := range []string{
		"NCCL_P2P_DISABLE set by environment to 1.",
		"NCCL_ALGO set by environment to Ring",
		"ncclCommInitRank comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId c1000 commId 0xaa - Init START",
		"Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct",
		"2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels, 2 p2p channels per peer",
		"ncclCommInitRank comm 0x1 rank 0 nranks 2 cudaDev 0 busId c1000 commId 0xaa localSize 136 used 1 bytes - Init COMPLETE",
		"ncclCommInitRank comm 0x2 rank 0 nranks 3 cudaDev 0 nvmlDev 0 busId c1000 commId 0xbb - Init START",
		"Channel 00/0 : 0[0] -> 1[1] via P2P/IPC comm 0x2 nRanks 03",
	} {
		b.WriteString(h + line + "\n")
	}
	r := parseRun(t_, h+"RCCL version 2.20.5+hip6.2\n"+b.String())
	must.Hold(t_, len(r.Communicators) == 2, "got %+v", r)
	first, second := r.Communicators[0], r.Communicators[1]
	check.That(t_, first.ID == "0xaa" && first.Ranks == 2 && first.Channels == 2 && first.Connections["SHM"] == 1, "first: %+v", first)
	check.That(t_, second.ID == "0xbb" && second.Ranks == 3 && second.Connections["P2P/IPC"] == 1, "second: %+v", second)
	want := []Setting{
		{"NCCL_ALGO", "Ring", "the library no longer chooses the algorithm by size"},
		{"NCCL_P2P_DISABLE", "1", "no traffic from GPU to GPU: xGMI and NVLink are unused"},
	}
	check.Same(t_, "settings", want, r.Settings)
	check.That(t_, len(r.Reasons) == 0, "a setting is no reason: %v", r.Reasons)
}

// Many settings must not displace the library's lines on devices.
func TestManySettings(t_ *testing.T) {
	var b strings.Builder
	for i := range 2 * maxLines {
		fmt.Fprintf(&b, "%sNCCL_SETTING_%d set by environment to 1.\n", h, i)
	}
	r := parseRun(t_, b.String()+h+"NET/IB : No device found.\n")
	check.That(t_, len(r.Settings) == 2*maxLines && len(r.Reasons) == 1, "%d settings, reasons %v", len(r.Settings), r.Reasons)
}

// A text without a run gives an empty run. An endless log is kept only up to the
// limits.
func TestRunIsBounded(t_ *testing.T) {
	if r := parseRun(t_, "make: nothing to be done\n"+h+"NET/IB : No device found.\n"); r.Shown() {
		t_.Errorf("got %+v", r)
	}
	var b strings.Builder
	for i := range 3 * maxCommunicators {
		fmt.Fprintf(&b, "%sncclCommInitRank comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId c1000 commId 0x%x - Init START\n", h, i+1)
	}
	r := parseRun(t_, b.String())
	check.That(t_, len(r.Communicators) == maxCommunicators && r.Cut, "%d communicators, cut: %v", len(r.Communicators), r.Cut)
	_, err := ParseRun(io.MultiReader(strings.NewReader("x\n"), broken{}))
	check.That(t_, errors.Is(err, io.ErrUnexpectedEOF), "got %v", err)
}

func FuzzParseRun(f *testing.F) {
	for _, text := range seeds {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRun(strings.NewReader(text))
		must.Succeed(t, err)
		must.Hold(t, len(r.Communicators) <= maxCommunicators && len(r.Settings) <= maxSettings,
			"kept too much: %d communicators", len(r.Communicators))
	})
}
