package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"builder/internal/machine/host"
	"builder/test/kit/check"
	"builder/test/kit/elftest"
)

// Eight GPUs and ten NICs do not fit side by side: the drawing continues below.
func TestDrawingFits(t *testing.T) {
	var gpus, nics []end
	for i := range 8 {
		gpus = append(gpus, end{label: fmt.Sprintf("GPU%d", i), name: "NVIDIA H100 80GB HBM3"})
	}
	for i := range 10 {
		nics = append(nics, end{label: fmt.Sprintf("NIC%d", i), name: "mlx5_0"})
	}
	lines := draw(gpus, nics, nil)
	text := strings.Join(lines, "\n")
	for _, line := range lines {
		if utf8.RuneCountInString(line) > 78 { // two columns are for the indentation
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	for _, e := range append(gpus, nics...) {
		check.That(t, strings.Count(text, e.label) >= 2, "%s is not drawn", e.label)
	}
}

// change returns a recorded host with changed files and programs. An empty file is
// removed.
func change(t *testing.T, name string, files map[string]string, run func(string) (string, error)) host.Host {
	t.Helper()
	h := recorded(t, name)
	root := h.FS.(fstest.MapFS)
	for file, text := range files {
		root[file] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
		if text == "" {
			delete(root, file)
		}
	}
	if run != nil {
		before := h.Run
		h.Run = func(ctx context.Context, name string, args ...string) (string, error) {
			if text, err := run(name); text != "" || err != nil {
				return text, err
			}
			return before(ctx, name, args...)
		}
	}
	return h
}

// only replaces the output and error of one program.
func only(program, text string, err error) func(string) (string, error) {
	return func(name string) (string, error) {
		if name == program {
			return text, err
		}
		return "", nil
	}
}

func TestGPUs(t *testing.T) {
	const theirs = "nvidia-infiniband"
	cuda13 := withRecipe(func(r *Needs) { r.CUDA = "13.0" })
	cuda12 := withRecipe(func(r *Needs) { r.CUDA = "12.9" })
	for name, c := range map[string]struct {
		check   string
		host    host.Host
		work    Work
		verdict Verdict
		says    string
	}{
		"the driver was updated": {"gpus", change(t, theirs, nil, only("nvidia-smi", "Failed to initialize NVML: Driver/library version mismatch", errors.New("exit status 18"))), work, Fail, "version mismatch"},
		"no tool":                {"gpus", change(t, theirs, nil, only("nvidia-smi", "", os.ErrNotExist)), work, Fail, "not exist"},
		"no driver":              {"gpus", change(t, "bare", map[string]string{"sys/devices/pci0000:00/0000:00:05.0/vendor": "0x10de", "sys/devices/pci0000:00/0000:00:05.0/class": "0x030200"}, nil), work, Warn, "1 GPU on the bus, no driver"},
		"driver without a tool":  {"gpus", change(t, "bare", map[string]string{"proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue"}, nil), work, Warn, "driver 535.54.03"},
		"one GPU is off the bus": {"gpus", change(t, theirs, map[string]string{"sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/class": "0x030200", "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/vendor": "0x10de"}, nil), work, Warn, "3 on the bus"},
		"a newer CUDA":           {"gpus", recorded(t, theirs), cuda13, Warn, "but not run it"},
		"a minor release":        {"gpus", recorded(t, theirs), cuda12, OK, "2 x NVIDIA H100"},
		"the tool finds none":    {"gpus", change(t, theirs, nil, only("nvidia-smi", "No devices were found\n", errors.New("exit status 6"))), work, Warn, "2 GPUs on the bus, and the tool of the driver finds none"},
		"AMD without a tool":     {"gpus", change(t, "amd-roce", nil, only("amd-smi", "", exec.ErrNotFound)), work, Warn, "AMD's driver 6.12.12; the GPUs are unknown"},
		"no device file":         {"gpus", change(t, "amd-roce", map[string]string{"dev/kfd": ""}, nil), work, Warn, "no /dev/kfd"},
		"no peer memory":         {"peer-memory", change(t, theirs, map[string]string{"sys/module/nvidia_peermem/version": ""}, nil), work, Warn, "is not the open one"},
		"an old kernel": {"peer-memory", change(t, theirs, map[string]string{
			"sys/module/nvidia_peermem/version": "", "proc/sys/kernel/osrelease": "5.4.0-1", "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15",
		}, nil), work, Warn, "older than 5.12"},
		"no module of AMD": {"peer-memory", recorded(t, "amd-roce"), work, Unknown, "no module for peer memory"},
		"amdkfd is loaded": {"peer-memory", change(t, "amd-roce", map[string]string{"sys/kernel/mm/memory_peers/amdkfd/version": "1"}, nil), work, OK, "amdkfd"},
		"no port is up":    {"rdma", change(t, "amd-roce", map[string]string{"sys/class/infiniband/bnxt_re0/ports/1/state": "1: DOWN"}, nil), work, Warn, "0 of 2 ports active"},
		"no verbs":         {"verbs", change(t, "amd-roce", nil, only("ldconfig", "nothing", nil)), work, Warn, "no libibverbs.so.1"},
		"a node without memory": {"numa", change(t, theirs, map[string]string{
			"sys/devices/system/node/node0/x": "x", "sys/devices/system/node/online": "0-3", "sys/devices/system/node/has_memory": "0,2", "sys/devices/system/node/has_cpu": "0-3",
		}, nil), work, Warn, "nodes 0-3, with memory 0,2, with CPUs 0-3"},
		"even nodes": {"numa", change(t, theirs, map[string]string{
			"sys/devices/system/node/node0/x": "x", "sys/devices/system/node/online": "0", "sys/devices/system/node/has_memory": "0", "sys/devices/system/node/has_cpu": "0",
			"proc/sys/kernel/numa_balancing": "0",
		}, nil), work, OK, "node"},
		"NCCL needs newer verbs": {"verbs", change(t, theirs, map[string]string{
			"lib/x86_64-linux-gnu/libnccl.so.2": string(elftest.Library{Soname: "libnccl.so.2", Needed: []string{"libibverbs.so.1"}, Undefined: elftest.From("libibverbs.so.1", "IBVERBS_1.16", "ibv_query_port_speed")}.Bytes()),
		}, nil), work, Warn, "has IBVERBS_1.14; /lib/x86_64-linux-gnu/libnccl.so.2 needs IBVERBS_1.16 (ibv_query_port_speed) and does not load"},
		"NCCL links old verbs": {"verbs", change(t, theirs, map[string]string{
			"lib/x86_64-linux-gnu/libnccl.so.2": string(elftest.Library{Soname: "libnccl.so.2", Needed: []string{"libibverbs.so.1"}, Undefined: elftest.From("libibverbs.so.1", "IBVERBS_1.8", "ibv_reg_mr_iova2")}.Bytes()),
		}, nil), work, OK, "it has all that /lib/x86_64-linux-gnu/libnccl.so.2 links, up to IBVERBS_1.8"},
		"a broken library": {"rccl", change(t, "amd-roce", map[string]string{"opt/rocm-6.4.1/lib/librccl.so.1": "\x7fELF"}, nil), work, Unknown, "not readable"},
		"a hanging tool":   {"verbs", change(t, "bare", nil, only("ldconfig", "", context.DeadlineExceeded)), work, Unknown, "deadline"},
	} {
		got := examine(t, c.check, c.host, c.work)
		check.That(t, got.Verdict == c.verdict && strings.Contains(got.Found, c.says), "%s: %s: %s", name, got.Verdict, got.Found)
	}
}

func TestKinship(t *testing.T) {
	at := func(node int, way string) device { return device{node: node, way: wayOf("../../../devices/" + way)} }
	gpu := at(0, "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0")
	for _, c := range []struct {
		what  string
		other device
		want  string
	}{
		{"a port of the same switch", at(0, "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0"), "PIX"},
		{"a function of the same card", at(0, "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.1"), "PIX"},
		{"a switch below the same switch", at(0, "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0/0000:1a:00.0/0000:1b:00.0"), "PXB"},
		{"a switch below the same root port", at(0, "pci0000:15/0000:15:01.0/0000:26:00.0/0000:27:00.0/0000:28:00.0"), "PXB"},
		{"another root port", at(0, "pci0000:15/0000:15:03.0/0000:30:00.0"), "PHB"},
		{"on the host bridge itself", at(0, "pci0000:15/0000:15:05.0"), "PHB"},
		{"another host bridge", at(0, "pci0000:37/0000:37:01.0/0000:38:00.0"), "NODE"},
		{"another node", at(1, "pci0000:97/0000:97:01.0/0000:98:00.0"), "SYS"},
		{"an unknown node", at(-1, "pci0000:97/0000:97:01.0/0000:98:00.0"), "?"},
		{"a domain of five digits", at(0, "pci10000:e0/10000:e0:06.0/10000:e1:00.0"), "NODE"},
		{"a device without a path", device{}, "?"},
		{"an invalid path", at(0, "platform/vmd"), "?"},
	} {
		if got, back := kinship(gpu, c.other), kinship(c.other, gpu); got != c.want || back != c.want {
			t.Errorf("%s: %s, and %s back, want %s", c.what, got, back, c.want)
		}
	}
}
