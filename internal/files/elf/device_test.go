package elf

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/elftest"
	"builder/test/kit/must"
)

const (
	host   = "host-x86_64-unknown-linux--"
	gfx90a = "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+"
	gfx942 = "hipv4-amdgcn-amd-amdhsa--gfx942"
)

func targetNames(t *testing.T, file []byte) []string {
	t.Helper()
	targets := must.Get(deviceTargets(bytes.NewReader(file)))(t)
	var names []string
	for _, target := range targets {
		names = append(names, target.Vendor+" "+target.String())
	}
	return names
}

func TestDeviceTargets(t *testing.T) {
	padding := make([]byte, 5000)
	one := bundle(code{host, 0}, code{gfx90a, 10})
	two := bundle(code{host, 0}, code{gfx942, 7000}, code{gfx90a, 1})
	both := []string{"amd gfx90a:xnack+", "amd gfx942"}
	join := func(b ...[]byte) []byte { return bytes.Join(b, padding) }

	for _, test := range []struct {
		name    string
		section string
		data    []byte
		want    []string
	}{
		{"no device code", ".text", []byte("x"), nil},
		{"empty section", ".hip_fatbin", nil, nil},
		{"plain", ".hip_fatbin", one, both[:1]},
		{"two units", ".hip_fatbin", join(one, two, nil), both},
		{"two units without padding", ".hip_fatbin", append(bytes.Clone(one), two...), both},
		{"zero size is no code", ".hip_fatbin", bundle(code{gfx942, 0}), nil},
		{"zlib 1", ".hip_fatbin", join(elftest.Compress(1, 0, one), elftest.Compress(1, 0, two)), both},
		{"zstd 1", ".hip_fatbin", join(elftest.Compress(1, 1, one), elftest.Compress(1, 1, two), nil), both},
		{"zstd 1 without padding", ".hip_fatbin", append(elftest.Compress(1, 1, one), elftest.Compress(1, 1, two)...), both},
		{"zlib 2", ".hip_fatbin", join(elftest.Compress(2, 0, one), two), both},
		{"zstd 2", ".hip_fatbin", join(one, elftest.Compress(2, 1, two)), both},
		{"zstd 3", ".hip_fatbin", join(elftest.Compress(3, 1, two), elftest.Compress(3, 1, one)), both},
		{"old, generic and normalised ids", ".hip_fatbin", bundle(
			code{"hip-amdgcn-amd-amdhsa-gfx906", 1}, code{"hipv4-amdgcn-amd-amdhsa--gfx9-4-generic", 1},
			code{"hipv4-amdgcn-amd-amdhsa-unknown-gfx908:xnack-:sramecc+", 1}, code{"hip-nvptx64-nvidia-cuda--sm_90", 1},
		), []string{"amd gfx9-4-generic", "amd gfx906", "amd gfx908:sramecc+:xnack-"}},
		{"no empty part", ".hip_fatbin", bundle(
			code{"hip-amdgcn-amd-amdhsa-gfx9-4-generic", 1}, code{"hip-spirv64-amd-amdhsa-amdgcnspirv", 1},
		), []string{"amd amdgcnspirv", "amd gfx9-4-generic"}},
		{"not ours", ".hip_fatbin", bundle(code{"host-amdgcn-amd-amdhsa--gfx90a", 1}, code{"hip-amdgcn-amd", 1}), nil},
		{"as many entries as may be", ".hip_fatbin", bundle(slices.Repeat([]code{{host, 0}}, maxEntries)...), nil},
		{"an id as long as may be", ".hip_fatbin", bundle(code{host + strings.Repeat("x", maxID-len(host)), 0}), nil},
		{"cubins and PTX", ".nv_fatbin", join(
			elftest.Region(entry(kindCubin, 90, 0x11, 100), entry(kindPTX, 90, 0x8011, 8), entry(8, 80, 0, 8), entry(kindCubin, 70, 0, 0)),
			elftest.Region(entry(kindCubin, 90, flagArch, 16), entry(kindCubin, 100, flagFamily, 16)),
		), []string{"nvidia compute_90", "nvidia sm_100f", "nvidia sm_90", "nvidia sm_90a"}},
		{"relocatable", "__nv_relfatbin", elftest.Region(entry(kindCubin, 80, 0, 8)), []string{"nvidia sm_80"}},
		{"empty region", ".nv_fatbin", elftest.Region(), nil},
	} {
		check.Same(t, test.name, test.want, targetNames(t, library(part{test.section, test.data})))
	}
}

// clang 19 wrote the file for two translation units and the targets gfx90a:xnack+,
// gfx942 and gfx1100, with --offload-compress.
func TestDeviceTargetsOfClang(t *testing.T) {
	data := must.Get(os.ReadFile("testdata/clang19-compressed.hip_fatbin"))(t)
	want := []string{"amd gfx1100", "amd gfx90a:xnack+", "amd gfx942"}
	check.Same(t, "targets", want, targetNames(t, library(part{".hip_fatbin", data})))
}

func TestDeviceTargetsOfBothVendors(t *testing.T) {
	got := targetNames(t, library(
		part{".nv_fatbin", elftest.Region(entry(kindPTX, 80, 0, 8))},
		part{".hip_fatbin", bundle(code{gfx942, 3})},
		part{".hip_fatbin", bundle(code{gfx90a, 3})},
	))
	want := []string{"amd gfx90a:xnack+", "amd gfx942", "nvidia compute_80"}
	check.Same(t, "targets", want, got)
}

func TestDeviceTargetsRefuses(t *testing.T) {
	one := bundle(code{gfx90a, 100})
	edit := func(b []byte, off int, v any) []byte {
		b = bytes.Clone(b)
		copy(b[off:], pack(v))
		return b
	}
	v2, v3, zlib2 := elftest.Compress(2, 1, one), elftest.Compress(3, 1, one), elftest.Compress(2, 0, one)
	for _, test := range []struct {
		name, section string
		data          []byte
		want          string
	}{
		{"junk", ".hip_fatbin", []byte("junk"), "no known container"},
		{"zeros", ".nv_fatbin", make([]byte, 100000), "no known container"},
		{"truncated code", ".hip_fatbin", one[:len(one)-1], "do not fit"},
		{"truncated table", ".hip_fatbin", one[:40], "unexpected EOF"},
		{"count", ".hip_fatbin", edit(one, 24, uint64(1)<<60), "claims 1152921504606846976 entries"},
		{"one entry too many", ".hip_fatbin", bundle(slices.Repeat([]code{{host, 0}}, maxEntries+1)...), "claims 4097 entries"},
		{"offset", ".hip_fatbin", edit(one, 32, ^uint64(0)), "a bundle entry has"},
		{"largest offset", ".hip_fatbin", edit(one, 32, uint64(1)<<61), "does not fit"},
		{"size", ".hip_fatbin", edit(one, 40, uint64(1)<<61+1), "a bundle entry has"},
		{"largest size", ".hip_fatbin", edit(one, 40, uint64(1)<<61), "do not fit"},
		{"id", ".hip_fatbin", bundle(code{host + strings.Repeat("x", maxID+1-len(host)), 0}), "an id of 4097"},
		{"offset in header", ".hip_fatbin", edit(one, 32, uint64(3)), "overlaps the bundle's header"},
		{"id length", ".hip_fatbin", edit(one, 48, uint64(1)<<40), "a bundle entry has"},
		{"version", ".hip_fatbin", edit(v2, 4, uint16(9)), "version 9"},
		{"method", ".hip_fatbin", edit(v2, 6, uint16(7)), "unknown method"},
		{"total too small", ".hip_fatbin", edit(v2, 8, uint32(3)), "claims 3 bytes"},
		{"total of the header alone", ".hip_fatbin", edit(v2, 8, uint32(24)), "claims 24 bytes"},
		{"largest total", ".hip_fatbin", edit(v3, 8, uint64(1)<<62), "unexpected EOF"},
		{"total beyond", ".hip_fatbin", edit(v3, 8, uint64(1)<<62+1), "claims 4611686018427387905 bytes"},
		{"largest bundle", ".hip_fatbin", edit(v3, 16, uint64(maxBundle)), "less than claimed"},
		{"sum", ".hip_fatbin", edit(zlib2, len(zlib2)-1, zlib2[len(zlib2)-1]^1), "invalid checksum"},
		{"magic at the end", ".hip_fatbin", []byte("junk" + compressedMagic), "unexpected EOF"},
		{"total too large", ".hip_fatbin", edit(v2, 8, uint32(1)<<30), "unexpected EOF"},
		{"unpacks to less", ".hip_fatbin", edit(v3, 16, uint64(len(one)+1)), "less than claimed"},
		{"unpacks to more", ".hip_fatbin", edit(elftest.Compress(3, 1, append(bytes.Clone(one), 0)), 16, uint64(len(one))), "longer than claimed"},
		{"bomb", ".hip_fatbin", edit(v3, 16, uint64(2)<<30), "above the limit"},
		{"two bundles in one", ".hip_fatbin", elftest.Compress(2, 1, append(bytes.Clone(one), one...)), "2 bundles"},
		{"no bundle in one", ".hip_fatbin", elftest.Compress(2, 1, []byte("nothing")), "0 bundles"},
		{"truncated region", ".nv_fatbin", elftest.Region(entry(kindCubin, 90, 0, 100))[:120], "do not fit"},
		{"truncated entry", ".nv_fatbin", elftest.Region(entry(kindCubin, 90, 0, 100))[:40], "unexpected EOF"},
		{"entry past region", ".nv_fatbin", edit(elftest.Region(entry(kindCubin, 90, 0, 8)), 24, uint64(1)<<63), "do not fit"},
		{"entry header", ".nv_fatbin", edit(elftest.Region(entry(kindCubin, 90, 0, 8)), 20, uint32(8)), "header of 8 bytes"},
		{"region header", ".nv_fatbin", edit(elftest.Region(), 6, uint16(8)), "header of 8 and"},
		{"no architecture", ".nv_fatbin", elftest.Region(entry(kindCubin, 0, 0, 8)), "no architecture"},
	} {
		got, err := deviceTargets(bytes.NewReader(library(part{test.section, test.data})))
		check.Fails(t, err, test.want, test.name, got)
	}
}

// A function without a size extends to the next one.
func TestFunctionAt(t *testing.T) {
	functions := []place{{"a", 10, 20}, {"b", 25, 25}, {"c", 30, 40}}
	for at, want := range map[uint64]int{9: -1, 10: 0, 19: 0, 20: -1, 24: -1, 25: 1, 29: 1, 30: 2, 39: 2, 40: -1} {
		check.Same(t, fmt.Sprint(at), want, functionAt(functions, at))
	}
}

func FuzzDeviceTargets(f *testing.F) {
	one := bundle(code{host, 0}, code{gfx90a, 10})
	files := [][]byte{library(part{".nv_fatbin", elftest.Region(entry(kindCubin, 90, flagArch, 16), entry(kindPTX, 90, 0, 8))})}
	for _, data := range [][]byte{one, elftest.Compress(1, 0, one), elftest.Compress(2, 1, one), elftest.Compress(3, 1, one)} {
		files = append(files, library(part{".hip_fatbin", data}))
	}
	fuzz(f, files, func(t *testing.T, file []byte) {
		targets, err := deviceTargets(bytes.NewReader(file))
		check.That(t, err == nil || targets == nil, "an error and targets: %v, %v", targets, err)
	})
}
