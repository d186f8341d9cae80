package gate

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/internal/files/elf"
	"builder/internal/gates/verdict"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestWantedOf(t *testing.T) {
	f := &elf.File{Needed: []string{"libc.so.6"}, Undefined: []elf.Symbol{
		{Name: "memcpy", Version: "GLIBC_2.14"}, {Name: "absent", Weak: true}, {Name: "_ITM_registerTMCloneTable", Weak: true}, {Name: "ncclSend"},
	}}
	want := wanted{[]string{"libc.so.6"}, [][2]string{{"memcpy", "GLIBC_2.14"}, {"ncclSend", ""}}}
	check.Same(t, "values of a library", want, wantedOf(f, false))
	want.Symbols = slices.Insert(want.Symbols, 1, [2]string{"absent", ""})
	check.Same(t, "values of an extension", want, wantedOf(f, true))
}

// The script receives lists, never null.
func TestNothingWantedIsAList(t *testing.T) {
	got, err := json.Marshal(wantedOf(&elf.File{}, true))
	check.That(t, err == nil && string(got) == `{"needed":[],"symbols":[]}`, "%s, %v", got, err)
}

func TestResolved(t *testing.T) {
	r := resolved{
		Unloaded: map[string]string{"libb.so": "not found", "liba.so": "too old"},
		Missing:  []string{"y", "x@V_1"}, Found: map[string]int{"libm.so.6": 2, "libc.so.6": 7},
	}
	want := []string{
		"x.so needs liba.so, which cannot be loaded: too old", "x.so needs libb.so, which cannot be loaded: not found",
		"x.so requires 2 symbols missing from all its libraries: x@V_1 y",
	}
	check.Same(t, "faults", want, r.problems("x.so"))
	if got, want := r.evidence("x.so", 9), "x.so: all 9 symbols found, 7 in libc.so.6, 2 in libm.so.6"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	problems := (resolved{}).problems("x.so")
	check.That(t, problems == nil, "%q", problems)
}

// A library without undefined symbols passes if it exports some: its dynamic symbols
// are intact.
func TestALibraryThatStandsAlone(t *testing.T) {
	s := horovodROCm()
	s.library().Undefined = nil
	for _, v := range s.verdicts(t) {
		check.That(t, v.Gate != "elf-symbols" || v.Status == verdict.Pass && strings.Contains(v.Evidence, "requires no symbol"), "%+v", v)
	}
}

// The wheel of an MPI installs its library into the environment's folder lib. The run
// path of an extension leads there, and it is no folder of packages.
func TestLibraryOfTheEnvironmentIsFound(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	libm, err := filepath.Glob("/lib/*/libm.so.6")
	if err != nil || len(libm) == 0 {
		t.Skip("there is no libm.so.6 to copy")
	}
	dir := t.TempDir()
	data, err := os.ReadFile(libm[0])
	must.Succeed(t,
		err, os.Mkdir(filepath.Join(dir, "bin"), 0o755), os.Mkdir(filepath.Join(dir, "lib"), 0o755),
		os.Symlink(python, filepath.Join(dir, "bin", "python")),
		os.WriteFile(filepath.Join(dir, "pyvenv.cfg"), []byte("home = "+filepath.Dir(python)+"\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "lib", "libown.so.1"), data, 0o644),
		os.WriteFile(filepath.Join(dir, "resolve.py"), []byte(script("resolve.py")), 0o644),
		os.WriteFile(filepath.Join(dir, "question.json"), []byte(`{"needed": ["libown.so.1", "libnone.so.1"], "symbols": [["cos", ""], ["none", ""]]}`), 0o644),
	)
	out, err := exec.Command(filepath.Join(dir, "bin", "python"), filepath.Join(dir, "resolve.py"), filepath.Join(dir, "question.json")).CombinedOutput()
	must.Hold(t, err == nil, "%v\n%s", err, out)
	var got resolved
	err = json.Unmarshal(out, &got)
	must.Hold(t, err == nil, "%v\n%s", err, out)
	check.That(t, got.Found["libown.so.1"] == 1 && got.Unloaded["libown.so.1"] == "" && got.Unloaded["libnone.so.1"] != "" &&
		slices.Equal(got.Missing, []string{"none"}), "got %+v", got)
}
