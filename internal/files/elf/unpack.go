package elf

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// method is how a container packs an object.
type method int

const (
	stored method = iota
	lz4Block
	zstdFrame
	unknownMethod
)

// Limits of unpacking. NCCL 2.28.9 has objects of 134 MB. Its compression ratio is at
// most 20, like that of PTX. LZ4 cannot exceed 255.
const (
	maxObject = maxMemory / 2
	maxRatio  = 255
)

// unpacker holds one object at a time and reuses its memory for the next.
type unpacker struct {
	packed bytes.Buffer
	plain  []byte
	zstd   *zstd.Decoder
}

func newUnpacker() (*unpacker, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxMemory(maxObject), zstd.WithDecodeAllCapLimit(true))
	return &unpacker{zstd: d}, err
}

func (u *unpacker) close() { u.zstd.Close() }

// unpack returns the code of an object. It is valid until the next call.
func (u *unpacker) unpack(o object) ([]byte, error) {
	u.packed.Reset()
	n, err := u.packed.ReadFrom(io.LimitReader(o.code, maxObject+1))
	switch {
	case err != nil:
		return nil, err
	case n > maxObject:
		return nil, fmt.Errorf("it exceeds the limit of %d bytes", maxObject)
	case o.method == stored:
		return u.packed.Bytes(), nil
	case o.method == unknownMethod:
		return nil, errors.New("its compression is unknown")
	case o.size == 0: // the LZ4 decoder crashes on it
		return nil, fmt.Errorf("%d bytes unpack to nothing", n)
	case o.size > maxObject || o.size > maxRatio*uint64(n):
		return nil, fmt.Errorf("%d bytes unpack to %d, above the limit", n, o.size)
	}
	if uint64(cap(u.plain)) < o.size {
		u.plain = nil // free for the next
		u.plain = make([]byte, o.size)
	}
	return u.decompress(o.method, u.plain[:o.size])
}

// decompress fills all of plain.
func (u *unpacker) decompress(m method, plain []byte) ([]byte, error) {
	var n int
	var err error
	if m == lz4Block {
		n, err = lz4.UncompressBlock(u.packed.Bytes(), plain)
	} else {
		var out []byte
		out, err = u.zstd.DecodeAll(u.packed.Bytes(), plain[:0:len(plain)])
		n = len(out)
	}
	if err == nil && n != len(plain) {
		err = fmt.Errorf("%d bytes unpacked, expected %d", n, len(plain))
	}
	if err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	return plain, nil
}
