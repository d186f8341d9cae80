package gate

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"builder/internal/files/wheel"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/elftest"
	"builder/test/kit/must"
)

// wheelOf returns the path of a wheel with one library.
func wheelOf(t testing.TB, library []byte) string {
	t.Helper()
	empty, err := wheel.Open("testdata/x-1.0-py3-none-any.whl")
	must.Succeed(t, err)
	defer empty.Close()
	path := filepath.Join(t.TempDir(), "x-1.0-py3-none-any.whl")
	file := must.Get(os.Create(path))(t)
	defer file.Close()
	err = wheel.Normalise(file, empty, wheel.Options{Epoch: time.Unix(1700000000, 0), Replace: map[string][]byte{"x/libx.so": library}})
	must.Succeed(t, err)
	return path
}

func little(values ...any) []byte {
	var b bytes.Buffer
	for _, v := range values {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

type elfSection struct {
	name string
	kind uint32
	link uint32
	data []byte
}

// elfFile returns a 64-bit ELF file with these sections, numbered from 1, followed by
// the section of their names.
func elfFile(machine uint16, sections ...elfSection) []byte {
	sections = append(sections, elfSection{name: ".shstrtab", kind: 3})
	names, starts := []byte{0}, []int{}
	for _, s := range sections {
		starts = append(starts, len(names))
		names = append(append(names, s.name...), 0)
	}
	sections[len(sections)-1].data = names
	body, table := make([]byte, 64), make([]byte, 64)
	for i, s := range sections {
		table = append(table, little(uint32(starts[i]), s.kind, make([]byte, 16), uint64(len(body)), uint64(len(s.data)), s.link, make([]byte, 20))...)
		body = append(body, s.data...)
	}
	copy(body, little([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9), uint16(3), machine, uint32(1), make([]byte, 16),
		uint64(len(body)), make([]byte, 10), uint16(64), uint16(len(sections)+1), uint16(len(sections))))
	return append(body, table...)
}

// cubin returns an entry of a fat binary for an architecture. Names with a final () are
// kernels.
func cubin(arch uint32, flags uint64, functions ...string) []byte {
	names, symbols := []byte{0}, make([]byte, 24)
	for _, f := range functions {
		name, kernel := strings.CutSuffix(f, "()")
		other := byte(0)
		if kernel {
			other = 0x10
		}
		symbols = append(symbols, little(uint32(len(names)), byte(0x12), other, uint16(1), uint64(0), uint64(128))...)
		names = append(append(names, name...), 0)
	}
	code := elfFile(190, elfSection{kind: 2, link: 2, data: symbols}, elfSection{kind: 3, data: names})
	code[48] = byte(arch) // the flags
	return packed(2, arch, flags, code)
}

// codeObject returns the code of gfx90a with kernels: each has a function and a
// descriptor of 64 bytes.
func codeObject(kernels ...string) []byte {
	names, symbols := []byte{0}, make([]byte, 24)
	for _, kernel := range kernels {
		symbols = append(symbols, little(uint32(len(names)), byte(0x12), byte(0), uint16(1), uint64(0), uint64(128))...)
		symbols = append(symbols, little(uint32(len(names)+len(kernel)+1), byte(0x11), byte(0), uint16(1), uint64(0), uint64(64))...)
		names = append(names, kernel+"\x00"+kernel+".kd\x00"...)
	}
	code := elfFile(224, elfSection{kind: 2, link: 2, data: symbols}, elfSection{kind: 3, data: names})
	code[48] = 0x3f // the flags
	return code
}

// unknownPacking is a flag between those of LZ4 and zstd.
const unknownPacking = 1 << 14

func packed(kind uint16, arch uint32, flags uint64, code []byte) []byte {
	size := uint64(len(code))
	unpacked := uint64(0)
	if flags == unknownPacking {
		unpacked = size
	}
	return append(little(kind, uint16(0x101), uint32(64), size, uint32(unpacked), uint64(0), arch, uint64(0), flags, uint64(0), unpacked), code...)
}

// fatbin returns a library with device code.
func fatbin(entries ...[]byte) []byte {
	code := bytes.Join(entries, nil)
	region := append(little(uint32(0xBA55ED50), uint16(1), uint16(16), uint64(len(code))), code...)
	return elftest.Library{Sections: []elftest.Section{{Name: ".nv_fatbin", Data: region}}}.Bytes()
}

// The functions of small libraries of NCCL, as selected by ONLY_FUNCS.
var (
	chosen = []string{
		"_Z21ncclDevKernel_Generic24ncclDevKernelArgsStorageILm4096EE()",
		"_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE()",
		"_Z37ncclDevFunc_AllReduce_Sum_f32_RING_LLv", "_Z41ncclDevFunc_AllReduce_Sum_f32_RING_SIMPLEv", "_Z15ncclDevFunc_Nopv",
		"_Z43ncclSymkDevKernel_AllReduce_AGxLL_R_sum_f3221ncclSymkDevWorkArgs4K()",
	}
	nothing  = []string{chosen[0], chosen[4], chosen[5]}
	kernels  = []string{"*ncclDevKernel_AllReduce_Sum_f32_RING_LL*", "*ncclDevFunc_AllReduce_Sum_f32_RING_SIMPLEv"}
	filtered = []string{"*ncclDevFunc_Nopv"}
)

// The kernels of Horovod for ROCm.
const (
	memcpyKernel = "_ZN7horovod6common16batched_memcpy_kILi8EEEvNS0_16BatchedD2DParamsE"
	scaleKernel  = "_ZN7horovod6common14scale_buffer_kIffEEvPKT_PS2_lT0_"
)

var kernelsOfHorovod = functionSettings{Kernels: []string{"*batched_memcpy_k*", "*scale_buffer_k*"}}

// horovodKernels returns Horovod with its kernels.
func horovodKernels() *specimen {
	s := horovodROCm()
	s.expect.Gates["device-functions"] = kernelsOfHorovod
	s.library().Sections = []elftest.Section{bundled(codeObject(memcpyKernel, scaleKernel))}
	return s
}

// bundled returns the section with a code object for gfx90a.
func bundled(code []byte) elftest.Section {
	return elftest.Section{Name: ".hip_fatbin", Data: elftest.Bundle(elftest.Code{ID: "hipv4-amdgcn-amd-amdhsa--gfx90a", Data: code})}
}

func TestDeviceFunctions(t *testing.T) {
	spills := must.Get(os.ReadFile("../../files/elf/testdata/llvm14-spills.gfx90a.o"))(t)
	for name, c := range map[string]struct {
		library []byte
		expect  recipe.Expect
		want    verdict.Status
		says    []string
	}{
		"as promised": {
			fatbin(cubin(80, 0, chosen...), cubin(90, 0, chosen...)),
			recipe.Expect{Gates: recipe.GateSettings{"device-functions": functionSettings{Kernels: kernels, NoKernels: []string{"*AllGather*"}}}},
			verdict.Pass,
			[]string{"x/libx.so holds for sm_80 3 kernels and 3 other functions", "holds for sm_90 3 kernels"},
		},
		"nothing was chosen": {
			fatbin(cubin(90, 0, nothing...)),
			recipe.Expect{Gates: recipe.GateSettings{"device-functions": functionSettings{Kernels: kernels}}},
			verdict.Fail,
			[]string{
				"x/libx.so has no match in sm_90 (2 kernels and 1 other functions) for *ncclDevKernel_AllReduce_Sum_f32_RING_LL*, *ncclDevFunc_AllReduce_Sum_f32_RING_SIMPLEv",
				`"_Z21ncclDevKernel_Generic24ncclDevKernelArgsStorageILm4096EE"`,
			},
		},
		"no device code": {elfFile(62), recipe.Expect{Gates: recipe.GateSettings{"device-functions": functionSettings{Kernels: kernels}}}, verdict.Fail, []string{"no function for any GPU"}},
		"no kernels":     {fatbin(cubin(90, 0)), recipe.Expect{Gates: recipe.GateSettings{"device-functions": functionSettings{Kernels: kernels}}}, verdict.Fail, []string{"no function for any GPU"}},
		"no kernels, none forbidden": {
			fatbin(cubin(90, 0)), recipe.Expect{DeviceCode: []string{"sm_90"}, Gates: recipe.GateSettings{"device-functions": functionSettings{NoKernels: filtered}}}, verdict.Fail, []string{"no function for any GPU"},
		},
		"PTX alone": {
			fatbin(packed(1, 90, 0, []byte(".version 9.0\n.entry x()"))), recipe.Expect{Gates: recipe.GateSettings{"device-functions": functionSettings{Kernels: []string{"x"}}}}, verdict.Fail, []string{"except in PTX"},
		},
		"missing for one of two targets": {
			fatbin(cubin(80, 0, nothing...), cubin(90, 0, chosen...)),
			recipe.Expect{Gates: recipe.GateSettings{"device-functions": functionSettings{Kernels: kernels}}},
			verdict.Fail,
			[]string{"has no match in sm_80 (2 kernels and 1 other functions) for *"},
		},
		"one missing for all, one for some": {
			fatbin(cubin(80, 0, nothing...), cubin(90, 0, chosen...), cubin(100, 0, nothing...)),
			recipe.Expect{Gates: recipe.GateSettings{"device-functions": functionSettings{Kernels: []string{"x*", kernels[0], "*DevFunc*", kernels[1]}}}},
			verdict.Fail,
			[]string{
				"in sm_100 (2 kernels and 1 other functions) for x*, " + kernels[0] + ", " + kernels[1] + ", but ",
				"in sm_90 (3 kernels and 3 other functions) for x*, but ",
			},
		},
		"more for one target than for another": {
			fatbin(cubin(80, 0, nothing...), cubin(90, 0, chosen...)),
			recipe.Expect{Gates: recipe.GateSettings{"device-functions": functionSettings{Kernels: []string{"*DevFunc*"}}}},
			verdict.Pass,
			[]string{"holds for sm_80 2 kernels and 1 other functions", "holds for sm_90 3 kernels and 3 other functions"},
		},
		"kernel without the function behind the table": {
			fatbin(cubin(90, 0, chosen[0], chosen[1], chosen[2])),
			recipe.Expect{Gates: recipe.GateSettings{"device-functions": functionSettings{Kernels: kernels}}},
			verdict.Fail,
			[]string{" for *ncclDevFunc_AllReduce_Sum_f32_RING_SIMPLEv, but "},
		},
		"nothing for a promised target": {
			fatbin(cubin(80, 0), cubin(90, 0, chosen...)),
			recipe.Expect{DeviceCode: []string{"sm_80", "sm_90"}, Gates: recipe.GateSettings{"device-functions": functionSettings{Kernels: kernels}}},
			verdict.Fail,
			[]string{"no match in sm_80 (0 kernels and 0 other functions)"},
		},
		"code for a family adds to the plain": {
			fatbin(cubin(90, 0, chosen...), cubin(100, 1<<21, chosen[5])),
			recipe.Expect{DeviceCode: []string{"sm_90", "sm_100f"}, Gates: recipe.GateSettings{"device-functions": functionSettings{Kernels: kernels}}},
			verdict.Pass,
			[]string{"for sm_100f 1 kernels and 0 other functions, not part of the promise"},
		},
		"code for a family alone": {
			fatbin(cubin(100, 1<<21, nothing...)), recipe.Expect{Gates: recipe.GateSettings{"device-functions": functionSettings{Kernels: kernels}}}, verdict.Fail, []string{"in sm_100f (2 kernels"},
		},
		"empty code of a default target": {
			fatbin(cubin(52, 0), cubin(90, 0, chosen...)), recipe.Expect{Gates: recipe.GateSettings{"device-functions": functionSettings{Kernels: kernels}}}, verdict.Pass, []string{"for sm_90"},
		},
		"forbidden": {
			fatbin(cubin(90, 0, chosen...)),
			recipe.Expect{Gates: recipe.GateSettings{"device-functions": functionSettings{Kernels: kernels, NoKernels: filtered}}},
			verdict.Fail,
			[]string{`has for sm_90 1 functions of the forbidden *ncclDevFunc_Nopv: "_Z15ncclDevFunc_Nopv"`},
		},
		"forbidden in PTX": {
			fatbin(cubin(90, 0, chosen...), packed(1, 90, 0, []byte(".version 9.0\n.entry ncclDevFunc_Nopv()"))),
			recipe.Expect{Gates: recipe.GateSettings{"device-functions": functionSettings{NoKernels: []string{"ncclDevFunc_Nopv"}}}},
			verdict.Fail,
			[]string{"has for compute_90 1 functions of the forbidden ncclDevFunc_Nopv"},
		},
		"use of an AMD GPU": {
			elftest.Library{Soname: "libx.so", Sections: []elftest.Section{bundled(spills)}}.Bytes(),
			recipe.Expect{Gates: recipe.GateSettings{"device-functions": functionSettings{Kernels: []string{"k"}}}},
			verdict.Pass,
			[]string{`its kernel "k" takes 128 VGPRs, 106 SGPRs, and in bytes 65000 of LDS, 300 of scratch and 4 of code, and spills 70007 registers`},
		},
		"an unprintable name": {
			fatbin(cubin(90, 0, "f\x1b[2J\n"+strings.Repeat("x", 500))), recipe.Expect{Gates: recipe.GateSettings{"device-functions": functionSettings{NoKernels: []string{"f*"}}}}, verdict.Fail, []string{`"f\x1b[2J\n`},
		},
		"truncated entry":     {fatbin(cubin(90, 0, chosen...)[:400]), recipe.Expect{Gates: recipe.GateSettings{"device-functions": functionSettings{Kernels: kernels}}}, verdict.NotMeasured, []string{"code for sm_90"}},
		"unknown compression": {fatbin(cubin(90, unknownPacking, chosen...)), recipe.Expect{Gates: recipe.GateSettings{"device-functions": functionSettings{Kernels: kernels}}}, verdict.NotMeasured, []string{"its compression is unknown"}},
		"wrong pattern":       {fatbin(cubin(90, 0, chosen...)), recipe.Expect{Gates: recipe.GateSettings{"device-functions": functionSettings{NoKernels: []string{"[a"}}}}, verdict.NotMeasured, []string{`"[a" is no valid pattern`}},
		"no such file": {
			fatbin(cubin(90, 0, chosen...)), recipe.Expect{Extensions: []string{"y.so"}, Gates: recipe.GateSettings{"device-functions": functionSettings{Kernels: kernels}}}, verdict.NotMeasured, []string{"no file matches"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.expect.Extensions == nil {
				c.expect.Extensions = []string{"x/*.so"}
			}
			v := deviceFunctions.Check(context.Background(), Subject{Artifact: wheelOf(t, c.library), Expect: c.expect})
			judged(t, v, c.want, "")
			for _, says := range c.says {
				check.That(t, strings.Contains(v.Evidence, says), "the evidence lacks %q:\n%s", says, v.Evidence)
			}
			check.That(t, len(v.Evidence) <= 2000, "evidence of %d bytes", len(v.Evidence))
			check.That(t, c.want != verdict.Fail || strings.Contains(v.Remedy, `write "AllReduce Sum f32 * *"`), "remedy: %s", v.Remedy)
		})
	}
}
