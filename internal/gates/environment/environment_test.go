package environment

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"builder/internal/files/elf/elftest"
	"builder/internal/files/wheel/wheeltest"
	"builder/internal/gates/verdict"
)

// installed is a distribution as installed by pip.
type installed struct {
	name, version string
	requires      []string
	files         map[string]string // path below site-packages
}

// world describes an environment and its host.
type world struct {
	dists  []*installed
	after  map[string]string // files to write after the installation; "" removes the file
	system map[string]string // below the directory of system libraries
	ahead  map[string]string // below the directory in LD_LIBRARY_PATH
}

func (w *world) of(name string) *installed {
	i := slices.IndexFunc(w.dists, func(d *installed) bool { return d.name == name })
	return w.dists[i]
}

func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if text == "" {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// write installs everything into a virtual environment and opens it.
func (w *world) write(t *testing.T) *Environment {
	t.Helper()
	root := t.TempDir()
	site := filepath.Join(root, "venv/lib/python3.12/site-packages")
	put(t, root, map[string]string{"venv/pyvenv.cfg": "include-system-site-packages = false\n", "venv/bin/python": "#!/bin/sh\nexit 1\n"})
	for _, d := range w.dists {
		info := strings.ReplaceAll(d.name, "-", "_") + "-" + d.version + ".dist-info"
		metadata := fmt.Sprintf("Metadata-Version: 2.1\nName: %s\nVersion: %s\n", d.name, d.version)
		for _, r := range d.requires {
			metadata += "Requires-Dist: " + r + "\n"
		}
		files := []wheeltest.File{{Name: info + "/METADATA", Text: metadata}}
		for _, name := range sorted(d.files) {
			files = append(files, wheeltest.File{Name: name, Text: d.files[name]})
		}
		for _, f := range append(files, wheeltest.Record(info+"/RECORD", files...)) {
			put(t, site, map[string]string{f.Name: f.Text})
		}
	}
	put(t, site, w.after)
	put(t, filepath.Join(root, "system"), w.system)
	put(t, filepath.Join(root, "ahead"), w.ahead)
	host := Host{Directories: []string{filepath.Join(root, "system")}}
	if len(w.ahead) > 0 {
		host.LibraryPath = []string{filepath.Join(root, "ahead")}
	}
	e, err := Open(t.Context(), filepath.Join(root, "venv"), host)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func elfOf(l elftest.Library) string { return string(l.Bytes()) }

func nccl(version string, more ...string) string {
	return elfOf(elftest.Library{
		Soname: "libnccl.so.2", Texts: []string{"NCCL version " + version + "+cuda13.0"},
		Exported: elftest.Named(append([]string{"ncclAllReduce", "ncclGetVersion"}, more...)...), Sections: []elftest.Section{elftest.CUDA("sm_90")},
	})
}

func nvshmem(version string) string {
	return elfOf(elftest.Library{Soname: "libnvshmem_host.so.3", Texts: []string{"NVSHMEM v" + version}, Exported: elftest.Named("nvshmem_init")})
}

func nvshmemHeader(version string) string {
	var text string
	for i, part := range strings.Split(version, ".") {
		text += fmt.Sprintf("#define NVSHMEM_VENDOR_%s_VERSION %s\n", []string{"MAJOR", "MINOR", "PATCH"}[i], part)
	}
	return text
}

// half returns the version constant of NVSHMEM's device library.
func half(major, minor, patch uint32) elftest.Symbol {
	var b []byte
	for _, n := range []uint32{major, minor, patch} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return elftest.Symbol{Name: deviceVersion, Code: b}
}

const (
	module  = "torch/_C.cpython-312-x86_64-linux-gnu.so"
	cuda    = "torch/lib/libtorch_cuda.so"
	cu13    = "$ORIGIN/../../nvidia/nccl/lib:$ORIGIN/../../nvidia/nvshmem/lib:$ORIGIN/../../nvidia/cu13/lib:$ORIGIN"
	ncclLib = "nvidia/nccl/lib/libnccl.so.2"
	hostLib = "nvidia/nvshmem/lib/libnvshmem_host.so.3"
)

func torchModule() string {
	return elfOf(elftest.Library{Needed: []string{"libtorch_cuda.so"}, Rpath: "$ORIGIN/lib"})
}

// torchCUDA returns the library of torch linked with NCCL.
func torchCUDA() elftest.Library {
	return elftest.Library{
		Soname: "libtorch_cuda.so", Needed: []string{"libnccl.so.2", "libcudart.so.13", "libnvshmem_host.so.3"}, Rpath: cu13,
		Undefined: slices.Concat(elftest.Named("ncclAllReduce", "ncclMemFree", "nvshmem_init"), elftest.From("libcudart.so.13", "libcudart.so.13", "cudaMalloc")),
		Exported:  []elftest.Symbol{half(3, 7, 2)},
		Texts:     []string{"libnvrtc.so.13", "libnvrtc.so.12", "libibverbs.so.1", "libcuda.so.1"},
	}
}

// torch13 returns torch for CUDA 13 in the layout of PyPI, taken from version 2.15.0 on
// 2026-11-23.
func torch13() *world {
	return &world{dists: []*installed{
		{"torch", "2.15.0", []string{"nvidia-nccl-cu13==2.30.7; platform_system == 'Linux'", "nvidia-nvshmem-cu13 ==3.7.2", "nvidia-cuda-nvrtc==13.2.86"},
			map[string]string{module: torchModule(), cuda: elfOf(torchCUDA())}},
		{"nvidia-nccl-cu13", "2.30.7", nil, map[string]string{ncclLib: nccl("2.30.7", "ncclMemFree")}},
		{"nvidia-nvshmem-cu13", "3.7.2", nil, map[string]string{hostLib: nvshmem("3.7.2"), "nvidia/nvshmem/include/non_abi/nvshmem_version.h": nvshmemHeader("3.7.2")}},
		{"nvidia-cuda-runtime", "13.2.86", nil, map[string]string{"nvidia/cu13/lib/libcudart.so.13": cudart("13")}},
		{"nvidia-cuda-nvrtc", "13.2.86", nil, map[string]string{"nvidia/cu13/lib/libnvrtc.so.13": elfOf(elftest.Library{Soname: "libnvrtc.so.13"})}},
	}}
}

func cudart(major string) string {
	soname := "libcudart.so." + major
	return elfOf(elftest.Library{Soname: soname, Exported: []elftest.Symbol{{Name: "cudaMalloc", Version: soname}}})
}

// torch12 returns torch for CUDA 12, with each library in its own folder.
func torch12() *world {
	l := elftest.Library{
		Soname: "libtorch_cuda.so", Needed: []string{"libnccl.so.2", "libcudart.so.12"}, Rpath: "$ORIGIN/../../nvidia/nccl/lib:$ORIGIN/../../nvidia/cuda_runtime/lib:$ORIGIN",
		Undefined: elftest.Named("ncclAllReduce"),
	}
	return &world{dists: []*installed{
		{"torch", "2.6.0", []string{"nvidia-nccl-cu12==2.21.5"}, map[string]string{module: torchModule(), cuda: elfOf(l)}},
		{"nvidia-nccl-cu12", "2.21.5", nil, map[string]string{ncclLib: nccl("2.21.5")}},
		{"nvidia-cuda-runtime-cu12", "12.4.127", nil, map[string]string{"nvidia/cuda_runtime/lib/libcudart.so.12": cudart("12")}},
	}}
}

func rccl(more elftest.Section, symbols ...string) string {
	return elfOf(elftest.Library{
		Soname: "librccl.so.1", Texts: []string{"RCCL version 2.27.7+hip7.0"}, Exported: elftest.Named(append([]string{"ncclAllReduce"}, symbols...)...),
		Sections: []elftest.Section{more},
	})
}

// torchROCm returns torch with RCCL and HIP inside its wheel.
func torchROCm() *world {
	l := elftest.Library{Soname: "libtorch_hip.so", Needed: []string{"librccl.so.1", "libamdhip64.so.7"}, Rpath: "$ORIGIN", Undefined: elftest.Named("ncclAllReduce", "ncclCommWindowRegister", "hipMalloc")}
	return &world{dists: []*installed{{"torch", "2.11.0+rocm7.0", nil, map[string]string{
		module:                       elfOf(elftest.Library{Needed: []string{"libtorch_hip.so"}, Rpath: "$ORIGIN/lib"}),
		"torch/lib/libtorch_hip.so":  elfOf(l),
		"torch/lib/librccl.so.1":     rccl(elftest.HIP("gfx942"), "ncclCommWindowRegister"),
		"torch/lib/libamdhip64.so.7": elfOf(elftest.Library{Soname: "libamdhip64.so.7", Exported: elftest.Named("hipMalloc")}),
	}}}}
}

// theRock returns torch with an RCCL that has its device code in separate files.
func theRock() *world {
	w := torchROCm()
	files := w.of("torch").files
	files["torch/lib/librccl.so.1"] = rccl(elftest.Section{Name: ".rocm_kpack_ref", Data: []byte("\x82\xaekernel_archives\x91\xd9$../.kpack/rccl_lib_@GFXARCH@.kpack")}, "ncclCommWindowRegister")
	files["torch/.kpack/rccl_lib_gfx942.kpack"] = "kernels"
	return w
}

func with(w *world, change func(*world)) *world {
	change(w)
	return w
}

func TestHealthy(t *testing.T) {
	for name, w := range map[string]*world{
		"torch for CUDA 13":          torch13(),
		"torch for CUDA 12":          torch12(),
		"torch for ROCm":             torchROCm(),
		"kernels beside the library": theRock(),
		"NVSHMEM alone": {dists: []*installed{{"nvidia-nvshmem-cu13", "3.7.2", nil, map[string]string{
			hostLib: elfOf(elftest.Library{Soname: "libnvshmem_host.so.3", Texts: []string{"NVSHMEM v3.7.2", "libnccl.so.2"}}),
		}}}},
		"NCCL alone": {dists: []*installed{torch13().of("nvidia-nccl-cu13")}},
		// torch's DT_RPATH takes precedence over both.
		"a host with its own NCCL": with(torch13(), func(w *world) {
			w.system = map[string]string{"libnccl.so.2": nccl("2.18.1"), "libibverbs.so.1": elfOf(elftest.Library{Soname: "libibverbs.so.1"})}
			w.ahead = map[string]string{"libnccl.so.2": nccl("2.19.3")}
		}),
		"a run time inside another wheel": with(torch13(), func(w *world) {
			w.dists = append(w.dists, &installed{"cupy", "14.0", nil, map[string]string{
				"cupy/core.cpython-312-x86_64-linux-gnu.so": elfOf(elftest.Library{Needed: []string{"libcudart-9e1ebc30.so.12"}, Rpath: "$ORIGIN/../cupy.libs"}),
				"cupy.libs/libcudart-9e1ebc30.so.12":        elfOf(elftest.Library{Soname: "libcudart-9e1ebc30.so.12"}),
			}})
		}),
		// torchaudio and torchvision have no path to torch's libraries, because their
		// import loads torch first. Seen with torch 2.11.0 and a CUDA of the host.
		"an extension of torch, and a run time of the host": with(torch13(), func(w *world) {
			w.system = map[string]string{"libcudart.so.13": cudart("13"), "libnccl.so.2": nccl("2.28.3")}
			w.dists = append(w.dists, &installed{"torchaudio", "2.11.0", nil, map[string]string{
				"torchaudio/lib/_torchaudio.abi3.so": elfOf(elftest.Library{Needed: []string{"libtorch_cuda.so", "libcudart.so.13", "libnccl.so.2"}}),
			}})
		}),
		"one file in two distributions": with(torch13(), func(w *world) {
			w.dists = append(w.dists, &installed{"nvidia-nccl-extra", "1.0", nil, map[string]string{ncclLib: nccl("2.30.7", "ncclMemFree")}})
		}),
	} {
		t.Run(name, func(t *testing.T) {
			verdicts := w.write(t).Judge(t.Context(), nil)
			if name == "one file in two distributions" { // only its version is not NCCL's
				verdicts = slices.DeleteFunc(verdicts, func(v verdict.Verdict) bool { return v.Gate == "env-version" })
			}
			if !verdict.AllPass(verdicts) {
				t.Errorf("%+v", verdicts)
			}
		})
	}
}

// broken is a reported broken environment, the gates that refuse it, and their remedy.
type broken struct {
	thread string
	world  *world
	gates  []string
	says   string
	remedy string
}

func brokenOnes() []broken {
	return []broken{
		{"pytorch/pytorch#186591", with(torch13(), func(w *world) {
			w.dists = append(w.dists, &installed{"nvidia-nccl-cu12", "2.26.2", nil, map[string]string{ncclLib: nccl("2.26.2", "ncclMemFree")}})
		}), []string{"env-owners", "env-version"}, "is listed by nvidia-nccl-cu12 2.26.2 and nvidia-nccl-cu13 2.30.7; the installed file is that of nvidia-nccl-cu12 2.26.2", "pip uninstall -y nvidia-nccl-cu12 nvidia-nccl-cu13 && pip install nvidia-nccl-cu13==2.30.7"},
		{"rwth-i6/returnn#1802", with(torch13(), func(w *world) {
			*w.of("nvidia-nccl-cu13") = installed{"nvidia-nccl-cu13", "2.18.1", nil, map[string]string{ncclLib: nccl("2.18.1")}}
		}), []string{"env-symbols"}, "ncclMemFree", "pip install --force-reinstall nvidia-nccl-cu13==2.30.7"},
		{"verl-project/verl#6621, metadata", with(torch13(), func(w *world) {
			w.of("nvidia-nccl-cu13").files[ncclLib] = nccl("2.28.9", "ncclMemFree")
		}), []string{"env-version"}, "reports 2.28.9, and its distribution is nvidia-nccl-cu13 2.30.7", "--force-reinstall --no-deps nvidia-nccl-cu13==2.30.7"},
		{"verl-project/verl#6621, a third file", with(torch13(), func(w *world) {
			w.dists = append(w.dists, &installed{"trainer", "1.0", nil, map[string]string{"trainer/lib/libnccl.so.2": nccl("2.27.3")}})
		}), []string{"env-library"}, "2 releases of NCCL", "keep one NCCL: that of nvidia-nccl-cu13==2.30.7"},
		{"pegainfer-project/pegainfer#810", with(torch13(), func(w *world) {
			w.dists = append(w.dists, &installed{"pegainfer", "1.0", nil, map[string]string{
				"pegainfer/core.abi3.so": elfOf(elftest.Library{Needed: []string{"libnccl.so.2"}, Undefined: elftest.Named("ncclAllReduce")}),
			}})
			w.system = map[string]string{"libnccl.so.2": nccl("2.30.7", "ncclMemFree")}
		}), []string{"env-library"}, "imports load 2 files of NCCL", "keep one NCCL"},
		{"a module of the site sets LD_LIBRARY_PATH", with(torch13(), func(w *world) {
			l := torchCUDA()
			l.Rpath, l.Runpath = "", l.Rpath
			w.of("torch").files[cuda] = elfOf(l)
			w.ahead = map[string]string{"libnccl.so.2": nccl("2.30.7", "ncclMemFree")}
		}), []string{"env-library"}, "from LD_LIBRARY_PATH, before nvidia/nccl/lib/libnccl.so.2", "/ahead out of LD_LIBRARY_PATH"},
		{"torch built for the system's NCCL", with(torch13(), func(w *world) {
			l := torchCUDA()
			l.Rpath = "$ORIGIN/../../nvidia/nvshmem/lib:$ORIGIN/../../nvidia/cu13/lib"
			w.of("torch").files[cuda] = elfOf(l)
			w.system = map[string]string{"libnccl.so.2": nccl("2.30.7", "ncclMemFree")}
		}), []string{"env-library"}, "from the system's libraries", "install torch/_C.cpython-312-x86_64-linux-gnu.so from a wheel with a search path to nvidia/nccl/lib"},
		{"NVIDIA-NeMo/Automodel#2614", with(torch13(), func(w *world) {
			w.dists = append(w.dists, &installed{"deep-ep", "1.2.1", nil, map[string]string{
				"deep_ep_cpp.cpython-312-x86_64-linux-gnu.so": elfOf(elftest.Library{
					Needed: []string{"libnvshmem_host.so.3"}, Rpath: "$ORIGIN/nvidia/nvshmem/lib", Exported: []elftest.Symbol{half(3, 4, 5)},
				}),
			}})
		}), []string{"env-nvshmem"}, "has the device half of NVSHMEM 3.4.5", "nvidia-nvshmem-cu13==3.4.5"},
		{"sgl-project/sglang#12949", with(torch13(), func(w *world) {
			w.of("nvidia-nvshmem-cu13").files["nvidia/nvshmem/include/non_abi/nvshmem_version.h"] = nvshmemHeader("3.3.9")
		}), []string{"env-nvshmem"}, "have release 3.3.9", "--force-reinstall --no-deps nvidia-nvshmem-cu13==3.7.2"},
		{"ROCm/TheRock#5446", with(theRock(), func(w *world) { delete(w.of("torch").files, "torch/.kpack/rccl_lib_gfx942.kpack") }),
			[]string{"env-device-code"}, "../.kpack/rccl_lib_@GFXARCH@.kpack, and this file is missing", "rocm[device-all]"},
		{"kyuz0/amd-strix-halo-vllm-toolboxes#60", with(torchROCm(), func(w *world) {
			w.of("torch").files["torch/lib/librccl.so.1"] = rccl(elftest.HIP("gfx1151"))
		}), []string{"env-symbols"}, "ncclCommWindowRegister", "by the RCCL release used to build torch"},
		{"pytorch/test-infra#8706", with(torch13(), func(w *world) {
			w.dists = slices.DeleteFunc(w.dists, func(d *installed) bool { return d.name == "nvidia-cuda-nvrtc" })
		}), []string{"env-dlopen"}, "opens libnvrtc.so.12 or libnvrtc.so.13 at run time", "pip install nvidia-cuda-nvrtc==13.2.86"},
		{"a wheel with libibverbs from auditwheel", with(torch13(), func(w *world) {
			w.dists = append(w.dists, &installed{"transfer", "0.3", nil, map[string]string{
				"transfer/core.cpython-312-x86_64-linux-gnu.so": elfOf(elftest.Library{Needed: []string{"libibverbs-6a7f8bc0.so.1"}, Rpath: "$ORIGIN/../transfer.libs"}),
				"transfer.libs/libibverbs-6a7f8bc0.so.1":        elfOf(elftest.Library{Soname: "libibverbs-6a7f8bc0.so.1"}),
			}})
		}), []string{"env-ibverbs"}, "comes from transfer 0.3", "--exclude libibverbs.so.1"},
		{"pip install --no-deps torch", with(torch13(), func(w *world) {
			w.dists = slices.DeleteFunc(w.dists, func(d *installed) bool { return d.name == "nvidia-nccl-cu13" })
		}), []string{"env-needed"}, "needs libnccl.so.2, which was not found", "pip install nvidia-nccl-cu13==2.30.7"},
		{"NCCL copied over the vendor's", with(torch13(), func(w *world) {
			w.after = map[string]string{ncclLib: nccl("2.30.7", "ncclMemFree", "ncclOurs")}
		}), []string{"env-owners"}, "was replaced after its installation", "--force-reinstall --no-deps nvidia-nccl-cu13==2.30.7"},
		{"NCCL copied over that of two wheels with the same bytes", with(torch13(), func(w *world) {
			first := w.of("nvidia-nccl-cu13")
			w.dists = append(w.dists, &installed{"nvidia-nccl-cu12", first.version, nil, first.files})
			w.after = map[string]string{ncclLib: nccl("2.30.7", "ncclMemFree", "ncclOurs")}
		}), []string{"env-owners"}, "was replaced after its installation", "--force-reinstall --no-deps nvidia-nccl-cu1"},
		// A version with a local part, as a build of one's own has, is on no index. The
		// remedy keeps it and does not bring the vendor's release back.
		{"one's own wheel beside the vendor's for CUDA 12", with(torch13(), func(w *world) {
			w.of("nvidia-nccl-cu13").version = "2.30.7+cuda13.0.verbs"
			w.dists = append(w.dists, &installed{"nvidia-nccl-cu12", "2.26.2", nil, map[string]string{ncclLib: nccl("2.26.2", "ncclMemFree")}})
		}), []string{"env-owners", "env-version"}, "is listed by nvidia-nccl-cu12 2.26.2 and nvidia-nccl-cu13 2.30.7+cuda13.0.verbs", "pip uninstall -y nvidia-nccl-cu12 nvidia-nccl-cu13 && pip install --force-reinstall --no-deps FILE, where FILE is the wheel of nvidia-nccl-cu13 2.30.7+cuda13.0.verbs\npip install --force-reinstall --no-deps FILE, where"},
		{"two wheels of NCCL without torch", &world{dists: []*installed{
			{"nvidia-nccl-cu13", "2.30.7", nil, map[string]string{ncclLib: nccl("2.30.7")}},
			{"nvidia-nccl-cu12", "2.26.2", nil, map[string]string{ncclLib: nccl("2.26.2")}},
		}}, []string{"env-owners", "env-version"}, "is listed by", "`pip uninstall -y nvidia-nccl-cu12 nvidia-nccl-cu13`, then either `pip install nvidia-nccl-cu12==2.26.2` or `pip install nvidia-nccl-cu13==2.30.7`\n"},
		{"pip uninstall of one of two", with(torch13(), func(w *world) { w.after = map[string]string{ncclLib: ""} }),
			[]string{"env-owners", "env-needed"}, "lists nvidia/nccl/lib/libnccl.so.2, and the file is missing", "--force-reinstall --no-deps nvidia-nccl-cu13==2.30.7"},
	}
}

func TestBroken(t *testing.T) {
	asked := map[string]bool{}
	for _, b := range brokenOnes() {
		t.Run(b.thread, func(t *testing.T) {
			start := time.Now()
			verdicts := b.world.write(t).Judge(t.Context(), nil)
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("it took %v", took)
			}
			var refused []string
			var evidence, remedies string
			for _, v := range verdicts {
				if v.Refuses() {
					refused, asked[v.Gate] = append(refused, v.Gate), true
					evidence, remedies = evidence+v.Evidence+"\n", remedies+v.Remedy+"\n"
				}
			}
			if !slices.Equal(refused, b.gates) {
				t.Errorf("refused by %v, want %v: %+v", refused, b.gates, verdicts)
			}
			if !strings.Contains(evidence, b.says) || !strings.Contains(remedies, b.remedy) {
				t.Errorf("%q and %q are wanted of\n%s%s", b.says, b.remedy, evidence, remedies)
			}
		})
	}
	for _, name := range Names() {
		if !asked[name] && name != "env-process" {
			t.Errorf("no broken environment is refused by %s", name)
		}
	}
}

// Libraries of the host do not fail the gate, because NCCL works without RDMA and a login
// node has no GPU. The evidence says which of them this host has.
func TestOpenedFromTheHost(t *testing.T) {
	library := func(texts ...string) *world {
		return &world{dists: []*installed{{"nvidia-nccl-cu13", "2.30.7", nil, map[string]string{
			ncclLib: elfOf(elftest.Library{Soname: "libnccl.so.2", Texts: append([]string{"NCCL version 2.30.7+cuda13.0"}, texts...)}),
		}}}}
	}
	opens := library("libibverbs.so", "libibverbs.so.1", "libnvidia-ml.so.1", "libcuda.so.1")
	opens.system = map[string]string{"libibverbs.so.1": elfOf(elftest.Library{Soname: "libibverbs.so.1"})}
	shmem := &world{dists: []*installed{{"nvidia-nvshmem-cu13", "3.7.2", nil, map[string]string{
		hostLib: elfOf(elftest.Library{Soname: "libnvshmem_host.so.3", Texts: []string{"libnccl.so.2"}}),
	}}}}
	for _, c := range []struct {
		world *world
		want  string
	}{
		{opens, "libnccl.so.2 opens by name, from the host: libcuda.so.1 not found here, libibverbs.so.1 found SYSTEM/libibverbs.so.1, libnvidia-ml.so.1 not found here"},
		{shmem, "libnvshmem_host.so.3 opens libnccl.so.2 if it is there: not found"},
		{library("libibverbs.so"), "no numbered name of a library for GPUs or RDMA among the texts of 1 libraries"},
	} {
		e := c.world.write(t)
		want := strings.ReplaceAll(c.want, "SYSTEM", e.loader.host.Directories[0])
		if v := e.Judge(t.Context(), []string{"env-dlopen"})[0]; v.Status != verdict.Pass || v.Evidence != want {
			t.Errorf("%+v, want %s", v, want)
		}
	}
}

// The answer of a process is compared with the files.
func TestProcess(t *testing.T) {
	for name, c := range map[string]struct{ line, want string }{
		"agrees":       {`{"imported":"torch","says":"2.30.7","files":{"SITE/` + ncclLib + `":"2.30.7"}}`, "imported torch"},
		"another file": {`{"imported":"torch","files":{"/opt/libnccl.so.2":"2.30.7"}}`, "and the files predict"},
		"two files":    {`{"imported":"torch","files":{"SITE/` + ncclLib + `":"2.30.7","/opt/libnccl.so.2":""}}`, "2 files of NCCL"},
		"built with":   {`{"imported":"torch","says":"2.21.5","files":{"SITE/` + ncclLib + `":"2.30.7"}}`, "torch was built with NCCL 2.21.5"},
		"no import":    {`{"imported":"torch","fault":"ImportError: undefined symbol: ncclMemFree"}`, "undefined symbol: ncclMemFree"},
		"no framework": {`{"imported":""}`, "no framework is installed"},
		"no answer":    {"Segmentation fault", "printed no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			e := torch13().write(t)
			site, err := filepath.EvalSymlinks(e.Site[0])
			if err != nil {
				t.Fatal(err)
			}
			script := "#!/bin/sh\ncat <<'END'\nwarning\n" + strings.ReplaceAll(c.line, "SITE", site) + "\nEND\n"
			if err := os.WriteFile(e.Python, []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(e.Python, 0o755); err != nil {
				t.Fatal(err)
			}
			e.Run = true
			v := e.Judge(t.Context(), []string{"env-process"})[0]
			if !strings.Contains(v.Evidence, c.want) || v.Refuses() == (name == "agrees" || name == "built with") || v.Refuses() && v.Remedy == "" {
				t.Errorf("%+v", v)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	e := torch13().write(t)
	for _, path := range []string{e.Python, e.Site[0], filepath.Dir(filepath.Dir(filepath.Dir(e.Site[0])))} {
		again, err := Open(t.Context(), path, Host{})
		if err != nil || len(again.Site) != 1 || again.Site[0] != e.Site[0] || len(again.processes) == 0 {
			t.Errorf("%s: %+v, %v", path, again, err)
		}
	}
	empty := t.TempDir()
	put(t, empty, map[string]string{"python": "#!/bin/sh\n"})
	for path, want := range map[string]string{empty: "no packages found", filepath.Join(empty, "no"): "no such file", filepath.Join(empty, "python"): "a script"} {
		if _, err := Open(t.Context(), path, Host{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	nothing := (&world{dists: []*installed{{"jinja2", "3.1", nil, map[string]string{"jinja2/a.py": "pass"}}}}).write(t)
	if v := nothing.Judge(t.Context(), nil); len(v) != 0 {
		t.Errorf("%+v", v)
	}
	alone := &world{dists: []*installed{torch13().of("nvidia-nccl-cu13"), {"trainer", "1", nil, map[string]string{"trainer/a.abi3.so": elfOf(elftest.Library{})}}}}
	if v := alone.write(t).Judge(t.Context(), nil); slices.ContainsFunc(v, func(v verdict.Verdict) bool { return v.Gate == "env-symbols" }) || !verdict.AllPass(v) {
		t.Errorf("nothing is linked with NCCL: %+v", v)
	}
	if v := nothing.Judge(t.Context(), []string{"env-version"}); len(v) != 1 || v[0].Status != verdict.NotMeasured || v[0].Remedy == "" {
		t.Errorf("%+v", v)
	}
}

// A remedy's command holds text from files. Quoting keeps each text one word.
func TestRemediesAreQuoted(t *testing.T) {
	w := torch13()
	w.of("torch").requires = []string{"nvidia-nccl-cu13==1; rm -rf ~", "nvidia-nccl-cu13==$(id)"}
	w.dists = slices.DeleteFunc(w.dists, func(d *installed) bool { return d.name == "nvidia-nccl-cu13" })
	for _, v := range w.write(t).Judge(t.Context(), []string{"env-needed"}) {
		if v.Remedy != "pip install nvidia-nccl-cu13==1" {
			t.Errorf("%+v", v)
		}
	}
	w.of("torch").requires = w.of("torch").requires[1:]
	for _, v := range w.write(t).Judge(t.Context(), []string{"env-needed"}) {
		if v.Remedy != "pip install 'nvidia-nccl-cu13==$(id)'" {
			t.Errorf("%+v", v)
		}
	}
}

// An unreadable file is not a pass: neither a truncated library nor an invalid RECORD.
func TestUnreadable(t *testing.T) {
	half := nccl("2.30.7", "ncclMemFree")
	for name, w := range map[string]*world{
		"library": with(torch13(), func(w *world) { w.of("nvidia-nccl-cu13").files[ncclLib] = half[:len(half)/2] }),
		"record": with(torch13(), func(w *world) {
			w.after = map[string]string{"torch-2.15.0.dist-info/RECORD": "one,two\n"}
		}),
	} {
		verdicts := w.write(t).Judge(t.Context(), nil)
		i := slices.IndexFunc(verdicts, func(v verdict.Verdict) bool { return v.Gate == "env-needed" })
		if verdict.AllPass(verdicts) || i < 0 || !verdicts[i].Refuses() {
			t.Errorf("%s: %+v", name, verdicts)
		}
	}
}

// TestROCm: the copy of RCCL among TensorFlow's headers is no library of a process. A
// missing library of ROCm is not on a package index. No package has a library whose owner
// could be asked, so that gate is left out.
func TestROCm(t *testing.T) {
	w := &world{
		dists: []*installed{
			{"tensorflow-rocm", "2.13.0.570", nil, map[string]string{
				"tensorflow/include/external/local_config_rocm/rocm/rocm/lib/librccl.so": elfOf(elftest.Library{Soname: "librccl.so.1", Needed: []string{"librocm_smi64.so.5"}, Texts: []string{"RCCL version 2.17.1"}}),
			}},
			{"horovod", "0.28.1", nil, map[string]string{
				"horovod/tensorflow/mpi_lib.cpython-312-x86_64-linux-gnu.so": elfOf(elftest.Library{Needed: []string{"librccl.so.1"}, Undefined: elftest.Named("ncclAllReduce")}),
			}},
		},
		system: map[string]string{"librccl.so.1": elfOf(elftest.Library{Soname: "librccl.so.1", Texts: []string{"RCCL version 2.13.4"}, Exported: elftest.Named("ncclAllReduce")})},
	}
	all := w.write(t).Judge(t.Context(), nil)
	for _, v := range all {
		if v.Status != verdict.Pass {
			t.Errorf("%+v", v)
		}
	}
	if len(all) < 4 || slices.ContainsFunc(all, func(v verdict.Verdict) bool { return v.Gate == "env-owners" }) {
		t.Errorf("%+v", all)
	}
	w.system = nil
	v := w.write(t).Judge(t.Context(), []string{"env-needed"})[0]
	if v.Status != verdict.Fail || !strings.Contains(v.Remedy, "install the ROCm of the package") {
		t.Errorf("%+v", v)
	}
}

// TestRCCLOfBuilder: the number of this wheel is that of ROCm's RCCL, and its library
// reports the NCCL in it.
func TestRCCLOfBuilder(t *testing.T) {
	w := &world{dists: []*installed{
		{"rccl", "6.2.0+rocm6.4.gfx942", nil, map[string]string{
			"rccl/lib/librccl.so.1": elfOf(elftest.Library{Soname: "librccl.so.1", Texts: []string{"RCCL version 2.20.5"}, Exported: elftest.Named("ncclAllReduce")}),
		}},
		{"horovod", "0.28.1", nil, map[string]string{
			"horovod/tensorflow/mpi_lib.cpython-312-x86_64-linux-gnu.so": elfOf(elftest.Library{Needed: []string{"librccl.so.1"}, Rpath: "$ORIGIN/../../rccl/lib", Undefined: elftest.Named("ncclAllReduce")}),
		}},
	}}
	v := w.write(t).Judge(t.Context(), []string{"env-version"})[0]
	if v.Status != verdict.Pass || !strings.Contains(v.Evidence, "2.20.5") {
		t.Errorf("%+v", v)
	}
}

// TestAsking: the process imports the extensions of Horovod that are there, and not only
// its package.
func TestAsking(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{
		"horovod/__init__.py": "#", "horovod/tensorflow/__init__.py": "#", "horovod/torch/__init__.py": "raise ImportError('not built')",
		"horovod/tensorflow/mpi_ops.py": "#", "horovod/tensorflow/mpi_lib.cpython-312-x86_64-linux-gnu.so": "x",
		"tensorflow/__init__.py": "#",
	})
	ask := func() (said answer) {
		t.Helper()
		cmd := exec.Command("python3", "-S", "-c", asking)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+dir)
		out, err := cmd.Output()
		if err == nil {
			err = json.Unmarshal(lastLine(out), &said)
		}
		if err != nil {
			t.Fatal(err)
		}
		return said
	}
	if said := ask(); said.Imported != "horovod.tensorflow.mpi_ops" || said.Fault != "" {
		t.Errorf("%+v", said)
	}
	put(t, dir, map[string]string{"horovod/tensorflow/mpi_ops.py": "raise ImportError('libhsa-runtime64.so.1')"})
	if said := ask(); said.Imported != "horovod.tensorflow.mpi_ops" || said.Fault != "ImportError: libhsa-runtime64.so.1" {
		t.Errorf("%+v", said)
	}
	put(t, dir, map[string]string{"horovod/tensorflow/mpi_lib.cpython-312-x86_64-linux-gnu.so": ""})
	if said := ask(); said.Imported != "tensorflow" {
		t.Errorf("%+v", said)
	}
}
