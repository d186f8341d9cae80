package gate

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// HPE Cray's compilers are wrappers named cc and CC. They add the libraries of loaded
// modules and the processor of the node, and the gates name both.
func TestCompilerWrappers(t *testing.T) {
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip("it needs gcc and g++")
	}
	dir := t.TempDir()
	write := func(name, text string) {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	compile := func(compiler string, args ...string) {
		cmd := exec.Command(compiler, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		must.Succeed(t, err)
		check.That(t, len(out) == 0, "%s: %s", compiler, out)
	}
	for name, compiler := range map[string]string{"cc": "gcc", "CC": "g++"} {
		write(name, "#!/bin/sh\nexec "+compiler+" -march=x86-64-v3 \"$@\" -L. -Wl,--no-as-needed -lsci_gnu\n")
	}
	write("sum.c", "void sum(float *a, float *b) { for (int i = 0; i < 64; i++) a[i] += b[i]; }\n")
	write("sum.cpp", "extern \"C\" void sum(float *a, float *b) { for (int i = 0; i < 64; i++) a[i] += b[i]; }\n")
	compile("gcc", "-shared", "-fPIC", "-Wl,-soname,libsci_gnu.so.6", "-o", "libsci_gnu.so", "-x", "c", "/dev/null")
	for compiler, source := range map[string]string{"cc": "sum.c", "CC": "sum.cpp"} {
		compile("./"+compiler, "-O3", "-shared", "-fPIC", "-o", "libx.so", source)
		library, err := os.ReadFile(filepath.Join(dir, "libx.so"))
		must.Succeed(t, err)
		s := Subject{Artifact: wheelOf(t, library), Expect: recipe.Expect{Extensions: []string{"x/*.so"}, Gates: recipe.GateSettings{
			"elf-needed": neededSettings{Needed: []string{"libc.so.6"}},
			"cpu-isa":    cpuSettings{Allowed: []string{"x86-64"}},
		}}}
		for gate, want := range map[*Gate]string{&elfNeeded: "libsci_gnu.so.6", &cpuISA: "avx"} {
			v := gate.Check(context.Background(), s)
			check.That(t, v.Status == verdict.Fail && strings.Contains(v.Evidence, want), "%s, %s: %s: %s", compiler, gate.Name, v.Status, v.Evidence)
		}
	}
}
