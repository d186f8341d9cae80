package elf

import (
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
	packed, plain []byte
	zstd          *zstd.Decoder
}

// unpack returns the code of an object. It is valid until the next call.
func (u *unpacker) unpack(o object) ([]byte, error) {
	if o.length > maxObject {
		return nil, fmt.Errorf("it exceeds the limit of %d bytes", maxObject)
	}
	resize(&u.packed, o.length)
	if _, err := io.ReadFull(o.code, u.packed); err != nil {
		return nil, noEOF(err)
	}
	switch {
	case o.method == stored:
		return u.packed, nil
	case o.method == unknownMethod:
		return nil, errors.New("its compression is unknown")
	case o.size == 0: // the LZ4 decoder crashes on it
		return nil, fmt.Errorf("%d bytes unpack to nothing", o.length)
	case o.size > maxObject || o.size > maxRatio*o.length:
		return nil, fmt.Errorf("%d bytes unpack to %d, above the limit", o.length, o.size)
	}
	resize(&u.plain, o.size)
	return u.decompress(o.method, u.plain)
}

// resize gives b a length of n bytes. It frees the memory before it takes more.
func resize(b *[]byte, n uint64) {
	if uint64(cap(*b)) < n {
		*b = nil
		*b = make([]byte, n)
	}
	*b = (*b)[:n]
}

// decompress fills all of plain.
func (u *unpacker) decompress(m method, plain []byte) ([]byte, error) {
	var n int
	var err error
	if m == lz4Block {
		n, err = lz4.UncompressBlock(u.packed, plain)
	} else {
		var out []byte
		out, err = u.zstd.DecodeAll(u.packed, plain[:0:len(plain)])
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
