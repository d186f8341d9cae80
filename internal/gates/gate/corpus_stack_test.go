package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/internal/files/artifact"
	"builder/internal/plan/recipe"
	"builder/internal/plan/stack"
	"builder/test/kit/elftest"
	"builder/test/kit/must"
	"builder/test/kit/wheeltest"
)

// house describes a wheelhouse.
type house struct {
	parts, extra []*housed
	whole        bool                   // the platform provides nothing; otherwise torch
	after        func(dir string) error // changes the written wheelhouse; may be nil
}

// housed is a wheel of a wheelhouse.
type housed struct {
	wheel wheeltest.Wheel
	lib   *elftest.Library // nil for none
	axes  map[string]string
}

// write writes the wheelhouse and returns the path of its manifest.
func (h *house) write(t *testing.T) string {
	t.Helper()
	from, dir := t.TempDir(), t.TempDir()
	m := stack.Manifest{Format: stack.Format, Stack: "stack/test", Key: "key", Provided: []recipe.Provided{}}
	places := map[string]string{}
	put := func(w *housed) stack.Wheel {
		files := w.wheel
		if w.lib != nil {
			files.Files = append(slices.Clone(files.Files), wheeltest.File{Name: "horovod/lib.so", Text: string(w.lib.Bytes()), Mode: 0o755})
		}
		path := filepath.Join(from, files.Name)
		write(t, path, files.Bytes())
		a, err := artifact.Of(path, "")
		must.Succeed(t, err)
		places[a.Name] = path
		return stack.Wheel{Name: a.Name, SHA256: a.SHA256, Size: a.Size}
	}
	for _, w := range h.parts {
		m.Parts = append(m.Parts, stack.Built{Wheel: put(w), Recipe: "r", Cell: "c", Key: "k", Axes: w.axes})
	}
	for _, w := range h.extra {
		m.Extra = append(m.Extra, put(w))
	}
	if !h.whole {
		m.Provided = []recipe.Provided{{Project: "torch", Because: "the site brings it"}}
	}
	made, err := m.Write(dir, places, nil)
	must.Succeed(t, err)
	if h.after != nil {
		must.Succeed(t, h.after(dir))
	}
	return made[0].Path
}

// houseInstalled is the output of uv 0.13.8 for the good wheelhouse, including standard
// error.
const houseInstalled = `Using Python 3.11.7 environment at: /opt/venv
Resolved 3 packages in 5ms
Prepared 3 packages in 57ms
Installed 3 packages in 13ms
 + click==8.1.7
 + horovod==0.28.1+rocm6.1
 + ray==2.12.0+cudavis.1
== installed
Using Python 3.11.7 environment at: /opt/venv
click==8.1.7
horovod==0.28.1+rocm6.1
ray==2.12.0+cudavis.1
== needs
Using Python 3.11.7 environment at: /opt/venv
Checked 3 packages in 89ms
Found 1 incompatibility
`

const torchLacks = "The package `horovod` requires `torch>=2.1`, but it's not installed\n"

// openrlhf returns a wheelhouse of Ray and Horovod for ROCm 6.1 with one package of the
// index. The site provides PyTorch.
func openrlhf() *specimen {
	axes := func() map[string]string { return map[string]string{"rocm": "6.1", "python": "3.11"} }
	return &specimen{
		expect: recipe.Expect{Wheelhouse: &recipe.Wheelhouse{
			Format: stack.Format, Agree: []string{"rocm", "python", "cxxabi", "mpi"},
			Provided: []recipe.Provided{{Project: "torch", Because: "the site brings it"}},
		}},
		house: &house{
			parts: []*housed{
				{
					wheel: wheeltest.Wheel{Name: "ray-2.12.0+cudavis.1-cp311-cp311-manylinux2014_x86_64.whl", Requires: []string{"click>=7.0"}},
					axes:  axes(),
				},
				{
					wheel: wheeltest.Wheel{Name: "horovod-0.28.1+rocm6.1-cp311-cp311-linux_x86_64.whl", Requires: []string{"torch>=2.1"}},
					lib: &elftest.Library{
						Needed:    []string{"libamdhip64.so.6", "libmpi.so.40"},
						Undefined: elftest.Named("hipMalloc", "MPI_Init", "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"),
					},
					axes: axes(),
				},
			},
			extra: []*housed{{wheel: wheeltest.Wheel{Name: "click-8.1.7-py3-none-any.whl"}}},
		},
		box: container{answers: map[string]Result{"wheelhouse": {Exit: 1, Output: houseInstalled + torchLacks}}},
	}
}

// ncclText is the content of the library in the part of [torchNCCL].
const ncclText = "an NCCL"

// ncclPath is where the box installs it.
const ncclPath = "/opt/venv/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2"

// mapped is the output of the program of parts-load for a file with the given content.
func mapped(path, text string) string {
	sum := sha256.Sum256([]byte(text))
	return "torch\t" + path + "\t" + hex.EncodeToString(sum[:]) + "\n"
}

// torchNCCL returns a wheelhouse of torch and an NCCL in place of the vendor's.
func torchNCCL() *specimen {
	return &specimen{
		expect: recipe.Expect{Wheelhouse: &recipe.Wheelhouse{
			Format: stack.Format, Loads: []recipe.LibraryLoad{{Import: "torch", Library: "libnccl.so.2", Project: "nvidia-nccl-cu13"}},
		}},
		house: &house{
			whole: true,
			parts: []*housed{{wheel: wheeltest.Wheel{
				Name:  "nvidia_nccl_cu13-2.28.9+cuda13.0.dlopen.sm90-py3-none-manylinux_2_29_x86_64.whl",
				Files: []wheeltest.File{{Name: "nvidia/nccl/lib/libnccl.so.2", Text: ncclText}},
			}}},
			extra: []*housed{{wheel: wheeltest.Wheel{Name: "torch-2.11.0-cp311-cp311-manylinux_2_28_x86_64.whl", Requires: []string{"nvidia-nccl-cu13==2.28.9"}}}},
		},
		box: container{answers: map[string]Result{
			"wheelhouse": {Output: "== installed\nnvidia-nccl-cu13==2.28.9+cuda13.0.dlopen.sm90\ntorch==2.11.0\n== needs\nAll installed packages are compatible\n"},
			"parts-load": {Output: "== imported torch\n" + mapped(ncclPath, ncclText)},
		}},
	}
}

// second adds a library to the first part, which has none.
func second(l *elftest.Library) func(*specimen) {
	return func(s *specimen) { s.house.parts[0].lib = l }
}

func badStacks() []bad {
	const agree, add = "give the parts equal axes", "add each missing package to extra"
	prints := func(output string) func(*specimen) { // uv exits with 1
		return func(s *specimen) { s.box.answers["wheelhouse"] = Result{Exit: 1, Output: output} }
	}
	found := func(n, lines string) string {
		return strings.Replace(houseInstalled, "Found 1 incompatibility", "Found "+n+" incompatibilities", 1) + torchLacks + lines
	}
	const leave = "leave it out of the stack"
	loads := func(exit int, output string) func(*specimen) {
		return func(s *specimen) { s.box.answers["parts-load"] = Result{Exit: exit, Output: output} }
	}
	return []bad{
		refused("a torch that loads the vendor's NCCL", torchNCCL, loads(0, "== imported torch\n"+mapped(ncclPath, "the vendor's")),
			"parts-load", "a process that imports torch maps "+ncclPath+" with sha256", leave),
		refused("a torch that loads two NCCLs", torchNCCL,
			loads(0, "== imported torch\n"+mapped(ncclPath, ncclText)+mapped("/usr/lib/libnccl.so.2.19.3", "Debian's")),
			"parts-load", "maps /usr/lib/libnccl.so.2.19.3 with sha256", leave),
		refused("two copies of the part's NCCL in a process", torchNCCL,
			loads(0, "== imported torch\n"+mapped(ncclPath, ncclText)+mapped("/opt/venv/libnccl.so.2", ncclText)),
			"parts-load", "maps libnccl.so.2 twice: "+ncclPath+", /opt/venv/libnccl.so.2", leave),
		refused("a torch without an NCCL, the one for CPUs", torchNCCL, loads(0, "== imported torch\n"),
			"parts-load", "a process that imports torch maps no libnccl.so.2", leave),
		refused("an NCCL without a symbol that torch needs", torchNCCL,
			loads(1, "Traceback (most recent call last):\nImportError: libtorch_cuda.so: undefined symbol: ncclCommWindowRegister\n"),
			"parts-load", "exit 1: ImportError: libtorch_cuda.so: undefined symbol: ncclCommWindowRegister", leave),
		refused("a stack that promises a library of no part", torchNCCL,
			func(s *specimen) { s.expect.Wheelhouse.Loads[0].Project = "nvidia-nccl-cu12" },
			"parts-load", "no part of the stack makes a wheel of nvidia-nccl-cu12", leave),
		refused("a stack whose part lacks the promised library", torchNCCL,
			func(s *specimen) { s.expect.Wheelhouse.Loads[0].Library = "libnccl.so.3" }, "parts-load", "holds no libnccl.so.3", leave),
		refused("an import that leaves no trace", torchNCCL, loads(0, mapped(ncclPath, ncclText)),
			"parts-load", "does not say that it imported torch", "not-measured never counts as a pass").unmeasured(),
		refused("a part of a stack requested for another ROCm", openrlhf, func(s *specimen) { s.house.parts[0].axes["rocm"] = "5.7" },
			"parts-agree", "rocm is 5.7 in ray-2.12.0+cudavis.1 and 6.1 in horovod-", agree),
		refused("a part of a stack linked with another ROCm than requested", openrlhf,
			func(s *specimen) { s.house.parts[1].lib.Needed[0] = "libamdhip64.so.5" },
			"parts-agree", "is for rocm 6.1, but its rocm is 5: horovod/lib.so needs libamdhip64.so.5", "rebuild a part whose bytes differ"),
		refused("parts of a stack for two Pythons", openrlhf, func(s *specimen) {
			s.house.parts[0].wheel.Name = strings.ReplaceAll(s.house.parts[0].wheel.Name, "cp311", "cp310")
		}, "parts-agree", "is for python 3.11, but its python is cp310", agree),
		refused("parts of a stack with two MPIs", openrlhf, second(&elftest.Library{Needed: []string{"libmpi.so.12"}}),
			"parts-agree", "mpi is mpich in ray-", agree),
		refused("parts of a stack with two C++ ABIs towards PyTorch", openrlhf,
			second(&elftest.Library{Undefined: elftest.Named("_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE")}),
			"parts-agree", "cxxabi is cxx11 in ray-", agree),
		refused("a wheel in a wheelhouse with another digest than in the manifest", openrlhf, func(s *specimen) {
			s.house.after = func(dir string) error {
				return os.WriteFile(filepath.Join(dir, stack.Folder, "click-8.1.7-py3-none-any.whl"), []byte("other"), 0o600)
			}
		}, "wheelhouse", "click-8.1.7-py3-none-any.whl: expected sha256", add, "parts-agree"),
		refused("a requirement missing in both the wheelhouse and the platform", openrlhf,
			prints(found("2", "The package `ray` requires `jsonschema`, but it's not installed\n")),
			"wheelhouse", "jsonschema (ray needs it)", add),
		refused("a requirement left to the platform, and missing among the provided packages", openrlhf,
			func(s *specimen) { s.house.parts[0].wheel.External = []string{"flash-attn==2.8.3"} },
			"wheelhouse", "flash-attn==2.8.3 (ray needs it)", add),
		refused("a requirement of another version than the wheelhouse's", openrlhf,
			prints(found("2", "The package `ray` requires `click<8`, but `8.1.7` is installed\n")),
			"wheelhouse", "ray needs click<8, and 8.1.7 is installed", add),
		refused("a provided project required by no wheel", openrlhf, func(s *specimen) { s.house.parts[1].wheel.Requires = nil },
			"wheelhouse", "torch is declared as provided, and no wheel requires it", add),
		refused("a wheel with another digest than its pin", openrlhf,
			prints("error: Failed to download `ray==2.12.0+cudavis.1`\n  cause: Hash mismatch for `ray==2.12.0+cudavis.1`\n\n         Expected:\n"),
			"wheelhouse", "installing requirements.txt: exit 1: Failed to download `ray==2.12.0+cudavis.1`: Hash mismatch", add),
		refused("a wheel missing among the installed packages", openrlhf,
			prints(strings.Replace(houseInstalled, "== installed\nUsing Python 3.11.7 environment at: /opt/venv\nclick==8.1.7\n", "== installed\n", 1)+torchLacks),
			"wheelhouse", "click-8.1.7-py3-none-any.whl is in the wheelhouse, installed version: missing", add),
		refused("missing packages that are counted but not named", openrlhf, prints(found("3", "The package `ray` wants something\n")),
			"wheelhouse", "it counts 3 missing packages and names 1", "not-measured never counts as a pass").unmeasured(),
		refused("a wheelhouse without a container to install it in", openrlhf,
			func(s *specimen) { s.box.answers = nil; s.box.failure = os.ErrDeadlineExceeded },
			"wheelhouse", "i/o timeout", "not-measured never counts as a pass").unmeasured(),
	}
}
