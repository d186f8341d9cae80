package diagnose_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"builder/internal/base/diag"
	"builder/internal/plan/diagnose"
	"builder/test/kit/check"
	"builder/test/kit/must"
	"builder/test/kit/wheeltest"
)

// compile builds a library with gcc. The flag -libverbs links a stub of libibverbs.
func compile(t *testing.T, source string, flags ...string) []byte {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("needs gcc")
	}
	dir := t.TempDir()
	run := func(args ...string) {
		cmd := exec.Command(gcc, args...)
		cmd.Dir = dir
		if log, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("compiling: %v\n%s", err, log)
		}
	}
	for name, text := range map[string]string{"a.c": source, "stub.c": "int ibv_reg_mr(void) { return 0; }"} {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	if slices.Contains(flags, "-libverbs") {
		run("-shared", "-fPIC", "-o", "libibverbs.so", "-Wl,-soname,libibverbs.so.1", "stub.c")
	}
	run(append([]string{"-shared", "-fPIC", "-O1", "-o", "a.so", "a.c", "-L."}, flags...)...)
	data, err := os.ReadFile(filepath.Join(dir, "a.so"))
	must.Succeed(t, err)
	return data
}

// nccl is a miniature NCCL: it calls libibverbs and registers the named kernels. fatbin
// is one empty cubin for sm_90 in the format of fatbinary.
const nccl = `
extern int ibv_reg_mr(void);
extern int perhaps(void) __attribute__((weak));
int ncclGetVersion(void) { if (perhaps) perhaps(); return ibv_reg_mr(); }
const char banner[] = "NCCL version 2.29.7+cuda12.4";
const char generic[] = "_Z21ncclDevKernel_GenericP11ncclDevCommmP8ncclWork";
`

const (
	kernels = `const char sum[] = "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LLP11ncclDevCommmP8ncclWork";`
	fatbin  = `__attribute__((section(".nv_fatbin"))) const unsigned char fatbin[] = {
		0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 72, 0, 0, 0, 0, 0, 0, 0,
		2, 0, 1, 1, 64, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 90, 0, 0, 0,
		[88 - 1] = 0};`
	soname = "-Wl,-soname,libnccl.so.2"
)

func TestFacts(t *testing.T) {
	library := compile(t, nccl+kernels+fatbin, soname, "-Wl,-rpath,/tmp/build/lib", "-Wl,--no-as-needed", "-libverbs")
	var got []string
	must.Succeed(t, diagnose.Facts(t.Context(), bytes.NewReader(library), func(fact string) { got = append(got, fact) }))
	for _, want := range []string{
		"soname: libnccl.so.2", "needs: libibverbs.so.1", "needs: libc.so.6", "runpath: /tmp/build/lib",
		"device: sm_90", "undefined: ibv_reg_mr", "exports: ncclGetVersion", "text: NCCL version 2.29.7+cuda12.4",
	} {
		check.That(t, slices.Contains(got, want), "lacks %q in %q", want, got)
	}
	for _, wrong := range []string{"device: none", "undefined: perhaps"} {
		check.That(t, !slices.Contains(got, wrong), "has %q", wrong)
	}
}

// builtIn returns an examiner with the embedded catalogue.
func builtIn(t *testing.T) *diagnose.Examiner {
	t.Helper()
	all, err := diagnose.Load(os.DirFS(filepath.Join("..", "..", "..", "diagnoses")), "diagnoses")
	must.Succeed(t, err)
	return diagnose.NewExaminer(all)
}

// names returns the names of findings without notes, because notes depend on the host's
// compiler.
func names(r diagnose.Report) []string {
	list := []string{}
	for _, f := range r.Findings {
		if f.Severity != diagnose.Note {
			list = append(list, f.Name)
		}
	}
	return list
}

func TestLibrary(t *testing.T) {
	e := builtIn(t)
	for name, c := range map[string]struct {
		source string
		flags  []string
		want   []string
	}{
		"good":          {nccl + kernels + fatbin, []string{soname, "-libverbs"}, []string{}},
		"no verbs":      {nccl + kernels + fatbin, []string{soname}, []string{"verbs-undefined"}},
		"no kernels":    {nccl + fatbin, []string{soname, "-libverbs"}, []string{"nccl-kernels-missing"}},
		"no GPU code":   {nccl + kernels, []string{soname, "-libverbs"}, []string{"device-code-missing"}},
		"no CUDA":       {strings.ReplaceAll(nccl, "cuda12.4", "cuda.") + kernels + fatbin, []string{soname, "-libverbs"}, []string{"nccl-cuda-version"}},
		"foreign path":  {nccl + kernels + fatbin, []string{soname, "-libverbs", "-Wl,-rpath,/home/me/lib"}, []string{"build-path"}},
		"another one":   {"int horovod_init(void) { return 0; }", nil, []string{}},
		"PTX and torch": {strings.Replace(fatbin, "2, 0, 1, 1, 64", "1, 0, 1, 1, 64", 1) + "extern int _ZN3c105ErrorC1ENS_14SourceLocationESs(void), _ZN2at3addERKNSt7__cxx1112basic_stringIcE(void); int f(void) { return _ZN3c105ErrorC1ENS_14SourceLocationESs() + _ZN2at3addERKNSt7__cxx1112basic_stringIcE(); }", nil, []string{"mixed-string-abi", "ptx-only"}},
	} {
		t.Run(name, func(t *testing.T) {
			// The content, not the misleading name, determines the kind.
			r, err := e.File(context.Background(), write(t, "build.log", compile(t, c.source, c.flags...)))
			got := names(r)
			slices.Sort(got)
			diff := cmp.Diff(c.want, got)
			check.That(t, diff == "" && err == nil && r.Kind == "library", "%s, %v (-want +got):\n%s", r.Kind, err, diff)
		})
	}
}

// zipped returns a ZIP archive of files.
func zipped(files map[string][]byte) []byte {
	var all []wheeltest.File
	for name, data := range files {
		all = append(all, wheeltest.File{Name: name, Text: string(data)})
	}
	return wheeltest.ZIP(time.Unix(1700000000, 0), all...)
}

const extension = "horovod/torch/mpi_lib_v2.cpython-311-x86_64-linux-gnu.so"

func TestWheel(t *testing.T) {
	e := builtIn(t)
	cpu := compile(t, "int horovod_init(void) { return 0; }")
	gpu := compile(t, fatbin+"int horovod_init(void) { return 0; }", "-Wl,-soname,mpi_lib_v2.so")
	verbs := compile(t, nccl+kernels+fatbin, soname)
	for name, c := range map[string]struct {
		wheel string
		files map[string][]byte
		want  []string
	}{
		"for GPUs":        {"horovod-0.28.1-cp311-cp311-linux_x86_64.whl", map[string][]byte{extension: gpu}, []string{}},
		"for CPUs":        {"horovod-0.28.1-cp311-cp311-linux_x86_64.whl", map[string][]byte{extension: cpu}, []string{"horovod-cpu-only"}},
		"says GPU":        {"horovod-0.28.1+rocm5.7-cp311-cp311-linux_x86_64.whl", map[string][]byte{extension: cpu}, []string{"horovod-not-for-gpus"}},
		"no extension":    {"horovod-0.28.1-cp311-cp311-linux_x86_64.whl", map[string][]byte{"horovod/torch/__init__.py": nil}, []string{"horovod-no-extension"}},
		"a linker script": {"nvidia_nccl-2-py3-none-linux_x86_64.whl", map[string][]byte{"nvidia/libnccl.so": []byte("INPUT(libnccl.so.2)")}, []string{}},
		"two libraries":   {"nvidia_nccl-2-py3-none-linux_x86_64.whl", map[string][]byte{"nvidia/libnccl.so.2": verbs, "b/libnccl.so.2": verbs}, []string{"verbs-undefined"}},
		"above its tag":   {"x-1-cp311-cp311-manylinux_2_1_x86_64.whl", map[string][]byte{"x.so": compile(t, "#include <stdio.h>\nvoid f(void) { puts(\"x\"); }")}, []string{"above-tag"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := e.File(context.Background(), write(t, c.wheel, zipped(c.files)))
			diff := cmp.Diff(c.want, names(r))
			check.That(t, diff == "" && err == nil && r.Kind == "wheel", "%s, %v (-want +got):\n%s", r.Kind, err, diff)
			for _, f := range r.Findings {
				check.That(t, f.Name != "verbs-undefined" || (f.Count == 2 && strings.HasSuffix(f.Member, "libnccl.so.2")),
					"%s is shown %d times, first by %q", f.Name, f.Count, f.Member)
			}
		})
	}
}

// A damaged library is reported, the others are examined, and the wheel itself gets no
// findings.
func TestWheelWithADamagedLibrary(t *testing.T) {
	whole := compile(t, nccl+kernels+fatbin, soname)
	r, err := builtIn(t).File(context.Background(), write(t, "horovod-0.28.1-cp311-cp311-linux_x86_64.whl",
		zipped(map[string][]byte{"horovod/a.so": whole[:len(whole)/2], "horovod/b.so": whole})))
	if err == nil || !strings.Contains(err.Error(), "reading horovod/a.so: ") || diag.CodeOf(err) != diag.Usage {
		t.Errorf("got %v", err)
	}
	check.Same(t, "found", []string{"verbs-undefined"}, names(r))
}

func TestFileThatCannotBeExamined(t *testing.T) {
	e := builtIn(t)
	for name, c := range map[string]struct{ content, want string }{
		"a.log.gz": {"\x1f\x8b\x08", "gzip -dc"},
		"a.xz":     {"\xfd7zXZ\x00", "xz -dc"},
		"a.zst":    {"\x28\xb5\x2f\xfd", "zstd -dc"},
		"a.a":      {"!<arch>\n", "a static library"},
		"a.so":     {"\x7fELF", "a.so: not an ELF file: too short"},
		"a.zip":    {"PK\x03\x04", "parsing wheel name \"a.zip\""},
	} {
		_, err := e.File(context.Background(), write(t, name, []byte(c.content)))
		if err == nil || !strings.Contains(err.Error(), c.want) || diag.CodeOf(err) != diag.Usage {
			t.Errorf("%s: got %v", name, err)
		}
	}
	_, err := e.File(context.Background(), "/does/not/exist")
	check.That(t, diag.CodeOf(err) == diag.Usage, "got %v", err)
}

// A pipe can only be read as a log.
func TestPipe(t *testing.T) {
	e := builtIn(t)
	for content, want := range map[string]string{"x\nNo space left on device\n": "", "\x7fELF": "cannot be read from a pipe"} {
		pipe := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Skip(err)
		}
		go func() {
			err := os.WriteFile(pipe, []byte(content), 0o600)
			check.That(t, err == nil, "%v", err)
		}()
		r, err := e.File(context.Background(), pipe)
		check.That(t, want != "" || (err == nil && len(r.Findings) == 1 && r.Findings[0].Line == 2), "got %v, %v", names(r), err)
		check.That(t, want == "" || (err != nil && strings.Contains(err.Error(), want)), "got %v", err)
	}
}

func TestLogRefuses(t *testing.T) {
	e := builtIn(t)
	_, err := e.Log(context.Background(), "standard input", strings.NewReader("\x7fELF\x02"))
	check.Fails(t, err, "a library, not a log")
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = e.Log(cancelled, "x", strings.NewReader(strings.Repeat("y\n", 1<<20)))
	check.That(t, errors.Is(err, context.Canceled), "got %v", err)
}

func TestCause(t *testing.T) {
	e := builtIn(t)
	log := "NCCL INFO NET/IB : No device found.\nValueError: MPI support has not been built.\nUnknown CMake command \"hip_add_library\".\n"
	if d, ok := e.Cause(context.Background(), write(t, "a.log", []byte(log))); !ok || d.Name != "findhip" {
		t.Errorf("got %q, %v", d.Name, ok)
	}
	for _, path := range []string{write(t, "b.log", []byte("NCCL INFO NET/IB : No device found.\n")), write(t, "c.log", nil), "/does/not/exist"} {
		if d, ok := e.Cause(context.Background(), path); ok {
			t.Errorf("%s: got %q", path, d.Name)
		}
	}
}
