package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const standIn = "testdata/wheels/nvidia_nccl_cu13-2.29.7+stand.in-py3-none-any.whl"

func TestFlagsFirst(t *testing.T) {
	verbs := newApp([]string{"builder"}, configuration{}, io.Discard, io.Discard).Commands
	for typed, want := range map[string]string{
		"builder diagnose - --exit-code":        "builder diagnose --exit-code -- -",
		"builder store import x.tar --json":     "builder store import --json -- x.tar",
		"builder help plan tiny --recipes site": "builder help plan tiny --recipes site",
		"builder plan horovod --rocm 5.7":       "builder plan horovod --rocm 5.7",
		"builder gate a --gpus 2 b --json":      "builder gate --gpus 2 --json -- a b",
		"builder gate --gpus=2 a":               "builder gate --gpus=2 -- a",
		"builder gate a -- --gpus":              "builder gate -- a --gpus",
		"builder gate a --gpus":                 "builder gate a --gpus",
		"builder gate --frob a":                 "builder gate --frob -- a",
		"builder gate -only x --env A=1 a":      "builder gate -only x --env A=1 -- a",
		"builder gate":                          "builder gate",
		"builder run horovod --out gate --json": "builder run horovod --out gate --json",
		"builder":                               "builder",
	} {
		if got := strings.Join(flagsFirst(strings.Fields(typed), verbs), " "); got != want {
			t.Errorf("%s: got %s, want %s", typed, got, want)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{"8": 8, "64K": 64 << 10, "128m": 128 << 20, "8G": 8 << 30, "1024G": 1 << 40} {
		if got, err := parseBytes(text); err != nil || got != want {
			t.Errorf("%s: got %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "7", "-8", "8T", "8 G", "1.5G", "1025G", "99999999999999999999", "K"} {
		if got, err := parseBytes(text); err == nil {
			t.Errorf("%q: got %d", text, got)
		}
	}
}

func TestLibraryIn(t *testing.T) {
	for _, c := range []struct{ file, promised, want string }{
		{standIn, "", "nvidia/nccl/lib/libnccl.so.2"},
		{standIn, "nvidia/nccl/lib/libnccl.so.2", "nvidia/nccl/lib/libnccl.so.2"},
		{standIn, "nvidia/nccl/lib/libnccl.so.3", ""},
		{"gate_test.go", "", ""},
		{"nowhere.whl", "", ""},
	} {
		if got := libraryIn(c.file, c.promised); got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}

func TestFindRival(t *testing.T) {
	scratch := t.TempDir()
	r, err := findRival(standIn, scratch)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(r.dir, "libnccl.so.2"))
	if err != nil || string(data) != "in the place of a library\n" || r.name != filepath.Base(standIn) {
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
	if r, err := findRival(site, scratch); err != nil || r.dir != lib {
		t.Errorf("below a directory: got %+v, %v", r, err)
	}
}

// TestProgramsOfAWheel: a wheel without programs is refused, and a wheel is
// unpacked below the scratch directory alone.
func TestProgramsOfAWheel(t *testing.T) {
	scratch := t.TempDir()
	if _, err := programs(standIn, scratch); err == nil || !strings.Contains(err.Error(), "there is no program in") {
		t.Errorf("got %v", err)
	}
	if err := unpack(standIn, func(string) bool { return true }, filepath.Join(scratch, "programs")); err != nil {
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
	if want := []string{"METADATA", "RECORD", "WHEEL", "libnccl.so.2"}; !slices.Equal(names, want) {
		t.Errorf("got %v", names)
	}
}
