package locate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// ncclWheel has a text as its library.
const ncclWheel = "testdata/nvidia_nccl_cu13-2.29.7-py3-none-any.whl"

func TestLibraryIn(t *testing.T) {
	for _, c := range []struct{ file, promised, want string }{
		{ncclWheel, "", "nvidia/nccl/lib/libnccl.so.2"},
		{ncclWheel, "nvidia/nccl/lib/libnccl.so.2", "nvidia/nccl/lib/libnccl.so.2"},
		{ncclWheel, "nvidia/nccl/lib/libnccl.so.3", ""},
		{"locate_test.go", "", ""},
		{"nowhere.whl", "", ""},
	} {
		check.Same(t, fmt.Sprint(c), c.want, LibraryIn(c.file, c.promised))
	}
}

func TestFindLibrary(t *testing.T) {
	scratch := t.TempDir()
	site := t.TempDir()
	lib, cell := filepath.Join(site, "nvidia", "nccl", "lib"), filepath.Join(site, "cell")
	for _, dir := range []string{lib, cell} {
		must.Succeed(t, os.MkdirAll(dir, 0o755))
	}
	data := must.Get(os.ReadFile(ncclWheel))(t)
	for path, content := range map[string][]byte{filepath.Join(lib, "librccl.so.1"): nil, filepath.Join(cell, filepath.Base(ncclWheel)): data, filepath.Join(site, "other.so"): nil} {
		must.Succeed(t, os.WriteFile(path, content, 0o644))
	}
	for name, place := range map[string]string{"wheel": ncclWheel, "cell": cell} {
		l := must.Get(FindLibrary(place, scratch, name))(t)
		data, err := os.ReadFile(filepath.Join(l.Dir, "libnccl.so.2"))
		check.That(t, err == nil && string(data) == "library" && l.Name == filepath.Base(place), "got %q in %+v, %v", data, l, err)
	}
	l, err := FindLibrary(site, scratch, "below")
	check.That(t, err == nil && l.Dir == lib, "below a directory: got %+v, %v", l, err)
	l, err = FindLibrary(filepath.Join(lib, "librccl.so.1"), scratch, "file")
	check.That(t, err == nil && l.Dir == filepath.Join(scratch, "file") && isFile(filepath.Join(l.Dir, "librccl.so.1")), "a file: got %+v, %v", l, err)
	for place, says := range map[string]string{filepath.Join(site, "other.so"): "other.so", "nowhere": "nowhere", scratch + "/wheel/..": "not found in"} {
		_, err := FindLibrary(place, scratch, "bad-"+filepath.Base(place))
		check.Fails(t, err, says, place)
	}
}

// A wheel without programs is refused, and a wheel is unpacked only below the scratch
// directory.
func TestProgramsOfAWheel(t *testing.T) {
	scratch := t.TempDir()
	_, err := TestsDir(ncclWheel, scratch)
	check.Fails(t, err, "no program in")
	must.Succeed(t, Unpack(ncclWheel, func(string) bool { return true }, filepath.Join(scratch, "programs")))
	left := must.Get(os.ReadDir(filepath.Join(scratch, "programs")))(t)
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	info, err := os.Stat(filepath.Join(scratch, "programs", "libnccl.so.2"))
	check.That(t, err == nil && info.Mode().Perm() == 0o755, "got %v, %v", info, err)
	err = Unpack(ncclWheel, func(string) bool { return true }, filepath.Join(scratch, "programs"))
	check.That(t, err != nil, "a file was overwritten")
	want := []string{"METADATA", "RECORD", "WHEEL", "libibverbs.so.1", "libnccl.so.2", "nccl.h"}
	check.That(t, slices.Equal(names, want), "got %v", names)
}
