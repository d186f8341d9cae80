package nccllog

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// h is the prefix of a log line. t has the time that 2.25 and later add to warnings.
const (
	h = "node1:4711:4720 [0] NCCL INFO "
	t = "[2026-03-01 09:31:52] node1:4711:4720 [0] "
)

func parse(t *testing.T, lines ...string) Evidence {
	t.Helper()
	return must.Get(Parse(strings.NewReader(strings.Join(lines, "\n"))))(t)
}

func TestVersions(t *testing.T) {
	for line, want := range map[string][2]string{
		h + "NCCL version 2.29.7+cuda13.0":                    {"NCCL", "2.29.7+cuda13.0"},
		"NCCL version 2.18.1+cuda12.1":                        {"NCCL", "2.18.1+cuda12.1"}, // printed with level VERSION
		"[1,0]<stdout>:NCCL version 2.29.7+cuda13.0":          {"NCCL", "2.29.7+cuda13.0"},
		"2024-03-01T10:00:00Z [0] NCCL version 2.29.7":        {"NCCL", "2.29.7"},
		"0: RCCL version 2.18.3+hip5.7 HEAD:3fa2c8a+":         {"RCCL", "2.18.3+hip5.7"},
		"the program needs NCCL version 2.29":                 {"", ""},
		h + "NCCL version 2.29.7+cuda.":                       {"NCCL", "2.29.7+cuda."}, // its build did not find the compiler that reports CUDA's version
		h + "RCCL version 2.18.3+hip5.7 HEAD:3fa2c8a+":        {"RCCL", "2.18.3+hip5.7"},
		h + "RCCL version : 2.21.5-HEAD:d7a1f5c":              {"RCCL", "2.21.5-HEAD:d7a1f5c"},
		h + "NCCL git version v2.29.7-1 2.29.7":               {"", ""},
		h + "HIP version  : 6.3.42131-fa1d09cbd":              {"", ""},
		h + "NET/Plugin: Loaded net plugin AWS version 1.2.3": {"", ""},
	} {
		e := parse(t, line)
		check.That(t, e.Library == want[0] && e.Version == want[1], "%s: got %q %q", line, e.Library, e.Version)
	}
	_, err := Parse(strings.NewReader(h + "NCCL version 2.29.7+cuda13.0\n" + h + "NCCL version 2.28.9+cuda13.0\n"))
	check.That(t, err != nil, "two libraries were taken for one")
}

// The formats are from src/transport of 2.18.1, 2.22.3, 2.29.7 and 2.30.7, and of RCCL
// 5.7 and 6.2.
func TestChannels(t *testing.T) {
	for line, want := range map[string]struct {
		way  string
		kind Transport
	}{
		"Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer":                                      {"P2P/direct pointer", P2P},
		"Channel 00/0 : 0[8d000] -> 1[95000] via P2P/direct pointer/read":                         {"P2P/direct pointer", P2P},
		"Channel 23/1 : 0[0] -> 1[1] via P2P/CUMEM/read/CE":                                       {"P2P/CUMEM", P2P},
		"Channel 00/0 : 0[0] -> 1[1] via P2P/MNNVL":                                               {"P2P/MNNVL", P2P},
		"Channel 00/0 : 0[8d000] -> 1[95000] via P2P/IPC/read":                                    {"P2P/IPC", P2P},
		"Channel 00/0 : 0[0] -> 3[3] via P2P/indirect/2[2]":                                       {"P2P/indirect", P2P},
		"Channel 00 : 0[0] -> 1[1] via SHM/direct/direct":                                         {"SHM", SHM},
		"Channel 00 : 0[0] -> 1[1] via SHM/CE/direct":                                             {"SHM", SHM},
		"Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0":                                         {"NET/IB/0", IB},
		"Channel 00/0 : 0[0] -> 1[0] [receive] via NET/IB/7/GDRDMA":                               {"NET/IB/7/GDRDMA", GDRDMA},
		"Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/3(2)/GDRDMA(PCI)/Shared":                   {"NET/IB/3/GDRDMA", GDRDMA},
		"Channel 00/0 : 0[0] -> 1[0] [send] via NET/IBext_v8/0/GDRDMA":                            {"NET/IBext_v8/0/GDRDMA", GDRDMA},
		"Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0":                                     {"NET/Socket/0", Socket},
		"Channel 00/0 : 0[0] -> 1[0] [send] via NET/AWS Libfabric/0/GDRDMA":                       {"NET/AWS Libfabric/0/GDRDMA", Other},
		"CollNet 00/0 : 3 [receive] via COLLNET/SHARP/0/GDRDMA":                                   {"COLLNET/SHARP/0/GDRDMA", CollNet},
		"Channel 00/0 : 0[c000] -> 1[22000] via P2P/IPC comm 0x55d0c8 nRanks 02":                  {"P2P/IPC", P2P},
		"Channel 00 : 0[c000] -> 1[22000] via SHM/direct/direct comm 0x55d0c8 nRanks 02":          {"SHM", SHM},
		"Channel 00/0 : 0[c000] -> 8[c000] [send] via NET/IB/0/GDRDMA comm 0x55d0c8 nRanks 16":    {"NET/IB/0/GDRDMA", GDRDMA},
		"Channel 00/0 : 0[c000] -> 1[22000] via P2P/direct pointer comm 0x55d0c8 nRanks 02 extra": {"P2P/direct pointer", P2P},
	} {
		e := parse(t, h+line)
		check.That(t, e.Connections[want.way] == 1 && len(e.Connections) == 1 && TransportOf(want.way) == want.kind,
			"%s: got %v, %s", line, e.Connections, TransportOf(want.way))
	}
	for _, line := range []string{
		"Channel 00/24 :    0   1", // a ring
		"24 coll channels, 16 collnet channels, 16 nvls channels, 32 p2p channels, 32 p2p channels per peer",
		"Connected all rings",
	} {
		e := parse(t, h+line)
		check.That(t, len(e.Connections) == 0, "%s: got %v", line, e.Connections)
	}
}

func TestReasonsAndWarnings(t_ *testing.T) {
	e := parse(t_,
		h+"NET/IB : No device found.",
		h+"NET/IB : No device found.",
		h+"Failed to open libibverbs.so[.1]",
		h+"NET/Socket : Using [0]eth0:10.0.0.7<0>",
		h+"Using network Socket",
		h+"NCCL_P2P_DISABLE set by environment to 1.",
		h+"P2P is disabled between connected GPUs 0 and 1. You can repress this message with NCCL_IGNORE_DISABLED_P2P=1.",
		h+"NVLS multicast support is not available on dev 0 (NVLS_NCHANNELS 0)",
		"",
		"node1:4711:4720 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.0.0.8<4> failed : No route to host",
		t+"graph/paths.cc:360 NCCL WARN P2P is disabled between NVLINK connected GPUs 0 and 1.",
		"somebody else speaks of P2P is disabled",
	)
	want := Evidence{
		Networks: []string{"Socket"}, Connections: map[string]int{},
		Settings: []Setting{{"NCCL_P2P_DISABLE", "1"}},
		Reasons: []string{
			"NET/IB : No device found.", "Failed to open libibverbs.so[.1]", "NET/Socket : Using [0]eth0:10.0.0.7<0>",
			"P2P is disabled between connected GPUs 0 and 1. You can repress this message with NCCL_IGNORE_DISABLED_P2P=1.",
			"NVLS multicast support is not available on dev 0 (NVLS_NCHANNELS 0)",
		},
		Warnings: []string{
			"socketStartConnect: Connect to 10.0.0.8<4> failed : No route to host",
			"P2P is disabled between NVLINK connected GPUs 0 and 1.",
		},
	}
	check.Same(t_, "evidence", want, e)
}

func TestNVLS(t *testing.T) {
	for line, want := range map[string]bool{
		"NVLS comm 0x55d0c8 headRank 0 nHeads 2 buffSize 1048576 nvlsPerRankSize 4 nvlsTotalSize 8": true,
		"Connected NVLS tree": true,
		"NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)": false, // supported, but not set up yet
	} {
		e := parse(t, h+line)
		check.That(t, e.NVLS == want, "%s: got %v", line, e.NVLS)
	}
}

func TestWholeLogs(t *testing.T) {
	for file, want := range map[string]string{
		"nccl-2.29.7.log":        "NCCL 2.29.7+cuda13.0: 48 via P2P/direct pointer",
		"nccl-2.22.3-socket.log": "NCCL 2.22.3+cuda12.4: 8 via NET/Socket/0",
		"rccl-6.2.0.log":         "RCCL 2.20.5+hip6.2: 4 via NET/IB/0/GDRDMA, 2 via P2P/IPC",
	} {
		data := must.Get(os.ReadFile(filepath.Join("testdata", file)))(t)
		e := parse(t, string(data))
		check.Same(t, file, want, e.Library+" "+e.Version+": "+e.Summary())
	}
}

func TestSummary(t *testing.T) {
	check.Same(t, "no evidence", "no channels", (Evidence{}).Summary())
	e := Evidence{Connections: map[string]int{"SHM": 2, "P2P/IPC": 2, "NET/IB/0": 8}, NVLS: true}
	check.Same(t, "summary", "8 via NET/IB/0, 2 via P2P/IPC, 2 via SHM, NVLS", e.Summary())
	check.Same(t, "transports over IB", 8, e.Transports()[IB])
}

type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	e.n += len(p)
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestBounds(t *testing.T) {
	e := &endless{}
	_, err := Parse(e)
	check.That(t, err != nil && e.n <= 2*MaxLog, "an endless log was read: %d bytes, %v", e.n, err)
	var b strings.Builder
	for i := range maxPaths + 1 {
		b.WriteString(h + "Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/" + strings.Repeat("1", i%100) + string(rune('a'+i%26)) + strings.Repeat("2", i/100) + "\n")
		b.WriteString("x NCCL WARN " + strings.Repeat("w", i) + "\n")
	}
	_, err = Parse(strings.NewReader(b.String()))
	check.That(t, err != nil, "any number of ways was kept")
	_, err = Parse(io.MultiReader(strings.NewReader("x\n"), broken{}))
	check.That(t, err != nil, "a log that cannot be read was read")
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// seeds are logs of one or a few lines. With whole logs, the fuzzer would spend its
// time on making them smaller.
var seeds = []string{
	"RCCL version 2.16.5+hip5.6", h + "NCCL version 2.22.3+cuda12.4", h + "RCCL version : 2.21.5-HEAD:d7a1f5c",
	h + "NCCL_P2P_DISABLE set by environment to 1.", h + "Using network IB", h + "NET/IB : No device found.",
	h + "Connected NVLS tree", t + `src/init.cc:123 NCCL WARN Missing "iommu=pt" from kernel command line`,
	h + "Channel 00/0 : 3[22000] -> 0[c000] [receive] via NET/IB/0(3)/GDRDMA comm 0x7f00 nRanks 04",
	h + "Channel 05/0 : 6[6] -> 3[3] via P2P/direct pointer/read",
}

func FuzzParse(f *testing.F) {
	for _, text := range seeds {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		must.Hold(t, len(e.Settings) <= maxSettings && len(e.Reasons) <= maxLines && len(e.Warnings) <= maxLines && len(e.Connections) <= maxPaths &&
			len(e.Version) <= 4*maxText+4, "kept too much of it: %d reasons", len(e.Reasons))
		_ = e.Summary()
	})
}
