package locate

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/files/elf"
	"builder/internal/machine/bench"
)

// The wheels in testdata contain short texts in the layout of real wheels.
const (
	ncclWheel  = "testdata/nvidia_nccl_cu13-2.29.7-py3-none-any.whl"
	testsWheel = "testdata/nccl_tests-2.17.6-py3-none-any.whl"
)

// place changes to a new directory and puts wheels or texts into it.
func place(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if strings.HasSuffix(text, ".whl") {
			data, err := os.ReadFile(text)
			if err != nil {
				t.Fatal(err)
			}
			text = string(data)
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

func TestLibraries(t *testing.T) {
	place(t, map[string]string{
		"dir/libnccl.so.2": "vendor", "ours-1-py3-none-any.whl": ncclWheel, "tests-1-py3-none-any.whl": testsWheel,
		"rocm/librccl.so.1": "", "torn-1-py3-none-any.whl": "PK", "dir/libnccl.so": "", "equal=sign/libnccl.so.2": "vendor",
	})
	scratch := t.TempDir()
	got, soname, err := Libraries([]string{"a=dir", "b=dir/libnccl.so.2", "c=ours-1-py3-none-any.whl", "d=equal=sign"}, scratch, "")
	if err != nil || soname != "libnccl.so.2" || len(got) != 4 {
		t.Fatalf("%+v, %q, %v", got, soname, err)
	}
	if got[0] != (bench.Library{Label: "a", Soname: soname, Dir: got[1].Dir, Path: "dir", SHA256: got[1].SHA256}) || got[3].SHA256 != got[0].SHA256 {
		t.Errorf("the same library by two names: %+v", got[:2])
	}
	for _, l := range got {
		if _, err := os.Stat(filepath.Join(l.Dir, soname)); err != nil || !filepath.IsAbs(l.Dir) {
			t.Errorf("%+v: %v", l, err)
		}
	}
	if _, err := os.Stat(filepath.Join(got[2].Dir, "../../../nvidia_nccl_cu13.libs/libibverbs.so.1")); err != nil {
		t.Errorf("what was laid beside the packages is not there: %v", err)
	}
	for arg, want := range map[string]string{
		"a":                          `"a" is neither LABEL=PATH`,
		"=dir":                       "is neither LABEL=PATH",
		"a=":                         "is neither LABEL=PATH",
		"a=nowhere":                  "no such file",
		"a=.":                        "the directory . has no libnccl.so.2 or librccl.so.1",
		"a=dir/libnccl.so":           "dir/libnccl.so is neither",
		"a=torn-1-py3-none-any.whl":  "truncated",
		"a=tests-1-py3-none-any.whl": "0 directories of the wheel tests-1-py3-none-any.whl hold the wanted files, expected 1",
	} {
		if got, _, err := Libraries([]string{arg}, t.TempDir(), ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want %q", arg, got, err, want)
		}
	}
	if _, _, err := Libraries([]string{"a=dir", "b=rocm"}, scratch, ""); err == nil || !strings.Contains(err.Error(), "no program loads both libnccl.so.2 and librccl.so.1") {
		t.Errorf("libraries of two kinds: %v", err)
	}
}

func TestPrograms(t *testing.T) {
	ls, err := exec.LookPath("ls")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(ls)
	if err != nil {
		t.Fatal(err)
	}
	place(t, map[string]string{
		"tests-1-py3-none-any.whl": testsWheel, "nccl-1-py3-none-any.whl": ncclWheel,
		"dir/all_reduce_perf": "#!", "static/all_reduce_perf": string(code), "torn/all_reduce_perf": "\x7fELF",
	})
	for _, from := range []string{"tests-1-py3-none-any.whl", "dir"} {
		got, err := Programs(from, []string{"all_reduce"}, "libnccl.so.2", filepath.Join(t.TempDir(), "new"))
		if err != nil || len(got) != 1 || got[0].Collective != "all_reduce" || !filepath.IsAbs(got[0].Path) {
			t.Fatalf("%s: %+v, %v", from, got, err)
		}
		if info, err := os.Stat(got[0].Path); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v, %v", from, info, err)
		}
	}
	for from, want := range map[string]string{
		"nowhere":                  "no such file",
		"dir/all_reduce_perf":      "neither a directory nor a wheel",
		"nccl-1-py3-none-any.whl":  "0 directories of the wheel",
		"tests-1-py3-none-any.whl": "has no program alltoall_perf",
		"static":                   "all_reduce_perf does not load libnccl.so.2",
		"torn":                     "reading all_reduce_perf",
	} {
		if got, err := Programs(from, []string{"all_reduce", "alltoall"}, "libnccl.so.2", filepath.Join(t.TempDir(), "new")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want %q", from, got, err, want)
		}
	}
}

func TestLoadFault(t *testing.T) {
	const nccl = "libnccl.so.2"
	for want, f := range map[string]elf.File{
		"":               {Needed: []string{"libc.so.6", nccl}, Runpath: []string{"/usr/lib"}},
		"does not load":  {Needed: []string{"libc.so.6"}},
		"the RPATH /a:b": {Needed: []string{nccl}, Rpath: []string{"/a", "b"}},
	} {
		if got := loadFault(&f, nccl); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%+v: %q, want %q", f, got, want)
		}
	}
}
