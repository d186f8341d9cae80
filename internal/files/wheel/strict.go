package wheel

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// A ZIP describes its members in up to four places: before each member, after it, in
// the directory at the end, and in the end record. pip reads the directory, and uv
// reads the members from first to last. If the places contradict each other, installers
// see different wheels, so this package refuses the ZIP.
//
// The rules follow those of the Python index for uploads, with three differences:
//
//   - The index accepts an archive comment, and this package does not. No wheel in use
//     has one.
//   - The index accepts any well-formed extra field, and this package only plainExtras.
//     Wheels in use need no other.
//   - The index refuses every data descriptor. uv and pip read descriptors, and Python
//     and Go write them to outputs that cannot seek. This package accepts a descriptor
//     if it agrees with the directory and the member is compressed, because only then
//     can a reader from the front find the end of the member. The wheels of this
//     program have no descriptors.

// Records of a ZIP (APPNOTE.TXT 4.3) and the lengths of their fixed parts.
const (
	localSignature      = "PK\x03\x04"
	descriptorSignature = "PK\x07\x08"
	centralSignature    = "PK\x01\x02"
	end64Signature      = "PK\x06\x06"
	locatorSignature    = "PK\x06\x07"
	endSignature        = "PK\x05\x06"

	localLength   = 30
	centralLength = 46
	end64Length   = 56
	locatorLength = 20
	endLength     = 22
)

// Flags that do not change the content of a member: compression effort, sizes after the
// member, a name in UTF-8.
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

// zipMember is the entry of a member in the directory.
type zipMember struct {
	name           string
	flags, method  uint16
	crc            uint32
	packed, size   uint64
	offset         uint64
	attrs          uint32
	version, disk  uint16
	comment, extra []byte
}

// layout reads the records of a ZIP.
type layout struct {
	r    io.ReaderAt
	size uint64
}

// span is the position and the entry count of the directory.
type span struct{ offset, size, count uint64 }

// checkLayout refuses a ZIP that two readers could interpret differently. It reads the
// directory once and the records around each member, but not the members.
func checkLayout(r io.ReaderAt, size int64) error {
	z := layout{r, uint64(max(size, 0))}
	dir, err := z.end()
	if err != nil {
		return err
	}
	members, err := z.directory(dir)
	if err != nil {
		return err
	}
	if err := checkNames(members); err != nil {
		return err
	}
	slices.SortStableFunc(members, func(a, b zipMember) int { return cmp.Compare(a.offset, b.offset) })
	at := uint64(0)
	for _, m := range members {
		if m.offset != at {
			return fmt.Errorf("the directory of the ZIP has %.300q at byte %d, expected at %d: members overlap, or unnamed bytes lie between them, and readers from the front unpack those", m.name, m.offset, at)
		}
		if at, err = z.member(m, dir.offset); err != nil {
			return fmt.Errorf("%.300q: %w", m.name, err)
		}
	}
	if at != dir.offset {
		return fmt.Errorf("%d bytes before the directory of the ZIP are missing in it, and readers from the front unpack them", dir.offset-at)
	}
	return nil
}

func (z layout) read(offset uint64, n int) ([]byte, error) {
	if offset > z.size || uint64(n) > z.size-offset {
		return nil, fmt.Errorf("the ZIP ends before byte %d", offset+uint64(n))
	}
	b := make([]byte, n)
	_, err := z.r.ReadAt(b, int64(offset))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b, nil
}

// end reads the end record, and the ZIP64 end record if there is one.
func (z layout) end() (span, error) {
	tail, err := z.read(z.size-min(z.size, math.MaxUint16+endLength), int(min(z.size, math.MaxUint16+endLength)))
	if err != nil {
		return span{}, err
	}
	switch i := bytes.LastIndex(tail, []byte(endSignature)); {
	case i < 0 || len(tail)-i < endLength:
		return span{}, fmt.Errorf("the ZIP has no directory at its end: the file of %d bytes is truncated, or not a wheel", z.size)
	case len(tail)-i > endLength:
		return span{}, fmt.Errorf("%d bytes follow the end record of the ZIP: readers search its directory in different places", len(tail)-i-endLength)
	}
	b := tail[len(tail)-endLength:]
	u16, u32 := binary.LittleEndian.Uint16, binary.LittleEndian.Uint32
	if u32(b[4:]) != 0 || u16(b[8:]) != u16(b[10:]) || u16(b[20:]) != 0 {
		return span{}, errors.New("the end record of the ZIP names several disks or a missing comment")
	}
	dir := span{uint64(u32(b[16:])), uint64(u32(b[12:])), uint64(u16(b[10:]))}
	ends := z.size - endLength
	if ends >= locatorLength {
		locator, err := z.read(ends-locatorLength, locatorLength)
		if err != nil {
			return span{}, err
		}
		if string(locator[:4]) == locatorSignature {
			if dir, ends, err = z.end64(locator, ends-locatorLength, dir); err != nil {
				return span{}, err
			}
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

// end64 reads the end record of large ZIPs. Python uses it wherever it is present, and
// Go only if a value does not fit in the plain record. The record must therefore be
// needed, be where both look, and agree with every value in the plain record.
func (z layout) end64(locator []byte, ends uint64, plain span) (span, uint64, error) {
	u32, u64 := binary.LittleEndian.Uint32, binary.LittleEndian.Uint64
	if plain.offset != math.MaxUint32 && plain.size != math.MaxUint32 && plain.count != math.MaxUint16 {
		return span{}, 0, errors.New("the ZIP has a second end record, of the kind for more than 4 GiB, which the first does not require: readers disagree about the record to use")
	}
	if u64(locator[8:]) != ends-min(ends, end64Length) || u32(locator[4:]) != 0 || u32(locator[16:]) != 1 {
		return span{}, 0, errors.New("the end record of the ZIP for more than 4 GiB is not at its declared place")
	}
	b, err := z.read(ends-min(ends, end64Length), end64Length)
	if err != nil {
		return span{}, 0, err
	}
	if string(b[:4]) != end64Signature || u64(b[4:]) != end64Length-12 || u64(b[16:]) != 0 || u64(b[24:]) != u64(b[32:]) {
		return span{}, 0, errors.New("the end record of the ZIP for more than 4 GiB is invalid, or names several disks")
	}
	dir := span{u64(b[48:]), u64(b[40:]), u64(b[32:])}
	if differs(plain.offset, dir.offset, math.MaxUint32) || differs(plain.size, dir.size, math.MaxUint32) || differs(plain.count, dir.count, math.MaxUint16) {
		return span{}, 0, errors.New("the two end records of the ZIP differ: readers disagree about the record to use")
	}
	return dir, ends - end64Length, nil
}

// differs reports whether a short value equals neither the long value nor the mark for
// a long value.
func differs(short, long, mark uint64) bool { return short != long && short != mark }

// directory reads the entries of the directory.
func (z layout) directory(dir span) ([]zipMember, error) {
	r := bufio.NewReader(io.NewSectionReader(z.r, int64(dir.offset), int64(dir.size)))
	var members []zipMember
	for left := dir.size; left > 0; {
		m, n, err := readCentral(r)
		if err != nil {
			return nil, fmt.Errorf("reading entry %d of the ZIP's directory: %w", len(members)+1, err)
		}
		if problem := m.problem(); problem != "" {
			return nil, fmt.Errorf("%.300q %s", m.name, problem)
		}
		m.comment, m.extra = nil, nil
		members, left = append(members, m), left-min(left, n)
		if uint64(len(members)) > dir.count {
			break
		}
	}
	if uint64(len(members)) != dir.count {
		return nil, fmt.Errorf("the end record of the ZIP counts %d members, and its directory holds another number: readers disagree about the members", dir.count)
	}
	return members, nil
}

func readCentral(r io.Reader) (m zipMember, length uint64, err error) {
	var b [centralLength]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return m, 0, err
	}
	if string(b[:4]) != centralSignature {
		return m, 0, fmt.Errorf("it begins with %q", b[:4])
	}
	u16, u32 := binary.LittleEndian.Uint16, binary.LittleEndian.Uint32
	names, extras, comments := int(u16(b[28:])), int(u16(b[30:])), int(u16(b[32:]))
	rest := make([]byte, names+extras+comments)
	if _, err := io.ReadFull(r, rest); err != nil {
		return m, 0, err
	}
	return zipMember{
		name: string(rest[:names]), extra: rest[names : names+extras], comment: rest[names+extras:],
		version: u16(b[6:]), flags: u16(b[8:]), method: u16(b[10:]), disk: u16(b[34:]),
		crc: u32(b[16:]), packed: uint64(u32(b[20:])), size: uint64(u32(b[24:])), attrs: u32(b[38:]), offset: uint64(u32(b[42:])),
	}, uint64(len(b) + len(rest)), nil
}

// problem returns the first problem of a directory entry, or "". It also replaces the
// marks for long values by the values in the extra field.
func (m *zipMember) problem() string {
	extras, err := readExtras(m.extra)
	if err != nil {
		return "has " + err.Error()
	}
	if long, ok := extras[zip64Extra]; ok {
		if !m.lengthen(long) {
			return "has two sizes or places in the directory: readers disagree about them"
		}
	}
	switch {
	case !utf8.ValidString(m.name):
		return "has a name in invalid UTF-8"
	case m.flags&flagUTF8 == 0 && strings.ContainsFunc(m.name, func(r rune) bool { return r >= utf8.RuneSelf }):
		return "has a name without the mark for UTF-8: readers disagree about its letters"
	case m.flags&^(flagEffort|flagDescriptor|flagUTF8) != 0:
		return fmt.Sprintf("has the flags %#x: it is encrypted, or for readers of another kind", m.flags)
	case m.method != 0 && m.method != 8:
		return fmt.Sprintf("is compressed by method %d, and installers support 0 and 8 (deflate)", m.method)
	case m.method == 0 && m.packed != m.size:
		return fmt.Sprintf("is not compressed, but has %d bytes here and %d unpacked", m.packed, m.size)
	case m.method == 0 && m.flags&flagDescriptor != 0:
		return "is not compressed and has its size behind it: readers from the front cannot find its end"
	case m.version&0xff > maxVersion || m.disk != 0:
		return "is for a newer reader, or on another disk"
	case len(m.comment) > 0:
		return "has a comment, which the Python index refuses"
	}
	if problem := pathFault(strings.TrimSuffix(m.name, "/")); problem != "" {
		return problem
	}
	return m.kindFault()
}

// lengthen takes long values from the extra field: unpacked size, packed size and
// offset, each present if its short form is the mark. Go always writes the offset.
func (m *zipMember) lengthen(long []byte) bool {
	for _, value := range []*uint64{&m.size, &m.packed, &m.offset} {
		if *value == math.MaxUint32 {
			if len(long) < 8 {
				return false
			}
			*value, long = binary.LittleEndian.Uint64(long), long[8:]
		} else if value == &m.offset && len(long) == 8 && binary.LittleEndian.Uint64(long) == m.offset {
			long = nil
		}
	}
	return len(long) == 0
}

// kindFault checks the mode as Python does: it uses the upper half of the attributes,
// whatever system wrote them.
func (m *zipMember) kindFault() string {
	const kinds, link, file, directory, dos = 0o170000, 0o120000, 0o100000, 0o040000, 0x10
	kind, named := m.attrs>>16&kinds, strings.HasSuffix(m.name, "/")
	switch {
	case kind == link:
		return "is a symbolic link"
	case named && m.size > 0:
		return "is a directory with content"
	case named && kind != directory && kind != 0 || !named && kind != file && kind != 0:
		return "has the mode of neither a file nor a directory, or one against its name"
	case !named && m.attrs&dos != 0 && kind != file:
		return "is a directory by its attributes and a file by its name"
	}
	return ""
}

// readExtras splits extra fields by id.
func readExtras(data []byte) (map[uint16][]byte, error) {
	fields := map[uint16][]byte{}
	for len(data) > 0 {
		if len(data) < 4 || int(binary.LittleEndian.Uint16(data[2:])) > len(data)-4 {
			return nil, errors.New("a truncated extra field")
		}
		id, n := binary.LittleEndian.Uint16(data), int(binary.LittleEndian.Uint16(data[2:]))
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
// compares case-sensitively, as the file systems of Linux do. [Wheel.Check] covers
// wheels for other systems.
func checkNames(members []zipMember) error {
	files := make(map[string]bool, len(members))
	for _, m := range members {
		if files[m.name] {
			return fmt.Errorf("%.300q is in the ZIP 2 times: readers disagree about the member to use", m.name)
		}
		files[m.name] = true
	}
	for _, m := range members {
		name := strings.TrimSuffix(m.name, "/")
		if name != m.name && files[name] {
			return fmt.Errorf("%.300q is a file and a directory in the ZIP", name)
		}
		for i := range len(name) {
			if name[i] == '/' && files[name[:i]] {
				return fmt.Errorf("%.300q is a file in the ZIP, and a directory for %.300q", name[:i], m.name)
			}
		}
	}
	return nil
}

// member compares the records before and after a member with the directory, and returns
// the position of the next member.
func (z layout) member(m zipMember, limit uint64) (uint64, error) {
	b, err := z.read(m.offset, localLength)
	if err != nil {
		return 0, err
	}
	u16, u32 := binary.LittleEndian.Uint16, binary.LittleEndian.Uint32
	if string(b[:4]) != localSignature {
		return 0, errors.New("its place in the directory holds no member")
	}
	names, extras := int(u16(b[26:])), int(u16(b[28:]))
	rest, err := z.read(m.offset+localLength, names+extras)
	if err != nil {
		return 0, err
	}
	fields, err := readExtras(rest[names:])
	if err != nil {
		return 0, fmt.Errorf("it has %w", err)
	}
	long, large := fields[zip64Extra]
	local := zipMember{crc: u32(b[14:]), packed: uint64(u32(b[18:])), size: uint64(u32(b[22:]))}
	switch {
	case string(rest[:names]) != m.name:
		return 0, fmt.Errorf("its own header names it %.300q: pip uses the directory, uv the header", rest[:names])
	case u16(b[6:]) != m.flags || u16(b[8:]) != m.method:
		return 0, fmt.Errorf("its own header has flags %#x and method %d, the directory %#x and %d", u16(b[6:]), u16(b[8:]), m.flags, m.method)
	case large && !local.longer(long):
		return 0, errors.New("its own header has two sizes: readers disagree about the size to use")
	case local.crc != m.crc && (m.flags&flagDescriptor == 0 || local.crc != 0):
		return 0, fmt.Errorf("its own header has the checksum %08x, the directory %08x", local.crc, m.crc)
	case (local.packed != m.packed || local.size != m.size) && (m.flags&flagDescriptor == 0 || local.packed != 0 || local.size != 0):
		return 0, fmt.Errorf("its own header gives it %d bytes, unpacked %d, the directory %d and %d: readers disagree about its end", local.packed, local.size, m.packed, m.size)
	}
	ends := m.offset + localLength + uint64(names+extras)
	if ends > limit || m.packed > limit-ends {
		return 0, fmt.Errorf("its %d bytes run into the directory", m.packed)
	}
	if m.flags&flagDescriptor == 0 {
		return ends + m.packed, nil
	}
	return z.descriptor(m, ends+m.packed, large)
}

// longer takes the sizes of a member's local header from the extra field, which must
// hold both (APPNOTE.TXT 4.5.3). The header itself must have the marks or the same
// sizes.
func (m *zipMember) longer(long []byte) bool {
	if len(long) != 16 {
		return false
	}
	size, packed := binary.LittleEndian.Uint64(long), binary.LittleEndian.Uint64(long[8:])
	if differs(m.size, size, math.MaxUint32) || differs(m.packed, packed, math.MaxUint32) {
		return false
	}
	m.size, m.packed = size, packed
	return true
}

// descriptor reads the sizes after a member. They have eight bytes each if the local
// header has a ZIP64 extra field or if the sizes need them. Go considers only the
// sizes.
func (z layout) descriptor(m zipMember, at uint64, large bool) (uint64, error) {
	want := binary.LittleEndian.AppendUint32([]byte(descriptorSignature), m.crc)
	if large || m.packed >= math.MaxUint32 || m.size >= math.MaxUint32 {
		want = binary.LittleEndian.AppendUint64(want, m.packed)
		want = binary.LittleEndian.AppendUint64(want, m.size)
	} else {
		want = binary.LittleEndian.AppendUint32(want, uint32(m.packed))
		want = binary.LittleEndian.AppendUint32(want, uint32(m.size))
	}
	b, err := z.read(at, len(want))
	if err != nil {
		return 0, err
	}
	if !bytes.Equal(b, want) {
		return 0, errors.New("the sizes and checksum behind it differ from the directory: readers disagree about its end")
	}
	return at + uint64(len(want)), nil
}
