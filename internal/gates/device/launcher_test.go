package device_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"builder/internal/gates/device"
	"builder/internal/gates/gate"
	"builder/internal/gates/verdict"
	"builder/internal/machine/gpu"
	"builder/internal/machine/nccltests"
	"builder/test/kit/check"
)

// onHosts returns a run of two ranks on different hosts with the same bus address.
func onHosts(log ...string) func(nccltests.Sweep) (nccltests.Measured, error) {
	return but(func(m *nccltests.Measured) {
		m.Log = version2297 + strings.Join(log, "")
		m.Report.Devices = []nccltests.Device{
			{Host: "node1", Name: "NVIDIA H200", BusID: "0000:8d:00.0"},
			{Host: "node2", Name: "NVIDIA H200", BusID: "0000:8d:00.0"},
		}
	})
}

func onOneHost() []nccltests.Device {
	return []nccltests.Device{{Host: "node1", BusID: "0000:8d:00.0"}, {Host: "node1", BusID: "0000:95:00.0"}}
}

// launched requests ranks by a launcher, from a host without a GPU.
func launched(transport device.Transport) func(*gate.Subject) {
	return func(s *gate.Subject) {
		s.Device.Launcher, s.Device.Transport = []string{"mpirun", "-np", "2"}, transport
		s.Device.Host, s.Device.Fault = gpu.Host{}, errors.New("no driver")
	}
}

func TestRanksOfALauncher(t *testing.T) {
	overIB := strings.Replace(overSocket, "Socket/0", "IB/0", 1)
	checkCases(t, "nccl-tests", map[string]deviceCase{
		"two hosts": {measured: onHosts(), edit: launched(""), want: verdict.Pass, says: "correct on 2 x NVIDIA H200 of node1, node2, up to"},
		"one GPU for two ranks": {measured: but(func(m *nccltests.Measured) {
			m.Report.Devices = []nccltests.Device{{Host: "node1", BusID: "0000:8d:00.0"}, {Host: "node1", BusID: "0000:8d:00.0"}}
		}), edit: launched(""), want: verdict.Fail, says: "two ranks share the GPU 0000:8d:00.0 of node1"},
	})
	checkCases(t, "transport", map[string]deviceCase{
		"InfiniBand":           {measured: onHosts(overIB, overP2P), edit: launched(device.IB), want: verdict.Pass, says: "ib between node1, node2: "},
		"sockets":              {measured: onHosts(overIB, overSocket, noDevice), edit: launched(device.IB), want: verdict.Fail, says: "1 of 2 connections between node1, node2 do not run over ib"},
		"only inside the host": {measured: onHosts(overP2P), edit: launched(device.IB), want: verdict.NotMeasured, says: "names no connection over ib between node1, node2", remedy: "ib, gdrdma or socket"},
		"NVLink between hosts": {measured: onHosts(overIB), edit: launched(device.NVLink), want: verdict.Fail, says: "do not run over nvlink"},
		"none named":           {measured: onHosts(overIB), edit: launched(""), want: verdict.NotMeasured, says: "no transport named for the ranks of the launcher", remedy: "--transport nvlink|p2p"},
		"one host, network":    {measured: but(func(m *nccltests.Measured) { m.Log = version2297 + overP2P; m.Report.Devices = onOneHost() }), edit: launched(device.GDRDMA), want: verdict.NotMeasured, says: "all ranks ran on node1, so no connection left it", remedy: "--nodes=2"},
		"one host, forced":     {measured: but(func(m *nccltests.Measured) { m.Log = version2297 + overSocket; m.Report.Devices = onOneHost() }), edit: launched(device.Socket), want: verdict.Pass, says: "socket: 1 via"},
		"one host after all":   {measured: but(func(m *nccltests.Measured) { m.Log = version2297 + overP2P }), edit: launched(device.P2P), want: verdict.Pass, says: "p2p: 1 via"},
	})
}

// Ranks of several hosts use the network by themselves, so no variable forces it, and
// connections inside a host stay as they are.
func TestLauncherForcesNoTransport(t *testing.T) {
	s, b := subject(onHosts(overSocket), launched(device.Socket))
	v := named(t, "transport").Check(t.Context(), s)
	check.That(t, v.Status == verdict.Pass, "%+v", v)
	asked := b.asked[0]
	check.That(t, len(asked.Env) == 0 && slices.Equal(asked.Launcher, s.Device.Launcher) && asked.GPUs == 2, "%+v", asked)
}
