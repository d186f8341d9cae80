package gate

import (
	"strings"
	"testing"

	"builder/internal/files/elf"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
)

func TestPathFault(t *testing.T) {
	const library = "horovod/torch/mpi_lib.so"
	for dir, says := range map[string]string{
		"$ORIGIN":                     "",
		"$ORIGIN/":                    "",
		"$ORIGIN/../.libs":            "",
		"$ORIGIN/../../torch/lib":     "",
		"${ORIGIN}/../../torch/lib":   "",
		"/usr/lib":                    "",
		"/usr/lib/":                   "",
		"/usr/lib64/openmpi/lib":      "",
		"/lib/x86_64-linux-gnu":       "",
		"/lib64":                      "",
		"/opt/rocm/lib":               "",
		"/usr/local/cuda/lib64":       "",
		"/usr/local/cuda/lib64/stubs": "libraries without code",
		"$ORIGIN/../../../..":         "",
		"${ORIGIN}/../../../../":      "",
		"$ORIGIN/../../../../..":      "out of site-packages",
		"$ORIGIN/../../../../openmpi": "out of site-packages",
		"$ORIGIN/../../../lib":        "out of site-packages",
		"$ORIGIN/../../..":            "out of site-packages",
		"$ORIGINAL/lib":               "relative to the directory",
		"${ORIGIN}al":                 "relative to the directory",
		"":                            "relative to the directory",
		"lib":                         "relative to the directory",
		"../lib":                      "relative to the directory",
		"/":                           "of the build machine",
		"/build/lib":                  "of the build machine",
		"/usr/library":                "of the build machine",
		"/usr/lib/../../build":        "of the build machine",
		"/opt/rocm-6.1.0/lib":         "of the build machine",
		"/usr/local/cuda-12/lib64":    "of the build machine",
		"/usr/lib/python3/dist-packages/torch/lib":       "of the build machine",
		"/usr/lib/python3.11/site-packages/torch/lib":    "of the build machine",
		"/opt/venv/lib/python3.11/site-packages/x/lib":   "of the build machine",
		"/tmp/pip-build-env-x/overlay/lib/libraries/lib": "of the build machine",
	} {
		got := pathFault(dir, library)
		check.That(t, (got == "") == (says == "") && strings.Contains(got, says), "%q: %q", dir, got)
	}
}

// The needed libraries of real builds. An extension may need those of its framework and
// those of the compiler without a promise.
func TestUnpromisedNeeds(t *testing.T) {
	library := recipe.Expect{Library: "libnccl.so.2"}
	torch := recipe.Expect{Frameworks: []string{"PyTorch"}, Gates: recipe.GateSettings{"elf-needed": neededSettings{Needed: []string{"libnccl.so.2", "libmpi.so.40"}}, "built-flags": map[string]string{"cuda": "true"}}}
	for needed, c := range map[string]struct {
		e    recipe.Expect
		says string
	}{
		"libstdc++.so.6 libm.so.6 libgcc_s.so.1 libc.so.6 ld-linux-x86-64.so.2 librt.so.1 libpthread.so.0 libdl.so.2": {library, ""},
		"libnccl.so.2 libmpi.so.40 libmpi_cxx.so.40 libcudart.so.13 libc10.so libc10_cuda.so libtorch_cpu.so":         {torch, ""},
		"libnccl.so.2 libtensorflow_cc.so.2": {torch, "x.so needs libtensorflow_cc.so.2, which nobody promised"},
		"libmpi_cxx.so.40":                   {library, "x.so needs libmpi_cxx.so.40, which nobody promised"},
		"libcudart.so.12":                    {library, "x.so needs libcudart.so.12, which nobody promised"},
		"libanything.so":                     {recipe.Expect{Gates: recipe.GateSettings{"elf-needed": neededSettings{Forbidden: []string{"libcuda.so*"}}}}, ""},
	} {
		want := settings[neededSettings](c.e, "elf-needed")
		check.Same(t, needed, c.says, strings.Join(unpromisedNeeds("x.so", &elf.File{Needed: strings.Fields(needed)}, c.e, want.Needed), "; "))
	}
}
