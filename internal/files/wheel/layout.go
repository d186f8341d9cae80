package wheel

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// A ZIP describes its members in up to four places: before each member, after it, in
// the directory at the end, and in the end record. pip reads the directory, and uv
// reads the members from first to last. If the places contradict each other, installers
// see different wheels, so this package refuses the ZIP.
//
// archive/zip reads the directory. This file compares its answer with the other places.
// The rules follow those of the Python index for uploads, with two differences:
//
//   - The index accepts an archive comment, and this package does not. No wheel in use
//     has one.
//   - The index accepts any well-formed extra field, and this package only plainExtras.
//     Wheels in use need no other.
//
// So sizes after a member, as Python and Go write them to outputs that cannot seek, are
// refused.

// Records of a ZIP (APPNOTE.TXT 4.3) and the lengths of their fixed parts.
const (
	localSignature   = "PK\x03\x04"
	end64Signature   = "PK\x06\x06"
	locatorSignature = "PK\x06\x07"
	endSignature     = "PK\x05\x06"

	localLength   = 30
	centralLength = 46
	end64Length   = 56
	locatorLength = 20
	endLength     = 22
)

// Flags that do not change the content of a member: compression effort, a name in UTF-8.
// flagDescriptor marks sizes after the member.
const (
	flagEffort     = 0x0006
	flagDescriptor = 0x0008
	flagUTF8       = 0x0800
)

// zip64Extra is the extra field for sizes of more than 32 bits.
const zip64Extra = 0x0001

// plainExtras are the extra fields installers may ignore: sizes, times, owners, and
// padding. Other fields can give a member another name (0x7075), a password or a link
// in readers that support them.
var plainExtras = []uint16{zip64Extra, 0x000a, 0x5455, 0x5855, 0x7855, 0x7875, 0xa220, 0xcafe, 0xd935}

// maxVersion is the highest version of the format supported by Python's zipfile.
const maxVersion = 63

var u16, u32, u64 = binary.LittleEndian.Uint16, binary.LittleEndian.Uint32, binary.LittleEndian.Uint64

// span is the position and the entry count of the directory.
type span struct{ offset, size, count uint64 }

// openZIP reads the directory of a ZIP. It refuses impossible values, and values
// another reader would interpret differently. It reads the records around each member,
// but not the members.
func openZIP(r io.ReaderAt, size int64) (*zip.Reader, error) {
	z := layout{r, uint64(max(size, 0))}
	dir, err := z.end()
	if err != nil {
		return nil, err
	}
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("the end record of the ZIP counts %d members, and its directory holds another number or is damaged: %w", dir.count, err)
	}
	if err := plausible(archive.File); err != nil {
		return nil, err
	}
	members, err := z.directory(dir, archive.File)
	if err != nil {
		return nil, err
	}
	return archive, cmp.Or(checkNames(archive.File), z.walk(members, dir.offset))
}

// layout reads the records of a ZIP.
type layout struct {
	r    io.ReaderAt
	size uint64
}

func (z layout) read(offset uint64, n int) ([]byte, error) {
	b := make([]byte, n)
	if got, err := z.r.ReadAt(b, int64(offset)); got < n {
		return nil, fmt.Errorf("reading %d bytes of the ZIP at byte %d: %w", n, offset, err)
	}
	return b, nil
}

// end reads the end record, and the ZIP64 end record if there is one. It bounds the
// directory before archive/zip reads it.
func (z layout) end() (span, error) {
	b, err := z.read(z.size-min(z.size, endLength), endLength)
	if err != nil || string(b[:4]) != endSignature {
		if begin, err := z.read(0, 2); err != nil || string(begin) != "PK" {
			return span{}, fmt.Errorf("it does not begin as a ZIP: the file of %d bytes is truncated, or not a wheel", z.size)
		}
		return span{}, fmt.Errorf("the end record of the ZIP is not at its end: bytes follow the end record, or the file of %d bytes is truncated, or not a wheel", z.size)
	}
	if u32(b[4:]) != 0 || u16(b[8:]) != u16(b[10:]) || u16(b[20:]) != 0 {
		return span{}, errors.New("the end record of the ZIP names several disks or a missing comment")
	}
	dir := span{uint64(u32(b[16:])), uint64(u32(b[12:])), uint64(u16(b[10:]))}
	ends := z.size - endLength
	locator, err := z.read(ends-min(ends, locatorLength), locatorLength)
	if err == nil && string(locator[:4]) == locatorSignature {
		ends -= min(ends, locatorLength+end64Length)
		if dir, err = z.end64(locator, ends, dir); err != nil {
			return span{}, err
		}
	}
	switch {
	case dir.size > maxDirectory:
		return span{}, fmt.Errorf("the ZIP's directory has %d bytes, above the limit of %d", dir.size, maxDirectory)
	case dir.count > maxMembers:
		return span{}, fmt.Errorf("the ZIP has %d members, above the limit of %d", dir.count, maxMembers)
	case dir.offset > ends || ends-dir.offset != dir.size:
		return span{}, fmt.Errorf("the ZIP's directory is declared as the %d bytes at byte %d, and the end record begins at %d: extra bytes lie before, between or behind, and readers disagree about the directory", dir.size, dir.offset, ends)
	}
	return dir, nil
}

// end64 reads the end record of large ZIPs at the position at. Python uses it wherever
// it is present, and Go only if a value does not fit in the plain record. The record
// must therefore be needed, be where both look, and agree with every value in the plain
// record.
func (z layout) end64(locator []byte, at uint64, plain span) (span, error) {
	if plain.offset != math.MaxUint32 && plain.size != math.MaxUint32 && plain.count != math.MaxUint16 {
		return span{}, errors.New("the ZIP has a second end record, of the kind for more than 4 GiB, which the first does not require: readers disagree about the record to use")
	}
	b, err := z.read(at, end64Length)
	if err != nil {
		return span{}, err
	}
	if u64(locator[8:]) != at || u32(locator[4:]) != 0 || u32(locator[16:]) != 1 ||
		string(b[:4]) != end64Signature || u64(b[4:]) != end64Length-12 || u64(b[16:]) != 0 || u64(b[24:]) != u64(b[32:]) {
		return span{}, errors.New("the end record of the ZIP for more than 4 GiB is not at its declared place, is invalid, or names several disks")
	}
	dir := span{u64(b[48:]), u64(b[40:]), u64(b[32:])}
	differs := func(short, long, mark uint64) bool { return short != long && short != mark }
	if differs(plain.offset, dir.offset, math.MaxUint32) || differs(plain.size, dir.size, math.MaxUint32) || differs(plain.count, dir.count, math.MaxUint16) {
		return span{}, errors.New("the two end records of the ZIP differ: readers disagree about the record to use")
	}
	return dir, nil
}

// A member is a file of archive/zip with its place and its fields in the directory.
type member struct {
	*zip.File
	entry  []byte // without the name, extra fields and comment
	extras map[uint16][]byte
	data   uint64 // where its content begins
}

// directory returns the members in the order of their places, and checks each entry of
// the directory.
func (z layout) directory(dir span, files []*zip.File) ([]member, error) {
	raw, err := z.read(dir.offset, int(dir.size))
	if err != nil {
		return nil, err
	}
	members := make([]member, 0, len(files))
	for _, f := range files {
		length := centralLength + len(f.Name) + len(f.Extra) + len(f.Comment)
		if length > len(raw) {
			break
		}
		m := member{File: f, entry: raw[:centralLength]}
		raw = raw[length:]
		if m.extras, err = readExtras(f.Extra); err != nil {
			return nil, fmt.Errorf("%.300q has %w", f.Name, err)
		}
		if problem := cmp.Or(pathFault(strings.TrimSuffix(m.Name, "/")), m.problem(), m.kindFault()); problem != "" {
			return nil, fmt.Errorf("%.300q %s", f.Name, problem)
		}
		data, err := f.DataOffset()
		if err != nil {
			return nil, fmt.Errorf("%.300q: its place in the directory holds no member", f.Name)
		}
		m.data = uint64(data)
		members = append(members, m)
	}
	if uint64(len(members)) != dir.count || len(members) != len(files) || len(raw) > 0 {
		return nil, fmt.Errorf("the end record of the ZIP counts %d members, and its directory holds another number: readers disagree about the members", dir.count)
	}
	slices.SortStableFunc(members, func(a, b member) int { return cmp.Compare(a.data, b.data) })
	return members, nil
}

// problem returns the first problem of a directory entry, or "".
func (m member) problem() string {
	switch {
	case m.Flags&flagUTF8 == 0 && !isASCII(m.Name):
		return "has a name without the mark for UTF-8: readers disagree about its letters"
	case m.Flags&flagDescriptor != 0:
		return "has its sizes behind it: readers from the front find them in different ways, and the Python index refuses them"
	case m.Flags&^(flagEffort|flagUTF8) != 0:
		return fmt.Sprintf("has the flags %#x: it is encrypted, or for readers of another kind", m.Flags)
	case m.Method != zip.Store && m.Method != zip.Deflate:
		return fmt.Sprintf("is compressed by method %d, and installers support 0 and 8 (deflate)", m.Method)
	case m.Method == zip.Store && m.CompressedSize64 != m.UncompressedSize64:
		return fmt.Sprintf("is not compressed, but has %d bytes here and %d unpacked", m.CompressedSize64, m.UncompressedSize64)
	case m.ReaderVersion&0xff > maxVersion || u16(m.entry[34:]) != 0:
		return "is for a newer reader, or on another disk"
	case m.Comment != "":
		return "has a comment, which the Python index refuses"
	}
	return ""
}

// kindFault checks the mode as Python does: it uses the upper half of the attributes,
// whatever system wrote them.
func (m member) kindFault() string {
	const kinds, link, file, directory, dos = 0o170000, 0o120000, 0o100000, 0o040000, 0x10
	kind, named := m.ExternalAttrs>>16&kinds, strings.HasSuffix(m.Name, "/")
	switch {
	case kind == link:
		return "is a symbolic link"
	case named && m.UncompressedSize64 > 0:
		return "is a directory with content"
	case named && kind != directory && kind != 0 || !named && kind != file && kind != 0:
		return "has the mode of neither a file nor a directory, or one against its name"
	case !named && m.ExternalAttrs&dos != 0 && kind != file:
		return "is a directory by its attributes and a file by its name"
	}
	return ""
}

// readExtras splits extra fields by id.
func readExtras(data []byte) (map[uint16][]byte, error) {
	fields := map[uint16][]byte{}
	for len(data) > 0 {
		if len(data) < 4 || int(u16(data[2:])) > len(data)-4 {
			return nil, errors.New("a truncated extra field")
		}
		id, n := u16(data), int(u16(data[2:]))
		if _, twice := fields[id]; twice {
			return nil, fmt.Errorf("the extra field %#04x twice: readers disagree about the field to use", id)
		}
		if !slices.Contains(plainExtras, id) {
			return nil, fmt.Errorf("the extra field %#04x, which changes its name or meaning for some readers", id)
		}
		fields[id], data = data[4:4+n], data[4+n:]
	}
	return fields, nil
}

// checkNames refuses repeated names, and names used for both a file and a directory. It
// compares case-sensitively, as the file systems of Linux do.
func checkNames(members []*zip.File) error {
	files := make(map[string]bool, len(members))
	for _, m := range members {
		if files[m.Name] {
			return fmt.Errorf("%.300q is in the ZIP 2 times: readers disagree about the member to use", m.Name)
		}
		files[m.Name] = true
	}
	for _, m := range members {
		for i, c := range m.Name {
			if c == '/' && files[m.Name[:i]] {
				return fmt.Errorf("%.300q is a file in the ZIP, and a directory for %.300q", m.Name[:i], m.Name)
			}
		}
	}
	return nil
}

// walk reads the members from first to last, as uv does, up to the directory.
func (z layout) walk(members []member, directory uint64) error {
	at := uint64(0)
	for _, m := range members {
		end, err := z.member(m, at)
		if err == nil && end > directory {
			err = fmt.Errorf("its %d bytes run into the directory", m.CompressedSize64)
		}
		if err != nil {
			return fmt.Errorf("%.300q: %w", m.Name, err)
		}
		at = end
	}
	if at != directory {
		return fmt.Errorf("%d bytes before the directory of the ZIP are missing in it, and readers from the front unpack them", directory-at)
	}
	return nil
}

// member compares the records around the member at the position at with the directory,
// and returns the position of the next one. The header before the member and the entry
// have flags, method, time, checksum, sizes and the length of the name in one order.
func (z layout) member(m member, at uint64) (uint64, error) {
	header, err := z.read(at, localLength)
	if err != nil {
		return 0, err
	}
	names, extras := int(u16(header[26:])), int(u16(header[28:]))
	offset := u32(m.entry[42:])
	if m.data != at+localLength+uint64(names+extras) || offset != math.MaxUint32 && uint64(offset) != at {
		return 0, fmt.Errorf("the directory of the ZIP has it at byte %d, and readers from the front expect it at byte %d: members overlap, or unnamed bytes lie between them, and readers from the front unpack those", offset, at)
	}
	rest, err := z.read(at+localLength, names+extras)
	if err != nil {
		return 0, err
	}
	fields, err := readExtras(rest[names:])
	if err != nil {
		return 0, fmt.Errorf("it has %w", err)
	}
	large := fields[zip64Extra]
	switch sizes := slices.Concat(long(m.UncompressedSize64), long(m.CompressedSize64)); {
	case !m.isMarked(at), large != nil && !bytes.Equal(large, sizes), large == nil && max(m.UncompressedSize64, m.CompressedSize64) >= math.MaxUint32:
		return 0, errors.New("it has two sizes or places: readers disagree about its end")
	case large != nil && u64(header[18:]) == math.MaxUint64: // Python leaves room before it knows the sizes
		copy(header[18:26], m.entry[20:28])
	}
	if string(rest[:names]) != m.Name {
		return 0, fmt.Errorf("its own header names it %.300q: pip uses the directory, uv the header", rest[:names])
	}
	if string(header[:4]) != localSignature || !bytes.Equal(header[6:28], m.entry[8:30]) {
		return 0, errors.New("its own header differs from the directory in flags, method, time, checksum or sizes: pip uses the directory, uv the header")
	}
	return m.data + m.CompressedSize64, nil
}

func long(value uint64) []byte { return binary.LittleEndian.AppendUint64(nil, value) }

// isMarked compares the extra field for large values in the directory with the marks
// for such values. It has a value for each mark.
func (m member) isMarked(offset uint64) bool {
	var values []byte
	for _, v := range []struct {
		at    int
		value uint64
	}{{24, m.UncompressedSize64}, {20, m.CompressedSize64}, {42, offset}} {
		if u32(m.entry[v.at:]) == math.MaxUint32 {
			values = append(values, long(v.value)...)
		}
	}
	return bytes.Equal(m.extras[zip64Extra], values)
}
