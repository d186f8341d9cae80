package wheel

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// The sizes of a member precede its content. The Python index refuses wheels with sizes
// after the members.
func TestNormaliseWritesNoDescriptors(t *testing.T) {
	entries := append(goodEntries(), entry{"horovod/ünicode.py", "x", 0o644}, entry{"horovod/empty.py", "", 0o644})
	data := normalised(t, openEntries(t, entries...), Options{Epoch: epoch})
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	must.Succeed(t, err)
	for _, f := range r.File {
		at, err := f.DataOffset()
		must.Succeed(t, err)
		local := data[int(at)-len(f.Name)-len(f.Extra)-localLength:]
		crc, packed, size := binary.LittleEndian.Uint32(local[14:]), binary.LittleEndian.Uint32(local[18:]), binary.LittleEndian.Uint32(local[22:])
		check.That(t, string(local[:4]) == localSignature && f.Flags&flagDescriptor == 0 && local[6]&flagDescriptor == 0 &&
			crc == f.CRC32 && uint64(packed) == f.CompressedSize64 && uint64(size) == f.UncompressedSize64, "%s: flags %#x, %08x, %d of %d", f.Name, f.Flags, crc, packed, size)
		utf8 := f.Flags&flagUTF8 != 0
		check.That(t, utf8 == !isASCII(f.Name) && !f.NonUTF8, "%s: UTF-8 is %v", f.Name, utf8)
	}
	check.That(t, !bytes.Contains(data, []byte("PK\x07\x08")), "there is a data descriptor")
}
