package environment

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/gates/verdict"
	"builder/test/kit/check"
	"builder/test/kit/must"
	"builder/test/kit/wheeltest"
)

// library describes a library to compile.
type library struct {
	source string
	needs  []string // soname of a stub that the linker sees
	calls  []string // functions, which a stub exports
	rpath  string
	soname string
}

// compiler makes libraries. It needs gcc.
type compiler struct {
	*testing.T
	dir string
}

func newCompiler(t *testing.T) compiler {
	t.Helper()
	for _, tool := range []string{"gcc", "python3"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
	return compiler{t, t.TempDir()}
}

// compiled holds the libraries made so far: the worlds of all tests have the same few.
var compiled = map[string]string{}

// text returns the bytes of a library, which it compiles once.
func (c compiler) text(l library) string {
	c.Helper()
	key := fmt.Sprintf("%+v", l)
	if compiled[key] == "" {
		compiled[key] = c.compile(l)
	}
	return compiled[key]
}

func (c compiler) compile(l library) string {
	c.Helper()
	source := l.source
	args := []string{"-shared", "-fPIC", "-o", "out.so", "a.c", "-Wl,--no-as-needed", "-Wl,--disable-new-dtags"}
	for i, soname := range l.needs {
		stub := fmt.Sprintf("stub%d.so", i)
		exports := ""
		for _, name := range l.calls {
			exports += fmt.Sprintf("int %s(void) { return 0; }\n", name)
		}
		c.write("stub.c", exports)
		c.run("gcc", "-shared", "-fPIC", "-o", stub, "stub.c", "-Wl,-soname,"+soname)
		args = append(args, stub)
	}
	for _, name := range l.calls {
		source += fmt.Sprintf("int %s(void); int call_%[1]s(void) { return %[1]s(); }\n", name)
	}
	if l.soname != "" {
		args = append(args, "-Wl,-soname,"+l.soname)
	}
	if l.rpath != "" {
		args = append(args, "-Wl,-rpath,"+l.rpath)
	}
	c.write("a.c", source)
	c.run("gcc", args...)
	return string(must.Get(os.ReadFile(filepath.Join(c.dir, "out.so")))(c))
}

func (c compiler) run(name string, args ...string) {
	c.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = c.dir
	out, err := cmd.CombinedOutput()
	must.Hold(c, err == nil, "%s %q: %v\n%s", name, args, err, out)
}

func (c compiler) write(name, text string) {
	c.Helper()
	put(c.T, c.dir, map[string]string{name: text})
}

func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755))
	}
}

// nccl returns a stub of NCCL. Only its number differs from release to release.
func (c compiler) nccl(version int, more ...string) string {
	source := fmt.Sprintf("int ncclGetVersion(int *v) { *v = %d; return 0; } int ncclAllReduce(void) { return 0; }\n", version)
	return c.text(library{source: source + strings.Join(more, "\n"), soname: "libnccl.so.2"})
}

// module returns an extension module that needs a library.
func (c compiler) module(soname, rpath string, calls ...string) string {
	return c.text(library{needs: []string{soname}, rpath: rpath, calls: calls})
}

// installed is a distribution as pip installs it.
type installed struct {
	name, version string
	files         map[string]string // path below site-packages
}

// world is an environment to make.
type world struct {
	dists []installed
	after map[string]string // written after the installation
}

const (
	torchModule = "torch/_C.cpython-312-x86_64-linux-gnu.so"
	cupyModule  = "cupy_backends/cuda/libs/nccl.cpython-312-x86_64-linux-gnu.so"
	ncclFile    = "nvidia/nccl/lib/libnccl.so.2"
	toNCCL      = "$ORIGIN/../nvidia/nccl/lib"
)

// interpreter returns the path of this host's Python and the name of its folder in lib.
var interpreter = sync.OnceValues(func() ([]string, error) {
	out, err := exec.Command("python3", "-c", "import os, sys; print(os.path.realpath(sys.executable), 'python%d.%d' % sys.version_info[:2])").Output()
	return strings.Fields(string(out)), err
})

// write makes a virtual environment, and returns its directory and that of its packages.
func (w world) write(t *testing.T) (venv, site string) {
	t.Helper()
	words, err := interpreter()
	if err != nil {
		t.Skipf("needs python3: %v", err)
	}
	python, version := words[0], words[1]
	if venv, err = filepath.EvalSymlinks(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	site = filepath.Join(venv, "lib", version, "site-packages")
	put(t, venv, map[string]string{"pyvenv.cfg": "home = " + filepath.Dir(python) + "\n"})
	must.Succeed(t, os.Mkdir(filepath.Join(venv, "bin"), 0o755), os.Symlink(python, filepath.Join(venv, "bin/python3")))
	for _, d := range w.dists {
		info := strings.ReplaceAll(d.name, "-", "_") + "-" + d.version + ".dist-info"
		files := []wheeltest.File{{Name: info + "/METADATA", Text: fmt.Sprintf("Metadata-Version: 2.1\nName: %s\nVersion: %s\n", d.name, d.version)}}
		for _, name := range sorted(d.files) {
			files = append(files, wheeltest.File{Name: name, Text: d.files[name]})
		}
		for _, f := range append(files, wheeltest.Record(info+"/RECORD", files...)) {
			put(t, site, map[string]string{f.Name: f.Text})
		}
	}
	put(t, site, w.after)
	return venv, site
}

func judge(t *testing.T, path string) []verdict.Verdict {
	t.Helper()
	e := must.Get(Ask(t.Context(), path))(t)
	return e.Judge()
}

// refusals returns the names of gates that refuse, their evidence and their remedies.
func refusals(verdicts []verdict.Verdict) (names []string, evidence, remedies string) {
	for _, v := range verdicts {
		if v.Refuses() {
			names = append(names, v.Gate)
			evidence, remedies = evidence+v.Evidence+"\n", remedies+v.Remedy+"\n"
		}
	}
	return names, evidence, remedies
}

func torch(c compiler) []installed {
	return []installed{
		{"torch", "2.11.0", map[string]string{
			torchModule:         c.module("libnccl.so.2", toNCCL, "ncclAllReduce"),
			"torch/__init__.py": "raise SystemExit('a package was imported')\n",
		}},
		{"nvidia-nccl-cu13", "2.28.9", map[string]string{ncclFile: c.nccl(22809)}},
	}
}

func TestHealthy(t *testing.T) {
	c := newCompiler(t)
	venv, site := world{dists: torch(c)}.write(t)
	for _, path := range []string{venv, filepath.Join(venv, "bin/python3")} {
		verdicts := judge(t, path)
		check.That(t, verdict.Refusals("it", verdicts) == nil && len(verdicts) >= 4, "%s: %+v", path, verdicts)
		i := slices.IndexFunc(verdicts, func(v verdict.Verdict) bool { return v.Gate == "env-library" })
		want := "NCCL is " + ncclFile + " (2.28.9 nvidia-nccl-cu13 2.28.9) for " + torchModule
		check.That(t, i >= 0 && verdicts[i].Evidence == want, "%s: %+v, want %s", path, verdicts, want)
	}
	_, err := Ask(t.Context(), site)
	check.That(t, diag.CodeOf(err) == diag.Usage, "packages without an interpreter: %v", err)
}

// The environment has one NCCL for torch, and cupy gets that of the system, from a path of
// its own or from LD_LIBRARY_PATH.
func TestTwoNCCLs(t *testing.T) {
	c := newCompiler(t)
	system := t.TempDir()
	put(t, system, map[string]string{"libnccl.so.2": c.nccl(22803)})
	for rpath, remedy := range map[string]string{"": "take " + system + " out of LD_LIBRARY_PATH", system: "start processes with LD_LIBRARY_PATH=SITE/nvidia/nccl/lib"} {
		w := world{dists: append(torch(c), installed{"cupy-cuda13x", "14.0", map[string]string{cupyModule: c.module("libnccl.so.2", rpath, "ncclAllReduce")}})}
		venv, site := w.write(t)
		if rpath == "" {
			t.Setenv("LD_LIBRARY_PATH", system)
		} else {
			os.Unsetenv("LD_LIBRARY_PATH")
		}
		names, evidence, remedies := refusals(judge(t, venv))
		for _, want := range []string{"modules get 2 files of NCCL", ncclFile + " (2.28.9 nvidia-nccl-cu13 2.28.9) for " + torchModule, system + "/libnccl.so.2 (2.28.3) for " + cupyModule} {
			check.That(t, slices.Equal(names, []string{"env-library"}) && strings.Contains(evidence, want),
				"%q, %q is missing in %s", names, want, evidence)
		}
		want := strings.ReplaceAll(remedy, "SITE", site)
		check.That(t, strings.Contains(remedies, want), "%s, want %s", remedies, want)
	}
}

// broken is a broken environment, the gate that refuses it, and what it says.
type broken struct {
	name               string
	world              world
	gate, says, remedy string
}

func refused(name string, w world, gate, says, remedy string) broken {
	return broken{name, w, gate, says, remedy}
}

func brokenOnes(c compiler) []broken {
	other := installed{"nvidia-nccl-cu12", "2.26.2", map[string]string{ncclFile: c.nccl(22602)}}
	denied := torch(c)
	denied[1].files[ncclFile] = c.nccl(22703)
	older := torch(c)
	older[0].files[torchModule] = c.module("libnccl.so.2", toNCCL, "ncclMemFree")
	own := torch(c)
	own[1].version = "2.28.9+cuda13.0.verbs"
	rccl := installed{"rocm-sdk-libraries", "7.14.0", map[string]string{
		"_rocm_sdk_libraries/lib/librccl.so.1": c.text(library{source: "const char *a = \"libhsa-runtime64.so\"; int ncclGetVersion(int *v) { *v = 22803; return 0; }\n", soname: "librccl.so.1"}),
	}}
	with := func(dists []installed, name string, text string) world {
		return world{dists: append(dists, installed{"trainer", "1.0", map[string]string{name: text}})}
	}
	return []broken{
		refused("ROCm/TheRock#5562: RCCL opens a name that the wheels lack", world{dists: []installed{
			rccl,
			{"rocm-sdk-core", "7.14.0", map[string]string{"_rocm_sdk_core/lib/libhsa-runtime64.so.1": c.text(library{soname: "libhsa-runtime64.so.1"})}},
			{"torch", "2.12.0", map[string]string{torchModule: c.module("librccl.so.1", "$ORIGIN/../_rocm_sdk_libraries/lib")}},
		}}, "env-dlopen", "opens libhsa-runtime64.so by name, which was not found; there is _rocm_sdk_core/lib/libhsa-runtime64.so.1",
			"ln -s libhsa-runtime64.so.1 "),
		refused("vllm#44335: the wheel for another CUDA", world{dists: []installed{
			{"nvidia-cuda-runtime-cu12", "12.9.79", map[string]string{"nvidia/cuda_runtime/lib/libcudart.so.12": c.text(library{soname: "libcudart.so.12"})}},
			{"vllm", "0.22.0", map[string]string{"vllm/_C.abi3.so": c.module("libcudart.so.13", "$ORIGIN/../nvidia/cuda_runtime/lib")}},
		}}, "env-needed", "vllm/_C.abi3.so needs libcudart.so.13, which was not found; there is nvidia/cuda_runtime/lib/libcudart.so.12",
			"install the build of vllm/_C.abi3.so (vllm 0.22.0) for libcudart.so.12"),
		refused("nothing of CUDA is there", with(nil, "trainer.abi3.so", c.module("libcudart.so.13", "")),
			"env-needed", "needs libcudart.so.13, which was not found", "-m pip check"),
		refused("the library is outside of the search path", with(torch(c)[1:], "trainer.abi3.so", c.module("libnccl.so.2", "")),
			"env-needed", ncclFile+" (2.28.9 nvidia-nccl-cu13 2.28.9) is outside its search path", "from wheels of one release"),
		refused("pytorch/pytorch#186591: NCCL for CUDA 12 and 13", world{dists: append(torch(c), other)}, "env-metadata",
			"is listed by nvidia-nccl-cu12 2.26.2 and nvidia-nccl-cu13 2.28.9; the installed file is that of nvidia-nccl-cu12 2.26.2",
			"pip uninstall -y nvidia-nccl-cu12 nvidia-nccl-cu13"),
		refused("verl-project/verl#6621: pip says one version, the library another", world{dists: denied}, "env-metadata",
			"says that it is 2.27.3, and its distribution is nvidia-nccl-cu13 2.28.9",
			"pip install --force-reinstall --no-deps nvidia-nccl-cu13==2.28.9"),
		refused("NCCL copied over the vendor's", world{dists: torch(c), after: map[string]string{ncclFile: c.nccl(22809, "int ours;")}},
			"env-metadata", "nvidia-nccl-cu13 2.28.9 was replaced after its installation", "--no-deps nvidia-nccl-cu13==2.28.9"),
		refused("NCCL copied over one's own wheel", world{dists: own, after: map[string]string{ncclFile: c.nccl(22809, "int ours;")}},
			"env-metadata", "was replaced", "FILE is the wheel of nvidia-nccl-cu13 2.28.9+cuda13.0.verbs"),
		refused("verl-project/verl#6621: a third file that CDLL finds", with(torch(c), "trainer/lib/libnccl.so.2", c.nccl(22703)),
			"env-library", "the packages bring 2 releases of NCCL", "uninstall or rebuild"),
		refused("rwth-i6/returnn#1802: a symbol that NCCL lacks", world{dists: older},
			"env-process", "undefined symbol: ncclMemFree", "install the release of the library"),
		refused("a library that ends the process", with(torch(c)[1:], "trainer.abi3.so", c.text(library{
			source: "#include <stdlib.h>\n__attribute__((constructor)) void end(void) { _Exit(3); }\n",
			needs:  []string{"libnccl.so.2"}, rpath: "$ORIGIN/nvidia/nccl/lib",
		})), "env-process", "the process ended with wait status", "install the release"),
		refused("a host without the driver of the GPU", with(torch(c)[1:], "trainer.abi3.so", c.text(library{
			needs: []string{"libnccl.so.2", "libnvidia-none.so.1"}, rpath: "$ORIGIN/nvidia/nccl/lib",
		})), "env-process", "this host has no libnvidia-none.so.1", "with the driver of the GPU"),
		refused("a library that is cut off", world{dists: torch(c), after: map[string]string{"torch/lib/libhalf.so": c.nccl(1)[:9000]}},
			"env-needed", "torch/lib/libhalf.so: ", ""),
	}
}

func TestBroken(t *testing.T) {
	refuses := map[string]bool{}
	for _, b := range brokenOnes(newCompiler(t)) {
		t.Run(b.name, func(t *testing.T) {
			venv, _ := b.world.write(t)
			names, evidence, remedies := refusals(judge(t, venv))
			for _, name := range names {
				refuses[name] = true
			}
			check.That(t, slices.Equal(names, []string{b.gate}) && strings.Contains(evidence, b.says) && strings.Contains(remedies, b.remedy),
				"%q, want %q with %q and %q of\n%s%s", names, b.gate, b.says, b.remedy, evidence, remedies)
			check.That(t, !strings.Contains(remedies, "nvidia-cuda-runtime"),
				"a remedy names a project by the name of a library: %s", remedies)
		})
	}
	for _, g := range gates {
		check.That(t, refuses[g.name], "no broken environment is refused by %s", g.name)
	}
}

// A module without a search path finds its libraries after the import of another one, and
// a file in two distributions is no problem if its bytes are those of both.
func TestNothingIsWrong(t *testing.T) {
	c := newCompiler(t)
	after := torch(c)
	after[0].files["torch/lib/libtorch.so"] = c.text(library{soname: "libtorch.so", needs: []string{"libnccl.so.2"}, rpath: "$ORIGIN/../../nvidia/nccl/lib"})
	after[0].files[torchModule] = c.module("libtorch.so", "$ORIGIN/lib")
	twice, system := torch(c), t.TempDir()
	put(t, system, map[string]string{"libnccl.so.2": c.nccl(22803)}) // torch has loaded its own before
	for name, w := range map[string]world{
		"an extension of torch": {dists: append(after, installed{"torchvision", "0.26", map[string]string{
			"torchvision/_C.so": c.text(library{needs: []string{"libtorch.so", "libnccl.so.2"}, calls: []string{"ncclAllReduce"}, rpath: system}),
		}})},
		"one file in two distributions": {dists: append(twice, installed{"nvidia-nccl-extra", "2.28.9", twice[1].files})},
		"a copy among headers":          {dists: torch(c), after: map[string]string{"tensorflow/include/lib/libnccl.so": c.nccl(22703)}},
		"a library that prints": {dists: append(torch(c)[:1], installed{"nvidia-nccl-cu13", "2.28.9", map[string]string{
			ncclFile: c.nccl(22809, "#include <stdio.h>", "__attribute__((constructor)) void say(void) { puts(\"hello\"); fflush(stdout); }"),
		}})},
	} {
		t.Run(name, func(t *testing.T) {
			venv, _ := w.write(t)
			verdicts := judge(t, venv)
			check.That(t, verdict.Refusals("it", verdicts) == nil, "%+v", verdicts)
		})
	}
}

// What an interpreter prints is data: it can be anything.
func TestAnswers(t *testing.T) {
	dir := t.TempDir()
	python := filepath.Join(dir, "python")
	ask := func(script string) (*Environment, error) {
		put(t, dir, map[string]string{"python": "#!/bin/sh\n" + script})
		return Ask(t.Context(), python)
	}
	_, err := ask("echo no JSON")
	check.That(t, diag.CodeOf(err) == diag.Usage && strings.Contains(fmt.Sprint(err), "is no Python"), "%v", err)
	for script, want := range map[string]string{
		"echo a reason >&2; exit 1": "exit status 1: a reason", "yes": "asking",
	} {
		_, err := ask(script)
		check.That(t, diag.CodeOf(err) == diag.Gate && strings.Contains(fmt.Sprint(err), want), "%s: %v", script, err)
	}
	e := must.Get(ask(`echo '{"owned": {"/a.so": {"by": null}}, "modules": {"/b.so": {"families": [""]}}, "files": {"": {"opens": {"": false}}}}'`))(t)
	e.Judge()
	for _, path := range []string{dir, filepath.Join(dir, "nowhere")} {
		_, err := Ask(t.Context(), path)
		check.That(t, diag.CodeOf(err) == diag.Usage, "%s: %v", path, err)
	}
}
