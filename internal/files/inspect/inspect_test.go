package inspect

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/elftest"
	"builder/test/kit/must"
	"builder/test/kit/wheeltest"
)

const extension = "horovod/tensorflow/mpi_lib.cpython-311-x86_64-linux-gnu.so"

func inspectLibrary(t *testing.T, l elftest.Library) Report {
	t.Helper()
	path := must.File(t, "lib.so", l.Bytes())
	return must.Get(File(t.Context(), path))(t)
}

func TestFeatures(t *testing.T) {
	for _, c := range []struct {
		fact, want string
		of         elftest.Library
	}{
		{"framework", "tensorflow", elftest.Library{Needed: []string{"libtensorflow_framework.so.2"}}},
		{"framework", "tensorflow", elftest.Library{Undefined: elftest.Named("_ZN10tensorflow7functor11DenseUpdateIN5Eigen9GpuDevice")}},
		{"framework", "torch", elftest.Library{Needed: []string{"libc10.so"}}},
		{"framework", "torch", elftest.Library{Undefined: elftest.Named("_ZN2at6Tensor5cloneEv")}},
		{"framework", "mxnet", elftest.Library{Undefined: elftest.Named("MXGetLastError")}},
		{"framework", "tensorflow torch", elftest.Library{Needed: []string{"libtorch_cpu.so", "libtensorflow_framework.so.2"}}},
		{"framework", "none", elftest.Library{Needed: []string{"libtorchlight.so.1"}}},
		{"rocm", "5", elftest.Library{Needed: []string{"libamdhip64.so.5"}}},
		{"rocm", "unknown", elftest.Library{Undefined: elftest.Named("hipMalloc")}},
		{"rocm", "unknown", elftest.Library{Sections: []elftest.Section{elftest.HIP("gfx90a")}}},
		{"rocm", "none", elftest.Library{Sections: []elftest.Section{elftest.CUDA("sm_90")}}},
		{"cuda", "11", elftest.Library{Needed: []string{"libcudart.so.11.0"}}},
		{"cuda", "10.2", elftest.Library{Needed: []string{"libcudart.so.10.2"}}},
		{"cuda", "13", elftest.Library{Needed: []string{"libcudart.so.13"}}},
		{"cuda", "unknown", elftest.Library{Sections: []elftest.Section{elftest.CUDA("sm_90")}}},
		{"sycl", "7", elftest.Library{Needed: []string{"libsycl.so.7"}}},
		{"arch", "gfx90a gfx942", elftest.Library{Sections: []elftest.Section{elftest.HIP("gfx942", "gfx90a")}}},
		{"nccl", "nccl", elftest.Library{Needed: []string{"libnccl.so.2"}}},
		{"nccl", "rccl", elftest.Library{Needed: []string{"librccl.so.1"}}},
		{"nccl", "oneccl", elftest.Library{Needed: []string{"libccl.so.1"}}},
		{"nccl", "nccl", elftest.Library{Soname: "libnccl.so.2", Exported: elftest.Named("ncclAllReduce")}},
		{"nccl", "rccl", elftest.Library{Soname: "librccl.so.1", Exported: elftest.Named("ncclAllReduce")}},
		{"nccl", "rccl", elftest.Library{Soname: "libours.so", Exported: elftest.Named("ncclAllReduce"), Texts: []string{"RCCL version 2.20.5+hip6.1"}}},
		{"nccl", "unknown", elftest.Library{Undefined: elftest.Named("ncclAllReduce")}},
		{"mpi", "openmpi", elftest.Library{Needed: []string{"libmpi.so.40"}}},
		{"mpi", "mpich", elftest.Library{Needed: []string{"libmpicxx.so.12", "libmpi.so.12"}}},
		{"mpi", "unknown", elftest.Library{Needed: []string{"libmpi.so.99"}}},
		{"mpi", "unknown", elftest.Library{Undefined: elftest.Named("MPI_Init_thread")}},
		{"cxxabi", "old", elftest.Library{Undefined: elftest.Named("_ZN3c106detail14torchCheckFailEPKcS2_jRKSs")}},
		{"cxxabi", "cxx11", elftest.Library{Undefined: elftest.Named("_ZN10tensorflow6Status3SetERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE")}},
		{"cxxabi", "none", elftest.Library{Undefined: elftest.Named("_ZNSs4_Rep20_S_empty_rep_storageE", "_ZNSt13runtime_errorC1ERKSs", "_ZN3c104cuda14current_deviceEv")}},
		{"gloo", "built-in", elftest.Library{Exported: elftest.Named("_ZN4gloo9allreduceERKNS_16AllreduceOptionsE")}},
		{"gloo", "built-in", elftest.Library{Texts: []string{"N4gloo9transport3tcp6DeviceE"}}},
		{"gloo", "none", elftest.Library{Exported: elftest.Named("horovod_gloo_built")}},
		{"rdma", "linked", elftest.Library{Needed: []string{"libibverbs.so.1"}, Undefined: elftest.Named("ibv_reg_mr")}},
		{"rdma", "unknown", elftest.Library{Undefined: elftest.Named("ibv_reg_mr")}},
		{"rdma", "dlopened", elftest.Library{Texts: []string{"libibverbs.so.1"}}},
		{"rdma", "none", elftest.Library{Needed: []string{"libibverbs.so.1"}}},
		{"glibc", "2.38", elftest.Library{Needed: []string{"libc.so.6"}, Undefined: slices.Concat(elftest.From("libc.so.6", "GLIBC_2.9", "a"), elftest.From("libc.so.6", "GLIBC_2.38", "b"))}},
		{"version", "2.29.7+cuda13.0", elftest.Library{Soname: "libnccl.so.2", Texts: []string{"NCCL version 2.29.7+cuda13.0"}}},
		{"name", "unknown", elftest.Library{}},
	} {
		f, _ := inspectLibrary(t, c.of).Fact(c.fact)
		check.Same(t, fmt.Sprint(c.fact, c.of), c.want, strings.Join(f.Values, " "))
		check.That(t, len(f.Because) != 0, "%s: %s for no reason", c.fact, c.want)
	}
}

func wheelReport(t *testing.T, version string, libraries map[string]elftest.Library) Report {
	t.Helper()
	w := wheeltest.Wheel{Name: "horovod-" + version + "-cp311-cp311-linux_x86_64.whl"}
	for name, l := range libraries {
		w.Files = append(w.Files, wheeltest.File{Name: name, Text: string(l.Bytes())})
	}
	w.Files = append(w.Files, wheeltest.File{Name: "horovod/libscript.so", Text: "INPUT(libmpi.so.12)"}, wheeltest.File{Name: "horovod/__init__.py"})
	return must.Get(File(t.Context(), w.Write(t)))(t)
}

// The facts of a wheel combine those of its libraries.
func TestWheel(t *testing.T) {
	r := wheelReport(t, "0.28.1+rocm5.7.tf2.13.0", map[string]elftest.Library{
		extension: {
			Needed:    []string{"libtensorflow_framework.so.2", "librccl.so.1", "libamdhip64.so.5", "libc.so.6"},
			Undefined: elftest.From("libc.so.6", "GLIBC_2.9", "a"), Sections: []elftest.Section{elftest.HIP("gfx90a")},
		},
		"horovod/lib/libhelper.so.1": {Needed: []string{"libmpi.so.40", "libc.so.6"}, Undefined: elftest.From("libc.so.6", "GLIBC_2.34", "b")},
	})
	var got []string
	for _, f := range r.Facts {
		got = append(got, f.Name+"="+strings.Join(f.Values, ","))
	}
	want := "name=horovod version=0.28.1+rocm5.7.tf2.13.0 python=cp311 platform=linux_x86_64 packages=horovod programs=none data=none framework=tensorflow cxxabi=none " +
		"rocm=5 cuda=none sycl=none arch=gfx90a nccl=rccl mpi=openmpi gloo=none rdma=none glibc=2.34"
	check.That(t, strings.Join(got, " ") == want, "got  %s\nwant %s", strings.Join(got, " "), want)
	f, _ := r.Fact("mpi")
	check.That(t, f.Because[0] == "horovod/lib/libhelper.so.1 needs libmpi.so.40", "%+v", f)
	f, _ = wheelReport(t, "1", nil).Fact("nccl")
	check.That(t, f.Because[0] == "no library", "%+v", f)
}

// The node's libibverbs must be as new as the functions that a library links.
func TestVersionOfVerbs(t *testing.T) {
	r := inspectLibrary(t, elftest.Library{Needed: []string{"libibverbs.so.1"}, Undefined: elftest.From("libibverbs.so.1", "IBVERBS_1.12", "ibv_reg_dmabuf_mr")})
	f, _ := r.Fact("rdma")
	check.That(t, strings.HasSuffix(f.Because[0], "the node's libibverbs must have IBVERBS_1.12"), "%+v", f)
}

func TestClaim(t *testing.T) {
	for _, c := range []struct{ local, name, want string }{
		{"rocm5.7.tf2.13.0", "rocm", "5.7"},
		{"tf2.13.rocm6.1.3", "rocm", "6.1.3"},
		{"cuda13.0.verbs.sm90", "cuda", "13.0"},
		{"rocm", "rocm", ""},
		{"", "rocm", ""},
		{"5.7", "rocm", ""},
		{"rocm5.7", "cuda", ""},
	} {
		check.Same(t, fmt.Sprint(c.local, c.name), c.want, claim(c.local, c.name))
	}
}

func TestExpectations(t *testing.T) {
	rocm := map[string]elftest.Library{extension: {
		Needed: []string{"libtensorflow_framework.so.2", "librccl.so.1", "libamdhip64.so.5", "libc.so.6"}, Undefined: elftest.From("libc.so.6", "GLIBC_2.34", "a"),
		Sections: []elftest.Section{elftest.HIP("gfx90a", "gfx942")},
	}}
	claims, silent := wheelReport(t, "0.28.1+rocm5.7.tf2.13.0", rocm), wheelReport(t, "0.28.1", rocm)
	named := claims
	named.Facts = append([]Fact{{Name: "name", Values: []string{"nvidia_nccl_cu13"}}}, slices.DeleteFunc(slices.Clone(claims.Facts), func(f Fact) bool { return f.Name == "name" })...)
	lost := wheelReport(t, "0.28.1", map[string]elftest.Library{extension: {Undefined: elftest.Named("ncclAllReduce")}})
	for _, c := range []struct {
		of   Report
		word string
		want Answer
	}{
		{claims, "framework=tensorflow", Yes},
		{claims, "framework=tensorflow", Yes},
		{claims, "framework=torch", No},
		{claims, "framework=tensorflow,torch", No},
		{claims, "rocm=5", Yes},
		{claims, "rocm=5.7", Yes},
		{claims, "rocm=5.7.1", No},
		{claims, "rocm=5.6", No},
		{claims, "rocm=6.1", No},
		{claims, "rocm=none", No},
		{claims, "cuda=none", Yes},
		{claims, "cuda=12", No},
		{silent, "rocm=5", Yes},
		{silent, "rocm=5.7", Unsaid},
		{silent, "rocm=57", No},
		{claims, "arch=gfx942,gfx90a", Yes},
		{claims, "arch=gfx90a", No},
		{claims, "arch=mi300x,mi250", Yes},
		{claims, "arch=h100", No},
		{claims, "nccl=rccl", Yes},
		{claims, "nccl=nccl", No},
		{lost, "nccl=nccl", Unsaid},
		{lost, "nccl=none", Unsaid},
		{claims, "rdma=none", Yes},
		{claims, "rdma=linked", No},
		{claims, "glibc=2.34", Yes},
		{claims, "glibc=2.100", Yes},
		{claims, "glibc=2.31", No},
		{lost, "glibc=2.31", Unsaid},
		{claims, "python=3.11", Yes},
		{claims, "python=3.12", No},
		{claims, "platform=linux_x86_64", Yes},
		{claims, "version=0.28.1", Yes},
		{claims, "version=0.28.1+rocm5.7.tf2.13.0", Yes},
		{claims, "version=0.28", No},
		{claims, "name=horovod", Yes},
		{claims, "name=Horovod", Yes},
		{claims, "name=horovod_cpu", No},
		{named, "name=nvidia-nccl-cu13", Yes},
		{named, "name=NVIDIA.nccl_cu13", Yes},
		{named, "name=nvidia-nccl-cu12", No},
		{inspectLibrary(t, elftest.Library{}), "python=3.11", Unsaid},
	} {
		all, err := ParseExpectations(strings.Split(c.word, ","))
		must.Hold(t, err == nil && len(all) == 1, "%s: %v, %v", c.word, all, err)
		got, evidence := all[0].Judge(c.of)
		check.That(t, got == c.want && evidence != "", "%s: got %v, want %v: %s", c.word, got, c.want, evidence)
	}
}

func TestBadExpectations(t *testing.T) {
	_, err := ParseExpectations([]string{"gfx90a", "archs=gfx90a", "rocm=five", "arch=", "nccl=rccl", "nccl=nccl"})
	for _, want := range []string{`"gfx90a" is not an expectation`, `unknown fact "archs"`, `"five" is not a version`, `"arch=" is not an expectation`, "nccl is expected twice"} {
		check.Fails(t, err, want)
	}
}

func TestOtherFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"text": "no wheel", "empty": "", "cut.so": "\x7fELF", "cut-1-py3-none-any.whl": "PK\x03\x04"} {
		path := filepath.Join(dir, name)
		must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
		r, err := File(t.Context(), path)
		check.That(t, err != nil, "%s is said to be %+v", name, r)
	}
	_, err := File(t.Context(), filepath.Join(dir, "none"))
	check.That(t, os.IsNotExist(err), "%v", err)
	broken := wheeltest.Wheel{Name: "x-1-py3-none-any.whl", Files: []wheeltest.File{{Name: "x/x.so", Text: "\x7fELF and no more"}}}
	r, err := File(t.Context(), broken.Write(t))
	check.That(t, err != nil && strings.Contains(err.Error(), "x/x.so"), "%+v, %v", r, err)
}

func TestVersions(t *testing.T) {
	for want, texts := range map[string][]string{
		"2.29.7+cuda13.0":           {"NCCL version 2.29.7+cuda13.0", "NCCL version %d.%d.%d"},
		"2.22.3+hip6.4 HEAD:abcdef": {"RCCL version 2.22.3+hip6.4 HEAD:abcdef"},
		"":                          {"no version at all"},
	} {
		l := elftest.Library{Soname: "lib.so", Texts: texts}
		got, err := Versions(bytes.NewReader(l.Bytes()))
		check.That(t, strings.Join(got, " ") == want && err == nil, "%q, %v; want %q", got, err, want)
	}
	_, err := Versions(strings.NewReader("\x7fELF and no more"))
	check.That(t, err != nil, "half a library has no version, and no fault")
}
