package elf

import (
	"bytes"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/elftest"
	"builder/test/kit/must"
)

// useOf returns the use of the first kernel of a bundle.
func useOf(t *testing.T, bundle []byte) Use {
	t.Helper()
	functions, err := deviceFunctions(bytes.NewReader(library(part{hipFatbin, bundle})))
	must.Succeed(t, err)
	return functions[0].Use
}

// clang 19 wrote the bundle, and the assembler of LLVM 14 the object. llvm-readobj --notes
// prints the same numbers.
func TestUseOfKernels(t *testing.T) {
	check.Same(t, "use in a bundle of clang", Use{VGPRs: 2, SGPRs: 2, Code: 40}, useOf(t, testdata(t, "clang19-compressed.hip_fatbin")))
	spills := elftest.Bundle(amdCode(gfx90a, testdata(t, "llvm14-spills.gfx90a.o")))
	check.Same(t, "use in an object", Use{VGPRs: 128, SGPRs: 106, Spilled: 70007, LDS: 65000, Scratch: 300, Code: 4}, useOf(t, spills))
}

func TestDamagedMetadata(t *testing.T) {
	object := testdata(t, "llvm14-spills.gfx90a.o")
	for name, c := range map[string]struct{ old, new, want string }{
		"unknown kind":  {"\x82\xaeamdhsa", "\xc1\xaeamdhsa", "its metadata: it has a value of kind 0xc1"},
		"short text":    {"\xd9\x2ba_name", "\xd9\xffa_name", "its metadata: "},
		"endless list":  {"\x92\x01\x01", "\xdd\xff\xff", "its metadata: it ends within a value"},
		"too deep":      {"\x82\xaeamdhsa.kernels", strings.Repeat("\x91", 16), "its metadata: it is nested deeper than 16"},
		"short owner":   {"\x07\x00\x00\x00\x88\x01\x00\x00\x20\x00\x00\x00AMDGPU", "\x01\x00\x00\x00\x00\x00\x00\x00\x20\x00\x00\x00AMDGPU", "does not fit"},
		"longer a note": {"\x07\x00\x00\x00\x88\x01", "\x07\x00\x00\x00\xff\x7f", "its metadata: a note does not fit into its section"},
	} {
		damaged := bytes.Replace(object, []byte(c.old), []byte(c.new), 1)
		check.That(t, !bytes.Equal(damaged, object), "%s: nothing to replace", name)
		got, err := deviceFunctions(bytes.NewReader(library(part{hipFatbin, elftest.Bundle(amdCode(gfx90a, damaged))})))
		check.Fails(t, err, c.want, got)
	}
}
