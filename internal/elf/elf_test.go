package elf

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	librarySource = `
#include <math.h>
#include <stdio.h>
extern int absent(void) __attribute__((weak));
double given(double x) { if (absent) absent(); puts("x"); return cos(x); }
__attribute__((visibility("hidden"))) int kept(void) { return 1; }
`
	versionScript = "MINE_1.2 { global: given; local: *; };\n"
)

// compile builds a small library with gcc, as a wheel's extension is built.
func compile(t testing.TB) string {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("needs gcc")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.c"), librarySource)
	write(t, filepath.Join(dir, "a.map"), versionScript)
	out := filepath.Join(dir, "liba.so")
	cmd := exec.Command(gcc, "-shared", "-fPIC", "-O1", "-fno-builtin", "-o", out, "a.c",
		"-Wl,-soname,liba.so.1,-rpath,$ORIGIN/lib:/opt/x,--enable-new-dtags,--version-script,a.map,--no-as-needed", "-lm")
	cmd.Dir = dir
	if log, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("compiling: %v\n%s", err, log)
	}
	return out
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRead(t *testing.T) {
	file, err := os.Open(compile(t))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	got, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"libm.so.6", "libc.so.6"}, got.Needed); diff != "" {
		t.Errorf("Needed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"$ORIGIN/lib", "/opt/x"}, got.Runpath); diff != "" {
		t.Errorf("Runpath (-want +got):\n%s", diff)
	}
	if got.Soname != "liba.so.1" || got.Rpath != nil {
		t.Errorf("Soname %q, Rpath %q", got.Soname, got.Rpath)
	}
	if got.Floors["GLIBC"] == "" || strings.Contains(got.Machine, "EM_") {
		t.Errorf("Floors %v, Machine %q", got.Floors, got.Machine)
	}
	if diff := cmp.Diff([]Symbol{{Name: "given", Version: "MINE_1.2"}}, exportedCode(got)); diff != "" {
		t.Errorf("Exported (-want +got):\n%s", diff)
	}
	wantUndefined(t, got, "absent", "", true)
	wantUndefined(t, got, "cos", "libm.so.6", false)
	wantUndefined(t, got, "puts", "libc.so.6", false)
}

// exportedCode leaves out the symbols that stand for the versions themselves.
func exportedCode(f *File) []Symbol {
	return slices.DeleteFunc(slices.Clone(f.Exported), func(s Symbol) bool { return strings.HasPrefix(s.Name, "MINE_") })
}

func wantUndefined(t *testing.T, f *File, name, library string, weak bool) {
	t.Helper()
	i := slices.IndexFunc(f.Undefined, func(s Symbol) bool { return s.Name == name })
	if i < 0 {
		t.Errorf("%s is not among the undefined symbols %v", name, f.Undefined)
		return
	}
	s := f.Undefined[i]
	if s.Library != library || s.Weak != weak || strings.HasPrefix(s.Version, "GLIBC_") != (library != "") {
		t.Errorf("%s is %+v, want library %q, weak %v", name, s, library, weak)
	}
}

func TestReadRefuses(t *testing.T) {
	whole := library(part{".text", []byte("x")})
	tests := []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "too short"},
		{"text", bytes.Repeat([]byte("text "), 20), "wrong magic"},
		{"truncated", whole[:len(whole)-1], "section table"},
		{"no dynamic section", whole, "no dynamic section"},
		{"32 bits", append([]byte("\x7fELF\x01\x01"), whole[6:]...), "64-bit"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := Read(bytes.NewReader(test.data))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Read = %v, %v; want an error with %q", got, err, test.want)
			}
		})
	}
}

func TestReadRefusesEveryTruncation(t *testing.T) {
	whole, err := os.ReadFile(compile(t))
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) {
		if _, err := Read(bytes.NewReader(whole[:n])); err == nil {
			t.Fatalf("the first %d of %d bytes are read without an error", n, len(whole))
		}
	}
}

// Records that overlap would let a small table stand for any number of versions.
func TestVersionTableIsBounded(t *testing.T) {
	overlap := pack(uint16(1), uint16(65535), uint32(0), uint32(16), uint32(0), make([]byte, 16))
	table := &versionTable{overlap, "\x00", map[uint16]version{}, maxVersions}
	if err := table.needs(); !errors.Is(err, errVersions) {
		t.Errorf("a record repeated 65535 times: %v", err)
	}
	outside := pack(uint16(1), uint16(0), uint16(2), uint16(1), uint32(0), ^uint32(0), uint32(0))
	table = &versionTable{outside, "\x00", map[uint16]version{}, maxVersions}
	if err := table.definitions(); !errors.Is(err, errVersions) {
		t.Errorf("a record outside the table: %v", err)
	}
}

func TestFloors(t *testing.T) {
	versions := map[uint16]version{}
	for i, name := range []string{
		"GLIBC_2.2.5", "GLIBC_2.38", "GLIBC_2.4", "GLIBC_PRIVATE", "GLIBC_ABI_DT_RELR",
		"GLIBCXX_3.4", "GLIBCXX_3.4.32", "GLIBCXX_3.4.9", "CXXABI_1.3.13", "CXXABI_1.3.8", "CXXABI_FLOAT128",
		"OPENSSL_1_1_0", "MLX5_1.25", "libcudart.so.12", "hip_4.2", "_1", "", "API_10_2", "API_19_2", "MY_LIB_2.1",
	} {
		versions[uint16(i+2)] = version{name, "lib.so"}
	}
	versions[100] = version{name: "MINE_9"} // defined here, so nothing to need
	f := &File{Floors: map[string]string{}}
	f.setFloors(versions)
	want := map[string]string{"GLIBC": "2.38", "GLIBCXX": "3.4.32", "CXXABI": "1.3.13", "MLX5": "1.25", "hip": "4.2", "MY_LIB": "2.1"}
	if diff := cmp.Diff(want, f.Floors); diff != "" {
		t.Errorf("Floors (-want +got):\n%s", diff)
	}
}

func TestCompareVersions(t *testing.T) {
	ascending := []string{"", "1", "2.2.5", "2.9", "2.10", "2.38", "3.4", "3.4.9", "3.4.32", "99999999999999999999999"}
	for i, a := range ascending {
		for j, b := range ascending {
			if got, want := CompareVersions(a, b), i-j; (got < 0) != (want < 0) || (got > 0) != (want > 0) {
				t.Errorf("CompareVersions(%q, %q) = %d", a, b, got)
			}
		}
	}
	if CompareVersions("2.038", "2.38") != 0 {
		t.Error("leading zeros count")
	}
}

func FuzzRead(f *testing.F) {
	if _, err := exec.LookPath("gcc"); err == nil {
		whole, err := os.ReadFile(compile(f))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(whole)
	}
	f.Add(library(part{".text", []byte("x")}))
	f.Fuzz(func(t *testing.T, file []byte) {
		got, err := Read(bytes.NewReader(file))
		if err == nil && got == nil {
			t.Error("neither an error nor a file")
		}
	})
}
