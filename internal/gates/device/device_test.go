package device_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"builder/internal/gates/device"
	"builder/internal/gates/gate"
	"builder/internal/gates/verdict"
	"builder/internal/machine/gpu"
	"builder/internal/machine/nccllog"
	"builder/internal/machine/nccltests"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// named returns a gate of package gate, so that the tests cover its additions to a
// verdict, such as the remedy.
func named(t *testing.T, name string) gate.Gate {
	t.Helper()
	i := slices.Index(gate.Names(), name)
	must.Hold(t, i >= 0, "no gate is called %s", name)
	return gate.All()[i]
}

// bench is a simulated host with two H200.
type bench struct {
	measured func(nccltests.Sweep) (nccltests.Measured, error)
	asked    []nccltests.Sweep
}

func (b *bench) Sweep(_ context.Context, s nccltests.Sweep) (nccltests.Measured, error) {
	b.asked = append(b.asked, s)
	return b.measured(s)
}

const (
	version2297 = "n:1:2 [0] NCCL INFO NCCL version 2.29.7+cuda13.0\n"
	overP2P     = "n:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer\n"
	overSocket  = "n:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0\n"
	noDevice    = "n:1:2 [0] NCCL INFO NET/IB : No device found.\n"
)

var h200 = []nccltests.Device{
	{Name: "NVIDIA H200", BusID: "0000:8d:00.0"},
	{Name: "NVIDIA H200", BusID: "0000:95:00.0"},
}

// good returns a correct run: every size right, at busbw GB/s.
func good(s nccltests.Sweep, busbw float64, log string) nccltests.Measured {
	m := nccltests.Measured{Report: nccltests.Report{Library: 22907, Devices: h200[:min(s.GPUs, 2)]}, Log: log}
	for size := s.MinBytes; size <= s.MaxBytes; size *= int64(s.Factor) {
		t := nccltests.Timing{BusBW: busbw, Checked: true}
		m.Report.Rows = append(m.Report.Rows, nccltests.Row{Bytes: size, Type: "float", OutOfPlace: t, InPlace: t})
	}
	return m
}

// subject returns an artifact on that host, changed by edit.
func subject(measured func(nccltests.Sweep) (nccltests.Measured, error), edit func(*gate.Subject)) (gate.Subject, *bench) {
	b := &bench{measured: measured}
	s := gate.Subject{
		Expect: recipe.Expect{Collectives: []string{"all_reduce"}, LibrarySays: "2.29.7+cuda13.0"},
		Device: &device.Setup{
			Sweep: b.Sweep, GPUs: 2, Programs: "/programs", Library: "/ours", Against: "/theirs", Baseline: "vendor",
			MaxBytes: 8 << 20, Timeout: time.Minute,
			Host: gpu.Host{
				GPUs:  []gpu.GPU{{Name: "NVIDIA H200", BusID: "0000:8d:00.0"}, {Name: "NVIDIA H200", BusID: "0000:95:00.0"}},
				Links: [][]string{{"", "NV18"}, {"NV18", ""}},
			},
		},
	}
	if edit != nil {
		edit(&s)
	}
	return s, b
}

// right answers every sweep with a good run over P2P.
func right(s nccltests.Sweep) (nccltests.Measured, error) {
	return good(s, 100, version2297+overP2P), nil
}

// but returns right with a change.
func but(change func(*nccltests.Measured)) func(nccltests.Sweep) (nccltests.Measured, error) {
	return func(s nccltests.Sweep) (nccltests.Measured, error) {
		m := good(s, 100, version2297+overP2P)
		change(&m)
		return m, nil
	}
}

func failing(err error) func(nccltests.Sweep) (nccltests.Measured, error) {
	return func(nccltests.Sweep) (nccltests.Measured, error) { return nccltests.Measured{}, err }
}

type deviceCase struct {
	measured func(nccltests.Sweep) (nccltests.Measured, error)
	edit     func(*gate.Subject)
	want     verdict.Status
	says     string
	remedy   string
}

func checkCases(t *testing.T, gateName string, cases map[string]deviceCase) {
	t.Helper()
	g := named(t, gateName)
	for name, c := range cases {
		if c.measured == nil {
			c.measured = right
		}
		s, _ := subject(c.measured, c.edit)
		v := g.Check(t.Context(), s)
		check.That(t, v.Status == c.want && strings.Contains(v.Evidence, c.says) && strings.Contains(v.Remedy, c.remedy),
			"%s: got %v: %s\nremedy: %s", name, v.Status, v.Evidence, v.Remedy)
		check.That(t, (v.Remedy == "") == (v.Status == verdict.Pass),
			"%s: a remedy stands where, and only where, it did not pass: %q", name, v.Remedy)
	}
}

func TestCollectives(t *testing.T) {
	checkCases(t, "nccl-tests", map[string]deviceCase{
		"as promised":    {want: verdict.Pass, says: "all_reduce: 21 sizes of 8 B to 8 MiB correct on 2 x NVIDIA H200, up to 100.0 GB/s, by NCCL 2.29.7+cuda13.0"},
		"wrong":          {measured: but(func(m *nccltests.Measured) { m.Report.Rows[3].InPlace.Wrong = 8 }), want: verdict.Fail, says: "8 wrong elements at 64 B of float", remedy: "device-functions"},
		"wrong by count": {measured: but(func(m *nccltests.Measured) { m.Report.OutOfBounds = 2 }), want: verdict.Fail, says: "2 passes have values out of bounds"},
		"many wrong": {measured: but(func(m *nccltests.Measured) {
			for i := range m.Report.Rows {
				m.Report.Rows[i].OutOfPlace.Wrong = 1
			}
		}), want: verdict.Fail, says: "and 18 more sizes"},
		"not checked": {measured: but(func(m *nccltests.Measured) { m.Report.Rows[0].InPlace.Checked = false }), want: verdict.Fail, says: "the program did not check the results at 8 B"},
		"alltoall is not checked in place": {measured: but(func(m *nccltests.Measured) {
			m.Report.Program = "alltoall_perf"
			for i := range m.Report.Rows {
				m.Report.Rows[i].InPlace.Checked = false
			}
		}), edit: func(s *gate.Subject) { s.Expect.Collectives = []string{"alltoall"} }, want: verdict.Pass, says: "alltoall: 21 sizes"},
		"one GPU took part":          {measured: but(func(m *nccltests.Measured) { m.Report.Devices = h200[:1] }), want: verdict.Fail, says: "1 GPUs took part, 2 were requested"},
		"no GPU took part":           {measured: but(func(m *nccltests.Measured) { m.Report.Devices = nil }), want: verdict.Fail, says: "0 GPUs took part, 2 were requested"},
		"one GPU twice":              {measured: but(func(m *nccltests.Measured) { m.Report.Devices = []nccltests.Device{h200[0], h200[0]} }), want: verdict.Fail, says: "two ranks share the GPU 0000:8d:00.0"},
		"other library":              {measured: but(func(m *nccltests.Measured) { m.Log = strings.Replace(m.Log, "13.0", "12.4", 1) }), want: verdict.Fail, says: "the library reports 2.29.7+cuda12.4, expected 2.29.7+cuda13.0"},
		"no CUDA":                    {measured: but(func(m *nccltests.Measured) { m.Log = strings.Replace(m.Log, "cuda13.0", "cuda.", 1) }), want: verdict.Fail, says: "2.29.7+cuda., expected"},
		"number alone":               {measured: but(func(m *nccltests.Measured) { m.Log = "" }), want: verdict.Pass, says: "by 2.29.7"},
		"wrong number alone":         {measured: but(func(m *nccltests.Measured) { m.Log, m.Report.Library = "", 22809 }), want: verdict.Fail, says: "the library reports 2.28.9, expected 2.29.7"},
		"two witnesses":              {measured: but(func(m *nccltests.Measured) { m.Report.Library = 22809 }), want: verdict.NotMeasured, says: "the log names version 2.29.7+cuda13.0, the program 2.28.9"},
		"no library version":         {measured: but(func(m *nccltests.Measured) { m.Log, m.Report.Library = "", 0 }), want: verdict.NotMeasured, says: "neither the log nor the program names the library in use"},
		"nothing promised":           {edit: func(s *gate.Subject) { s.Expect.LibrarySays = "" }, want: verdict.Pass, says: "by NCCL 2.29.7+cuda13.0"},
		"too fast":                   {measured: but(func(m *nccltests.Measured) { m.Report.Rows[20].OutOfPlace.BusBW = 7400 }), want: verdict.Fail, says: "7400 GB/s at 8 MiB, but the links between 2 of NVIDIA H200 carry 900", remedy: "returns its input unchanged"},
		"the full rate of the links": {measured: but(func(m *nccltests.Measured) { m.Report.Rows[20].OutOfPlace.BusBW = 900 }), want: verdict.Pass, says: "up to 900.0 GB/s"},
		"too fast for any": {measured: but(func(m *nccltests.Measured) {
			m.Report.Rows[20].OutOfPlace.BusBW = 7400
			m.Report.Devices = []nccltests.Device{{Name: "X1", BusID: "a"}, {Name: "X1", BusID: "b"}}
		}), want: verdict.Fail, says: "(X1 is unknown)"},
		"one GPU has no link": {measured: but(func(m *nccltests.Measured) { m.Report.Rows[20].OutOfPlace.BusBW, m.Report.Devices = 2000, h200[:1] }), edit: func(s *gate.Subject) { s.Device.GPUs = 1 }, want: verdict.Pass, says: "on 1 x NVIDIA H200"},
		"hangs":               {measured: failing(fmt.Errorf("running x: %w; it last printed: y", nccltests.ErrTimeout)), want: verdict.Fail, says: "all_reduce hangs: running x: it did not end in time; it last printed: y", remedy: "--time-limit"},
		"crashes":             {measured: failing(fmt.Errorf("%w: signal 11", nccltests.ErrFailed)), want: verdict.Fail, says: "signal 11"},
		"does not start":      {measured: failing(fmt.Errorf("%w: libcudart.so.12", nccltests.ErrNotStarted)), want: verdict.NotMeasured, says: "libcudart.so.12", remedy: "LD_LIBRARY_PATH"},
		"unreadable":          {measured: failing(errors.New("the footer is missing")), want: verdict.NotMeasured, says: "the footer is missing"},
		"log too long":        {measured: but(func(m *nccltests.Measured) { m.Log += strings.Repeat("x", nccllog.MaxLog) }), want: verdict.NotMeasured, says: "exceeds 67108864 bytes"},
	})
}

func TestDeviceGatesNeedADevice(t *testing.T) {
	lacking := map[string]deviceCase{
		"no device":     {edit: func(s *gate.Subject) { s.Device = nil }, want: verdict.NotMeasured, says: "no GPU requested", remedy: "--gpus"},
		"no tool":       {edit: func(s *gate.Subject) { s.Device.Fault = gpu.ErrNoTool }, want: verdict.NotMeasured, says: "rocm-smi do not work", remedy: "driver"},
		"too few GPUs":  {edit: func(s *gate.Subject) { s.Device.GPUs = 4 }, want: verdict.NotMeasured, says: "4 GPUs requested, this host has 2", remedy: "fewer"},
		"no GPU at all": {edit: func(s *gate.Subject) { s.Device.GPUs, s.Device.Host = 0, gpu.Host{} }, want: verdict.NotMeasured, says: "this host has 0", remedy: "larger host"},
		"no programs":   {edit: func(s *gate.Subject) { s.Device.Programs = "" }, want: verdict.NotMeasured, says: "the programs for the measurement are missing", remedy: "--programs"},
		"no library":    {edit: func(s *gate.Subject) { s.Device.Library = "" }, want: verdict.NotMeasured, says: "holds neither libnccl.so.2 nor librccl.so.1", remedy: "expect"},
	}
	for _, name := range []string{"nccl-tests", "transport", "busbw"} {
		checkCases(t, name, lacking)
		if g := named(t, name); g.Needs != gate.GPUs || g.Wants(recipe.Expect{}) || !g.Wants(recipe.Expect{Collectives: []string{"all_reduce"}}) {
			t.Errorf("gate %s needs no GPUs, is wanted without a collective, or not with one", name)
		}
	}
	one := map[string]deviceCase{"one GPU": {edit: func(s *gate.Subject) { s.Device.GPUs = 1 }, want: verdict.NotMeasured, says: "1 GPU requested, at least 2 needed", remedy: "--gpus 2"}}
	checkCases(t, "transport", one)
	checkCases(t, "busbw", one)
}

func TestTransport(t *testing.T) {
	log := func(lines ...string) func(nccltests.Sweep) (nccltests.Measured, error) {
		return but(func(m *nccltests.Measured) { m.Log = version2297 + strings.Join(lines, "") })
	}
	want := func(name device.Transport) func(*gate.Subject) {
		return func(s *gate.Subject) { s.Device.Transport = name }
	}
	checkCases(t, "transport", map[string]deviceCase{
		"NVLink by itself":     {want: verdict.Pass, says: "nvlink: 1 via P2P/direct pointer"},
		"p2p":                  {edit: want(device.P2P), want: verdict.Pass, says: "p2p: 1 via"},
		"sockets for NVLink":   {measured: log(overP2P, overSocket, noDevice), want: verdict.Fail, says: "1 of 2 connections do not run over nvlink: 1 via NET/Socket/0, 1 via P2P/direct pointer; the library logged: NET/IB : No device found.", remedy: "rdma-core"},
		"sockets for IB":       {measured: log(overSocket, noDevice), edit: want(device.IB), want: verdict.Fail, says: "NET/IB : No device found."},
		"sockets as asked":     {measured: log(overSocket), edit: want(device.Socket), want: verdict.Pass, says: "socket: 1 via NET/Socket/0"},
		"IB without GDRDMA":    {measured: log(strings.Replace(overSocket, "Socket/0", "IB/0", 1)), edit: want(device.GDRDMA), want: verdict.Fail, says: "1 via NET/IB/0; the library logged: nothing"},
		"GDRDMA is IB":         {measured: log(strings.Replace(overSocket, "Socket/0", "IB/0/GDRDMA", 1)), edit: want(device.IB), want: verdict.Pass, says: "ib: 1 via NET/IB/0/GDRDMA"},
		"SHM for P2P":          {measured: log(strings.Replace(overP2P, "P2P/direct pointer", "SHM/direct/direct", 1)), edit: want(device.P2P), want: verdict.Fail, says: "1 of 1 connections do not run over p2p: 1 via SHM"},
		"SHM":                  {measured: log(strings.Replace(overP2P, "P2P/direct pointer", "SHM/direct/direct", 1)), edit: want(device.SHM), want: verdict.Pass, says: "shm: 1 via SHM"},
		"NVLS alone":           {measured: log("n:1:2 [0] NCCL INFO Connected NVLS tree\n"), want: verdict.Pass, says: "NVLS"},
		"silent":               {measured: log(), want: verdict.NotMeasured, says: "names no connection"},
		"PCIe is no NVLink":    {edit: func(s *gate.Subject) { s.Device.Host.Links[0][1] = "SYS"; s.Device.Transport = device.NVLink }, want: verdict.Fail, says: "but SYS joins two of the GPUs", remedy: "CUDA_VISIBLE_DEVICES"},
		"links are not told":   {edit: func(s *gate.Subject) { s.Device.Host.Links = nil; s.Device.Transport = device.NVLink }, want: verdict.NotMeasured, says: "the links between the GPUs are unknown", remedy: "p2p"},
		"nothing is wanted":    {edit: func(s *gate.Subject) { s.Device.Host.Links[0][1] = "SYS" }, want: verdict.NotMeasured, says: "no transport named, and NVLink does not join all GPUs of this host (two are joined by: SYS)", remedy: "--transport nvlink|p2p|shm|ib|gdrdma|socket"},
		"no such transport":    {edit: want("pigeon"), want: verdict.NotMeasured, says: `"pigeon"`, remedy: "known"},
		"crash":                {measured: failing(nccltests.ErrFailed), want: verdict.Fail, says: "it failed"},
		"two libraries in one": {measured: log(strings.Replace(version2297, "13.0", "12.4", 1)), want: verdict.NotMeasured, says: "two libraries"},
	})
}

// Between the GPUs of one host NCCL uses the network only if the better transports are
// disabled.
func TestTransportForcesTheWay(t *testing.T) {
	for name, want := range map[device.Transport]string{
		device.NVLink: "", device.P2P: "", device.SHM: "NCCL_P2P_DISABLE", device.IB: "NCCL_SHM_DISABLE", device.GDRDMA: "NCCL_SHM_DISABLE", device.Socket: "NCCL_NET",
	} {
		s, b := subject(right, func(s *gate.Subject) { s.Device.Transport, s.Device.Env = name, map[string]string{"MINE": "1"} })
		named(t, "transport").Check(t.Context(), s)
		env := b.asked[0].Env
		_, set := env[want]
		check.That(t, env["MINE"] == "1" && (want == "" || set) && (want != "" || len(env) == 1), "%s: got %v", name, env)
		check.That(t, len(s.Device.Env) == 1, "%s: the device was changed: %v", name, s.Device.Env)
		got, err := device.TransportNamed(string(name))
		check.That(t, got == name && err == nil, "%s: got %s, %v", name, got, err)
	}
}

func TestBusbw(t *testing.T) {
	// speeds returns runs with the speeds ours and theirs. noise scales ours in each
	// round.
	speeds := func(ours, theirs float64, noise ...float64) func(nccltests.Sweep) (nccltests.Measured, error) {
		count := map[string]int{}
		return func(s nccltests.Sweep) (nccltests.Measured, error) {
			speed := theirs
			if s.Library == "/ours" {
				speed = ours
				if n := count[s.Library]; n < len(noise) {
					speed *= noise[n]
				}
			}
			count[s.Library]++
			return good(s, speed, version2297), nil
		}
	}
	checkCases(t, "busbw", map[string]deviceCase{
		"as fast":                      {measured: speeds(100, 100), want: verdict.Pass, says: "all_reduce against vendor, medians of 3 rounds in turn: 1.00 at 1 MiB, 1.00 at 4 MiB (100.0 of 100.0 GB/s), lowest 1.00 at 1 MiB"},
		"just fast enough":             {measured: speeds(95, 100), want: verdict.Pass, says: "0.95"},
		"a little slower":              {measured: speeds(96, 100), want: verdict.Pass, says: "0.96"},
		"too slow":                     {measured: speeds(90, 100), want: verdict.Fail, says: "all_reduce at 1 MiB: 90.0 GB/s, vendor has 100.0: ratio 0.90 by the medians of 12 rounds, below 0.95", remedy: "NCCL_DEBUG"},
		"one bad round":                {measured: speeds(100, 100, 0.3), want: verdict.Pass, says: "1.00"},
		"two bad rounds":               {measured: speeds(100, 100, 0.3, 0.3), want: verdict.Pass, says: "medians of 12 rounds in turn: 1.00"},
		"most rounds bad":              {measured: speeds(100, 100, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3), want: verdict.NotMeasured, says: "ratio 0.30 by the medians of 12 rounds, below 0.95, but slower in 7 of 12 rounds only", remedy: "quieter host"},
		"noise":                        {measured: speeds(100, 100, 0.93, 0.93, 0.93, 0.93, 0.93, 0.93, 0.93, 1.2, 1.2), want: verdict.Pass, says: "ratio 0.93 by the medians of 12 rounds, below 0.95, but slower in 7 of 12 rounds only"},
		"slower in all rounds but one": {measured: speeds(90, 100, 1.2), want: verdict.Fail, says: "ratio 0.90 by the medians of 12 rounds, below 0.95"},
		"faster":                       {measured: speeds(120, 100), want: verdict.Pass, says: "1.20"},
		"no baseline":                  {edit: func(s *gate.Subject) { s.Device.Against = "" }, want: verdict.NotMeasured, says: "no library to compare with", remedy: "--against DIR|WHEEL|LIB"},
		"small sizes":                  {edit: func(s *gate.Subject) { s.Device.MaxBytes = 1024 }, want: verdict.NotMeasured, says: "sizes up to 1 KiB", remedy: "--max-bytes"},
		"theirs is zero":               {measured: speeds(100, 0), want: verdict.NotMeasured, says: "the other library has no measurement at 1 MiB"},
		"theirs is broken":             {measured: func(s nccltests.Sweep) (nccltests.Measured, error) { return sided(s, nccltests.ErrFailed, "/theirs") }, want: verdict.NotMeasured, says: "all_reduce with vendor: it failed", remedy: "give --against a library for this host"},
		"ours is broken":               {measured: func(s nccltests.Sweep) (nccltests.Measured, error) { return sided(s, nccltests.ErrFailed, "/ours") }, want: verdict.Fail, says: "it failed"},
		"other sizes": {measured: func(s nccltests.Sweep) (nccltests.Measured, error) {
			m := good(s, 100, version2297)
			if s.Library == "/theirs" {
				m.Report.Rows = append(m.Report.Rows, nccltests.Row{Bytes: 1 << 30})
			}
			return m, nil
		}, want: verdict.NotMeasured, says: "the libraries have 2 and 3 measured sizes, and must have the same"},
	})
}

// sided fails for the library in one directory.
func sided(s nccltests.Sweep, err error, library string) (nccltests.Measured, error) {
	if s.Library == library {
		return nccltests.Measured{}, err
	}
	return good(s, 100, version2297), nil
}

func TestBusbwRunsInTurn(t *testing.T) {
	s, b := subject(right, nil)
	named(t, "busbw").Check(t.Context(), s)
	var order []string
	for _, sweep := range b.asked {
		order = append(order, sweep.Library)
		check.That(t, sweep.MinBytes == 1<<20 && sweep.MaxBytes == s.Device.MaxBytes &&
			sweep.Program == "/programs/all_reduce_perf" && sweep.Timeout == time.Minute, "asked %+v", sweep)
	}
	check.Same(t, "order", "/ours /theirs /theirs /ours /ours /theirs", strings.Join(order, " "))
}

func TestSizeText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 8: "8 B", 1000: "1000 B", 1 << 20: "1 MiB", 3 << 29: "1536 MiB", 2 << 30: "2 GiB"} {
		check.Same(t, fmt.Sprint(n), want, device.SizeText(n))
	}
}

func TestDeviceLog(t *testing.T) {
	var log strings.Builder
	s, _ := subject(but(func(m *nccltests.Measured) { m.Output = "a table\n" }), func(s *gate.Subject) { s.Device.Log = &log })
	named(t, "nccl-tests").Check(t.Context(), s)
	if got := log.String(); !strings.Contains(got, "$ all_reduce_perf, 2 GPUs, /ours\na table\n") || !strings.Contains(got, "NCCL version") {
		t.Errorf("got %s", got)
	}
}
