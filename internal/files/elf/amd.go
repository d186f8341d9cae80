package elf

import (
	"bufio"
	"cmp"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// AMD's compilers pack code as clang offload bundles, plain or compressed
// (clang/docs/ClangOffloadBundler.rst).
const (
	plainMagic      = "__CLANG_OFFLOAD_BUNDLE__"
	compressedMagic = "CCOB"

	maxBundle  = 1 << 30   // bytes of one decompressed bundle
	maxWindow  = 256 << 20 // bytes of memory for the zstd decoder; clang uses 128 MiB at most
	maxEntries = 4096      // per bundle, one per target
	maxID      = 4096
)

const hipFatbin = ".hip_fatbin"

// readAMD reads one bundle, compressed or plain.
func readAMD(r *bufio.Reader, visit visitor) error {
	if magic, err := r.Peek(len(compressedMagic)); err != nil || string(magic) != compressedMagic {
		return readBundle(r, visit)
	}
	return readCompressed(r, visit)
}

// readBundle reads a plain bundle: a table of entries, then their code, at offsets from
// the start of the bundle.
func readBundle(r io.Reader, visit visitor) error {
	bundle := &io.LimitedReader{R: r, N: math.MaxInt64} // counts what was read
	entries, err := readTable(bundle)
	if err != nil {
		return err
	}
	slices.SortStableFunc(entries, func(a, b bundleEntry) int { return cmp.Compare(a.offset, b.offset) })
	for _, e := range entries {
		position := uint64(math.MaxInt64 - bundle.N)
		if e.offset < position {
			return fmt.Errorf("the code of %q overlaps the bundle's header or other code", e.id)
		}
		if err := skip(bundle, e.offset-position); err != nil {
			return fmt.Errorf("the code of %q does not fit: %w", e.id, err)
		}
		if err := visitEntry(bundle, e, visit); err != nil {
			return err
		}
	}
	return nil
}

// visitEntry visits GPU code and skips other code, such as the host's.
func visitEntry(r io.Reader, e bundleEntry, visit visitor) error {
	target, ok := parseID(e.id)
	if !ok {
		return skip(r, e.size)
	}
	return visitPart(r, e.size, object{target: target, machine: elf.EM_AMDGPU}, visit)
}

type bundleEntry struct {
	id           string
	offset, size uint64
}

// readTable returns the entries with code.
func readTable(r io.Reader) (entries []bundleEntry, err error) {
	var table struct {
		Magic [len(plainMagic)]byte
		Count uint64
	}
	if err := binary.Read(r, binary.LittleEndian, &table); err != nil {
		return nil, err
	}
	if table.Count > maxEntries {
		return nil, fmt.Errorf("a bundle claims %d entries", table.Count)
	}
	for range table.Count {
		var e struct{ Offset, Size, IDLength uint64 }
		if err := binary.Read(r, binary.LittleEndian, &e); err != nil {
			return nil, err
		}
		if e.IDLength > maxID || e.Offset > 1<<61 || e.Size > 1<<61 {
			return nil, fmt.Errorf("a bundle entry has an id of %d, code at %d of %d bytes", e.IDLength, e.Offset, e.Size)
		}
		id := make([]byte, e.IDLength)
		if _, err := io.ReadFull(r, id); err != nil {
			return nil, err
		}
		if e.Size > 0 {
			entries = append(entries, bundleEntry{string(id), e.Offset, e.Size})
		}
	}
	return entries, nil
}

// parseID reads an entry id, kind-triple-target. The triple has three or four parts
// (hip-amdgcn-amd-amdhsa-gfx906, hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+), and the
// target may contain dashes (gfx9-4-generic). It returns false for host code and code
// of other vendors.
func parseID(id string) (Target, bool) {
	parts := strings.SplitN(id, "-", 5)
	if len(parts) < 5 || parts[0] == "host" || parts[1] != "amdgcn" && parts[1] != "spirv64" {
		return Target{}, false
	}
	target := parts[4]
	if _, after, ok := strings.Cut(target, "-"); ok && !strings.HasPrefix(target, "gfx") {
		target = after
	}
	fields := strings.Split(target, ":")
	if fields[0] == "" {
		return Target{}, false
	}
	features := slices.Sorted(slices.Values(fields[1:]))
	return Target{Vendor: "amd", Arch: fields[0], Features: features}, true
}

// compressedHeader holds the fields common to the three versions of the header.
type compressedHeader struct {
	method       uint16
	payload      uint64 // compressed bytes after the header; 0 in version 1, which does not state them
	uncompressed uint64
}

func readCompressedHeader(r io.Reader) (h compressedHeader, err error) {
	head := make([]byte, 32)
	if _, err := io.ReadFull(r, head[:8]); err != nil {
		return h, err
	}
	version, length := half(head, 4), map[uint16]int{1: 20, 2: 24, 3: 32}[half(head, 4)]
	if length == 0 {
		return h, fmt.Errorf("a compressed bundle has version %d, expected 1 to 3", version)
	}
	if _, err := io.ReadFull(r, head[8:length]); err != nil {
		return h, err
	}
	h.method = half(head, 6)
	var total uint64 // bytes with the header
	switch version {
	case 1:
		h.uncompressed = word(head, 8)
		return h, nil
	case 2:
		total, h.uncompressed = word(head, 8), word(head, 12)
	case 3:
		total, h.uncompressed = binary.LittleEndian.Uint64(head[8:]), binary.LittleEndian.Uint64(head[16:])
	}
	if total <= uint64(length) || total > 1<<62 {
		return h, fmt.Errorf("a compressed bundle claims %d bytes", total)
	}
	h.payload = total - uint64(length)
	return h, nil
}

// readCompressed decompresses a bundle as a stream and reads it to its end, because the
// header of a truncated bundle still lists all targets.
func readCompressed(r *bufio.Reader, visit visitor) error {
	h, err := readCompressedHeader(r)
	if err != nil {
		return err
	}
	if h.uncompressed > maxBundle {
		return fmt.Errorf("a compressed bundle unpacks to %d bytes, above the limit", h.uncompressed)
	}
	if h.payload == 0 {
		return unpackBundle(h, r, visit)
	}
	payload := &io.LimitedReader{R: r, N: int64(h.payload)}
	if err := unpackBundle(h, bufio.NewReader(payload), visit); err != nil {
		return err
	}
	return skip(payload, uint64(payload.N))
}

// unpack reads exactly the number of bytes stated in the header. The header of a
// version 1 bundle does not state where the bundle ends. Both decoders stop after its
// last byte, and the search for the next bundle continues there.
func unpackBundle(h compressedHeader, r *bufio.Reader, visit visitor) error {
	decoder, err := newDecoder(h.method, r)
	if err != nil {
		return err
	}
	defer decoder.Close()
	plain := &io.LimitedReader{R: decoder, N: int64(h.uncompressed)}
	count, err := containers(bufio.NewReader(plain), []string{plainMagic}, func(r *bufio.Reader) error {
		return readBundle(r, visit)
	})
	switch {
	case err != nil:
		return fmt.Errorf("unpacking: %w", err)
	case plain.N > 0:
		return fmt.Errorf("a compressed bundle unpacks to %d bytes less than claimed", plain.N)
	case h.payload > 0 && !atEnd(decoder):
		return errors.New("a compressed bundle is longer than claimed, or its checksum is wrong")
	case count != 1:
		return fmt.Errorf("a compressed bundle holds %d bundles, not one", count)
	}
	return nil
}

// atEnd reports whether r is at its end. Decoders verify their checksum there.
func atEnd(r io.Reader) bool {
	n, err := io.ReadFull(r, make([]byte, 1))
	return n == 0 && err == io.EOF
}

func newDecoder(method uint16, r *bufio.Reader) (io.ReadCloser, error) {
	switch method {
	case 0:
		return zlib.NewReader(r)
	case 1:
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxBundle))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return nil, errors.New("a compressed bundle uses an unknown method")
}
