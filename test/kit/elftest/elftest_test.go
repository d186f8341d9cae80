package elftest_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"runtime"
	"testing"

	"builder/internal/files/elf"
	"builder/test/kit/check"
	"builder/test/kit/elftest"
	"builder/test/kit/must"
)

// One file can hold two libraries: the section table describes one, and the loader runs
// the other. Every reader must refuse it.
func TestTwoLibrariesInOneFileAreRefused(t *testing.T) {
	returns := func(n byte) []byte { return []byte{0xb8, n, 0, 0, 0, 0xc3} }
	good := elftest.Library{
		Soname: "libgood.so", Needed: []string{"libc.so.6"}, Texts: []string{"the good one"},
		Exported: []elftest.Symbol{{Name: "which", Code: returns(1)}},
		Sections: []elftest.Section{elftest.HIP("gfx90a"), elftest.CUDA("sm_90")},
	}
	evil := elftest.Library{
		Soname: "libevil.so", Needed: []string{"libc.so.6", "libm.so.6"}, Rpath: "/home/x",
		Exported: []elftest.Symbol{{Name: "which", Code: returns(13)}},
	}
	for name, file := range map[string][]byte{"beside": elftest.Two(evil, good, false), "mapped": elftest.Two(evil, good, true)} {
		t.Run(name, func(t *testing.T) {
			out := run(t, file, "print(l.which())")
			must.Hold(t, out == "13\n", "the loader says %q: this is not the attack", out)
			r := bytes.NewReader(file)
			got, err := elf.Read(r)
			check.Fails(t, err, "the loader", fmt.Sprintf("it is read as %+v", got))
			targets, err := elf.DeviceTargets(r)
			check.That(t, err != nil, "its device code is %v", targets)
			err = elf.EachText(r, func(s string) { t.Errorf("its text is %q", s) })
			check.That(t, err != nil, "its texts are read")
			uses, err := elf.CPUUses(r)
			check.That(t, err != nil, "its code is read: %v", uses)
		})
	}
}

// The loader writes the code of a function, and tools see other code in the file.
func TestCodeThatTheLoaderWritesIsRefused(t *testing.T) {
	file := elftest.Library{
		Soname: "libwritten.so", Needed: []string{"libc.so.6"}, Undefined: []elftest.Symbol{{Name: "absent", Weak: true}},
		Exported:    []elftest.Symbol{{Name: "which", Code: []byte{0xb8, 1, 0, 0, 0, 0xc3, 0x90, 0x90}}},
		Relocations: []elftest.Relocation{{Function: "which", Symbol: "absent", Code: [8]byte{0xb8, 13, 0, 0, 0, 0xc3, 0x90, 0x90}}},
	}.Bytes()
	out := run(t, file, "print(l.which())")
	must.Hold(t, out == "13\n", "the loader says %q: this is not the attack", out)
	_, err := elf.Read(bytes.NewReader(file))
	check.Fails(t, err, `the loader writes to section ".text" at address`, "it is read")
	_, err = elf.CPUUses(bytes.NewReader(file))
	check.Fails(t, err, `the loader writes to section ".text" at address`, "its code is read")
}

// run loads a library with the loader of this host.
func run(t *testing.T, library []byte, script string) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil || runtime.GOARCH != "amd64" {
		t.Skip("needs python3 on x86_64")
	}
	file := must.File(t, "library.so", library)
	out, err := exec.Command(python, "-c", "import ctypes, sys\nl = ctypes.CDLL(sys.argv[1])\n"+script, file).CombinedOutput()
	must.Hold(t, err == nil, "%v: %s", err, out)
	return string(out)
}
