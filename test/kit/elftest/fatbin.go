package elftest

import (
	"bytes"
	"compress/zlib"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Code is the code of one target in a clang offload bundle.
type Code struct {
	ID   string
	Data []byte
}

// HIP returns the section hipcc writes for these AMD targets, such as gfx90a:xnack+.
func HIP(targets ...string) Section {
	entries := []Code{{ID: "host-x86_64-unknown-linux--"}}
	for _, t := range targets {
		entries = append(entries, Code{"hipv4-amdgcn-amd-amdhsa--" + t, []byte("code")})
	}
	return Section{".hip_fatbin", Bundle(entries...)}
}

// Bundle returns a clang offload bundle.
func Bundle(entries ...Code) []byte {
	offset := 32
	for _, e := range entries {
		offset += 24 + len(e.ID)
	}
	head, body := pack("__CLANG_OFFLOAD_BUNDLE__", uint64(len(entries))), []byte(nil)
	for _, e := range entries {
		head = append(head, pack(uint64(offset+len(body)), uint64(len(e.Data)), uint64(len(e.ID)), e.ID)...)
		body = append(body, e.Data...)
	}
	return append(head, body...)
}

// Compress wraps a bundle as clang does in versions 1 to 3 of the format, with zlib
// (method 0) or zstd (1).
func Compress(version, method uint16, plain []byte) []byte {
	var payload bytes.Buffer
	switch method {
	case 0:
		w := zlib.NewWriter(&payload)
		w.Write(plain)
		w.Close()
	case 1:
		w, _ := zstd.NewWriter(&payload)
		w.Write(plain)
		w.Close()
	}
	head := pack("CCOB", version, method)
	size, hash := len(plain), uint64(1)
	switch version {
	case 1:
		head = append(head, pack(uint32(size), hash)...)
	case 2:
		head = append(head, pack(uint32(24+payload.Len()), uint32(size), hash)...)
	case 3:
		head = append(head, pack(uint64(32+payload.Len()), uint64(size), hash)...)
	}
	return append(head, payload.Bytes()...)
}

// Kinds of entry in NVIDIA's fat binaries, and flags of the architecture.
const (
	PTX   = 1
	Cubin = 2

	ArchOnly   = 1 << 20 // sm_90a
	FamilyOnly = 1 << 21 // sm_100f
)

// CUDA returns a section with code for these NVIDIA targets: sm_90, sm_90a, sm_100f, or
// compute_90 for PTX.
func CUDA(targets ...string) Section {
	var entries [][]byte
	for _, t := range targets {
		kind, number := uint16(Cubin), strings.TrimPrefix(t, "sm_")
		if text, ok := strings.CutPrefix(t, "compute_"); ok {
			kind, number = PTX, text
		}
		flags := map[byte]uint64{'a': ArchOnly, 'f': FamilyOnly}[number[len(number)-1]]
		arch, err := strconv.ParseUint(strings.TrimRight(number, "af"), 10, 16)
		if err != nil {
			panic(err) // another notation
		}
		entries = append(entries, Entry(kind, uint32(arch), flags, []byte("the code")))
	}
	return Section{".nv_fatbin", Region(entries...)}
}

// Entry returns one entry of a fat binary.
func Entry(kind uint16, arch uint32, flags uint64, payload []byte) []byte {
	const header = 64
	return append(pack(kind, uint16(0), uint32(header), uint64(len(payload)), make([]byte, 12), arch, make([]byte, 8), flags, make([]byte, 16)), payload...)
}

// Region returns a fat binary with the given entries.
func Region(entries ...[]byte) []byte {
	body := bytes.Join(entries, nil)
	return append(pack(uint32(0xBA55ED50), uint16(1), uint16(16), uint64(len(body))), body...)
}
