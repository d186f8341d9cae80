package elf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/elftest"
	"builder/test/kit/must"
)

// functionNames returns functions as "sm_90 name", and kernels as "sm_90 name()".
func functionNames(t *testing.T, file []byte) []string {
	t.Helper()
	functions := must.Get(deviceFunctions(bytes.NewReader(file)))(t)
	var names []string
	for _, f := range functions {
		call := ""
		if f.Kernel {
			call = "()"
		}
		names = append(names, f.Target.String()+" "+f.Name+call)
	}
	return names
}

// Both are long and repetitive, and therefore worth compressing.
var (
	cubin = codeObject(elf.EM_CUDA, cudaKernel("allreduce_kernel"), cudaFunction("allreduce_function"),
		cudaFunction("allreduce_function"), outside("allreduce_outside"), symbol{"allreduce_data", elf.STT_OBJECT, cudaEntry, 1, 64})
	ptx = []byte(".version 9.0\n.target sm_90\n.visible .func helper()\n{\n}\n.visible .entry _Z5firstPf(\n.param .u64 p\n)\n{ ret; }\n" +
		"// .entry comment(\n.weak .entry $second\n(\n)\n.entry third() { call.entry no(); }\n.entry 4()\n")
)

func TestDeviceFunctions(t *testing.T) {
	both := []string{"sm_90 allreduce_function", "sm_90 allreduce_kernel()"}
	other := codeObject(elf.EM_CUDA, cudaKernel("other"))
	cuda124 := append(append(bytes.Clone(cubin[:20]), 124, 0, 0, 0), cubin[24:]...) // e_version
	amdObject := codeObject(elf.EM_AMDGPU, amdFunction("k"), amdFunction("f"), amdObject("k.kd", 64),
		amdObject("data", 64), amdObject("small.kd", 8), amdObject(".kd", 64), outside("g"), amdFunction(""))
	for _, test := range []struct {
		name  string
		parts []part
		want  []string
	}{
		{"none", []part{{".text", []byte("x")}}, nil},
		{"stored", []part{{loaded, elftest.Region(entryOf(kindCubin, 90, 0x11, cubin))}}, both},
		{"of CUDA 12.4", []part{{loaded, elftest.Region(entryOf(kindCubin, 90, 0, cuda124))}}, both},
		{"LZ4", []part{{loaded, elftest.Region(entryOf(kindCubin, 90, flagLZ4, cubin))}}, both},
		{"zstd", []part{{loaded, elftest.Region(entryOf(kindCubin, 90, flagZstd, cubin))}}, both},
		{
			"each once",
			[]part{{loaded, append(elftest.Region(entryOf(kindCubin, 90, 0, cubin), entryOf(kindCubin, 90, 0, other)), elftest.Region(entryOf(kindCubin, 90, flagZstd, cubin))...)}},
			append(both, "sm_90 other()"),
		},
		{
			"targets",
			[]part{{loaded, elftest.Region(entryOf(kindCubin, 100, flagFamily, labelled(other, 100)), entryOf(kindCubin, 80, 0, labelled(other, 80)))}},
			[]string{"sm_100f other()", "sm_80 other()"},
		},
		{
			"PTX",
			[]part{{loaded, elftest.Region(entryOf(kindPTX, 90, flagLZ4, bytes.Repeat(ptx, 2)))}},
			[]string{"compute_90 $second()", "compute_90 _Z5firstPf()", "compute_90 third()"},
		},
		{"relocatable alone", []part{{relocatable, elftest.Region(entryOf(kindCubin, 90, 0, cubin))}}, both},
		{
			"relocatable, linked for one target",
			[]part{
				{relocatable, elftest.Region(entryOf(kindCubin, 80, 0, labelled(other, 80)), entryOf(kindCubin, 90, 0, cubin), entryOf(kindPTX, 90, 0, ptx))},
				{loaded, elftest.Region(entryOf(kindCubin, 90, 0, other))},
			},
			[]string{"compute_90 $second()", "compute_90 _Z5firstPf()", "compute_90 third()", "sm_80 other()", "sm_90 other()"},
		},
		{"AMD", []part{{".hip_fatbin", elftest.Bundle(amdCode(host, []byte("host")), amdCode(gfx942, amdObject))}}, []string{"gfx942 f", "gfx942 k()"}},
		{"AMD, packed", []part{{".hip_fatbin", elftest.Compress(3, 1, elftest.Bundle(amdCode(gfx942, amdObject)))}}, []string{"gfx942 f", "gfx942 k()"}},
	} {
		t.Run(test.name, func(t *testing.T) { check.Same(t, "functions", test.want, functionNames(t, library(test.parts...))) })
	}
}

func testdata(t *testing.T, name string) []byte {
	t.Helper()
	return must.Get(os.ReadFile("testdata/" + name))(t)
}

// nvcc 13.0.88 wrote the files for sm_90 and compute_90, packed with
// --compress-mode=default and speed. clang 19 wrote the AMD file.
func TestDeviceFunctionsOfCompilers(t *testing.T) {
	nvcc := []string{
		"compute_90 _Z5scaleIfEvPT_()", "compute_90 _ZN36_GLOBAL__N__1840428d_4_a_cu_1efa1a856hiddenEPi()", "compute_90 plain()",
		"sm_90 $plain$_Z5twicef", "sm_90 _Z5scaleIfEvPT_()", "sm_90 _ZN36_GLOBAL__N__1840428d_4_a_cu_1efa1a856hiddenEPi()", "sm_90 plain()",
	}
	for _, test := range []struct {
		file, section string
		want          []string
	}{
		{"nvcc13-zstd.nv_fatbin", loaded, nvcc},
		{"nvcc13-lz4.nv_fatbin", loaded, nvcc},
		{"clang19-compressed.hip_fatbin", ".hip_fatbin", []string{
			"gfx1100 _Z1kPf()", "gfx1100 _Z2k2Pf()", "gfx90a:xnack+ _Z1kPf()", "gfx90a:xnack+ _Z2k2Pf()", "gfx942 _Z1kPf()", "gfx942 _Z2k2Pf()",
		}},
	} {
		check.Same(t, test.file, test.want, functionNames(t, library(part{test.section, testdata(t, test.file)})))
	}
}

// nvcc -rdc compiled a kernel with a call to one of two functions. The device linker
// removed the other.
func TestDeviceFunctionsOfTheDeviceLinker(t *testing.T) {
	linked, compiled := part{loaded, testdata(t, "nvcc13-rdc.nv_fatbin")}, part{relocatable, testdata(t, "nvcc13-rdc.nv_relfatbin")}
	want := []string{"sm_90 _Z4usedPf", "sm_90 _Z5firstPf()"}
	check.Same(t, "functions", want, functionNames(t, library(compiled, linked)))
	want = []string{"sm_90 _Z4usedPf", "sm_90 _Z5firstPf()", "sm_90 _Z6unusedPf"}
	check.Same(t, "functions without the device linker's", want, functionNames(t, library(compiled)))
}

func TestDeviceFunctionsRefuses(t *testing.T) {
	// claim returns an entry with an edited header.
	claim := func(plain []byte, flags uint64, edit func(*entryHeader)) []byte {
		raw := entryOf(kindCubin, 90, flags, plain)
		var h entryHeader
		must.Succeed(t, binary.Read(bytes.NewReader(raw), binary.LittleEndian, &h))
		edit(&h)
		return elftest.Region(append(pack(h), raw[64:]...))
	}
	zeros := make([]byte, 10<<20)

	for _, test := range []struct {
		name string
		data []byte
		want string
	}{
		{"truncated entry", elftest.Region(entryOf(kindCubin, 90, 0, cubin))[:200], "unexpected EOF"},
		{"truncated LZ4", elftest.Region(entryOf(kindCubin, 90, flagLZ4, cubin))[:200], "unexpected EOF"},
		{"truncated zstd", elftest.Region(entryOf(kindCubin, 90, flagZstd, cubin))[:200], "unexpected EOF"},
		{"unknown compression", claim(cubin, flagZstd, func(h *entryHeader) { h.Flags = 1 << 14 }), "its compression is unknown"},
		{"two compressions", claim(cubin, flagZstd, func(h *entryHeader) { h.Flags |= flagLZ4 }), "its compression is unknown"},
		{"other compression", claim(cubin, flagZstd, func(h *entryHeader) { h.Flags = flagLZ4 }), "unpacking"},
		{"LZ4 unpacks to less", claim(cubin, flagLZ4, func(h *entryHeader) { h.Unpacked++ }), "unpacked, expected"},
		{"LZ4 unpacks to more", claim(cubin, flagLZ4, func(h *entryHeader) { h.Unpacked-- }), "unpacking"},
		{"zstd unpacks to less", claim(cubin, flagZstd, func(h *entryHeader) { h.Unpacked++ }), "unpacked, expected"},
		{"zstd unpacks to more", claim(cubin, flagZstd, func(h *entryHeader) { h.Unpacked-- }), "unpacking"},
		{"unpacks to nothing", claim(cubin, flagLZ4, func(h *entryHeader) { h.Unpacked = 0 }), "to nothing"},
		{"packed is larger than the entry", claim(cubin, flagZstd, func(h *entryHeader) { h.Packed = uint32(h.Size) + 1 }), "are packed"},
		{"bomb", elftest.Region(entryOf(kindCubin, 90, flagZstd, zeros)), "above the limit"},
		{"large", claim(cubin, flagZstd, func(h *entryHeader) { h.Unpacked = maxObject + 1 }), "above the limit"},
		{"no ELF", elftest.Region(entryOf(kindCubin, 90, 0, make([]byte, 100))), "bad magic number"},
		{"no PTX", elftest.Region(entryOf(kindPTX, 90, 0, make([]byte, 100))), "it is not PTX"},
		{"another machine", elftest.Region(entryOf(kindCubin, 90, 0, codeObject(elf.EM_AMDGPU))), "EM_AMDGPU"},
		{"the code of another target", elftest.Region(entryOf(kindCubin, 80, 0, cubin)), "code for sm_80: it is code for sm_90"},
	} {
		got, err := deviceFunctions(bytes.NewReader(library(part{loaded, test.data})))
		check.Fails(t, err, test.want, test.name, got)
	}
}

// AMD's runtime goes by the number in the code, and not by the label of the bundle.
func TestAMDCodeUnderTheLabelOfAnother(t *testing.T) {
	for id, says := range map[string]string{
		"hip-amdgcn-amd-amdhsa-gfx90a:xnack+": "code for gfx90a:xnack+: its flags name the target 0x4c gfx942",
		"hip-amdgcn-amd-amdhsa-gfx1310":       "code for gfx1310: its flags name the target 0x4c gfx942",
	} {
		_, err := deviceFunctions(bytes.NewReader(library(part{hipFatbin, elftest.Bundle(amdCode(id, codeObject(elf.EM_AMDGPU)))})))
		check.Fails(t, err, says)
	}
}

func FuzzDeviceFunctions(f *testing.F) {
	amd := codeObject(elf.EM_AMDGPU, amdFunction("k"), amdObject("k.kd", 64))
	var files [][]byte
	for _, p := range []part{
		{loaded, elftest.Region(entryOf(kindCubin, 90, 0, cubin), entryOf(kindPTX, 90, 0, ptx))},
		{loaded, elftest.Region(entryOf(kindCubin, 90, flagLZ4, cubin))},
		{loaded, elftest.Region(entryOf(kindCubin, 90, flagZstd, cubin))},
		{relocatable, elftest.Region(entryOf(kindCubin, 90, 0, cubin))},
		{".hip_fatbin", elftest.Bundle(amdCode(gfx942, amd))},
		{".hip_fatbin", elftest.Compress(3, 1, elftest.Bundle(amdCode(gfx942, amd)))},
	} {
		files = append(files, library(p))
	}
	fuzz(f, files, func(t *testing.T, file []byte) {
		functions, err := deviceFunctions(bytes.NewReader(file))
		check.That(t, err == nil || functions == nil, "an error and functions: %v, %v", functions, err)
		for i, f := range functions {
			check.That(t, f.Name != "" && f.Target.Arch != "" &&
				(i <= 0 || f.Name != functions[i-1].Name || f.Target.key() != functions[i-1].Target.key()), "function %d: %+v", i, f)
		}
	})
}

// useOf returns the use of the first kernel of a bundle.
func useOf(t *testing.T, bundle []byte) Use {
	t.Helper()
	functions := must.Get(deviceFunctions(bytes.NewReader(library(part{hipFatbin, bundle}))))(t)
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
