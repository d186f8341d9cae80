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

const wrapped = `
printf '#!/bin/sh\nexec gcc -march=x86-64-v3 "$@" -L. -Wl,--no-as-needed -lsci_gnu\n' > cc
sed 's/gcc/g++/' cc > CC
chmod +x cc CC
echo 'void sum(float *a, float *b) { for (int i = 0; i < 64; i++) a[i] += b[i]; }' > sum.c
cp sum.c sum.cpp
gcc -shared -fPIC -Wl,-soname,libsci_gnu.so.6 -o libsci_gnu.so -x c /dev/null
./cc -O3 -shared -fPIC -o c.so sum.c
./CC -O3 -shared -fPIC -o cpp.so sum.cpp
`

// HPE Cray's compilers are wrappers named cc and CC. They add the libraries of loaded
// modules and the processor of the node, and the gates name both.
func TestCompilerWrappers(t *testing.T) {
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip("it needs gcc and g++")
	}
	build := exec.Command("sh", "-ec", wrapped)
	build.Dir = t.TempDir()
	must.Succeed(t, build.Run())
	for _, name := range []string{"c.so", "cpp.so"} {
		library := must.Get(os.ReadFile(filepath.Join(build.Dir, name)))(t)
		s := Subject{Artifact: wheelOf(t, library), Expect: recipe.Expect{Extensions: []string{"x/*.so"}, Gates: recipe.GateSettings{
			"elf-needed": neededSettings{Needed: []string{"libc.so.6"}}, "cpu-isa": cpuSettings{Allowed: []string{"x86-64"}},
		}}}
		for gate, want := range map[*Gate]string{&elfNeeded: "libsci_gnu.so.6", &cpuISA: "avx"} {
			v := gate.Check(context.Background(), s)
			check.That(t, v.Status == verdict.Fail && strings.Contains(v.Evidence, want), "%s, %s: %s: %s", name, gate.Name, v.Status, v.Evidence)
		}
	}
}
