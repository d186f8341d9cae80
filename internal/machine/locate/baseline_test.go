package locate

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLibraryIn(t *testing.T) {
	for _, c := range []struct{ file, promised, want string }{
		{ncclWheel, "", "nvidia/nccl/lib/libnccl.so.2"},
		{ncclWheel, "nvidia/nccl/lib/libnccl.so.2", "nvidia/nccl/lib/libnccl.so.2"},
		{ncclWheel, "nvidia/nccl/lib/libnccl.so.3", ""},
		{"baseline_test.go", "", ""},
		{"nowhere.whl", "", ""},
	} {
		if got := LibraryIn(c.file, c.promised); got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}

func TestFindBaseline(t *testing.T) {
	scratch := t.TempDir()
	r, err := FindBaseline(ncclWheel, scratch)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(r.Dir, "libnccl.so.2"))
	if err != nil || string(data) != "library" || r.Name != filepath.Base(ncclWheel) {
		t.Errorf("got %q in %+v, %v", data, r, err)
	}
	site := t.TempDir()
	lib := filepath.Join(site, "nvidia", "nccl", "lib")
	if err := os.MkdirAll(lib, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(lib, "librccl.so.1"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if r, err := FindBaseline(site, scratch); err != nil || r.Dir != lib {
		t.Errorf("below a directory: got %+v, %v", r, err)
	}
}

// A wheel without programs is refused, and a wheel is unpacked only below the scratch
// directory.
func TestProgramsOfAWheel(t *testing.T) {
	scratch := t.TempDir()
	if _, err := TestsDir(ncclWheel, scratch); err == nil || !strings.Contains(err.Error(), "no program in") {
		t.Errorf("got %v", err)
	}
	if err := Unpack(ncclWheel, func(string) bool { return true }, filepath.Join(scratch, "programs")); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Join(scratch, "programs"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if want := []string{"METADATA", "RECORD", "WHEEL", "libibverbs.so.1", "libnccl.so.2", "nccl.h"}; !slices.Equal(names, want) {
		t.Errorf("got %v", names)
	}
}
