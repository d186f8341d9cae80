package wheel

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// centralSignature begins an entry of the directory, which archive/zip reads.
const centralSignature = "PK\x01\x02"

// A handMade ZIP is written record by record, so that each record can contradict the
// others.
type handMade struct {
	members  []handMember
	before   []byte                  // bytes before the first member
	between  []byte                  // bytes between the members and the directory
	end      func(span) []byte       // replaces the end record
	behind   []byte                  // bytes after the end record
	central  func(all []byte) []byte // edits the directory
	reversed bool                    // reverse the directory
}

// A handMember is a member with headers that can contradict it and each other.
type handMember struct {
	name, text string
	stored     bool
	flags      uint16              // additional flags
	padding    []byte              // after the compressed bytes, and counted with them
	mode       fs.FileMode         // Unix mode
	extra      []byte              // in both headers
	local      func([]byte) []byte // edits the local header
	central    func([]byte) []byte // edits the directory entry
	after      []byte              // after the member, and counted nowhere
}

func deflated(text string) []byte {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, 9) // 9 is a valid level
	w.Write([]byte(text))          // writing to a buffer does not fail
	w.Close()
	return b.Bytes()
}

// changed applies a function, which may be nil.
func changed(b []byte, by func([]byte) []byte) []byte {
	if by == nil {
		return b
	}
	return by(b)
}

// bytes writes the ZIP.
func (h handMade) bytes() []byte {
	out := slices.Clone(h.before)
	var entries [][]byte
	for _, m := range h.members {
		at := len(out)
		packed := append(m.packed(), m.padding...)
		sum, sizes := crc32.ChecksumIEEE([]byte(m.text)), [2]uint32{uint32(len(packed)), uint32(len(m.text))}
		out = append(out, changed(m.header(localSignature, m.flags, sum, sizes, nil), m.local)...)
		out = slices.Concat(out, packed, m.after)
		tail := make([]byte, 14) // comment, disk, two kinds of attributes, offset
		binary.LittleEndian.PutUint32(tail[6:], uint32(m.attributes()))
		binary.LittleEndian.PutUint32(tail[10:], uint32(at))
		entries = append(entries, changed(m.header(centralSignature, m.flags, sum, sizes, tail), m.central))
	}
	out = append(out, h.between...)
	at := uint64(len(out))
	if h.reversed {
		slices.Reverse(entries)
	}
	out = append(out, changed(slices.Concat(entries...), h.central)...)
	dir := span{at, uint64(len(out)) - at, uint64(len(entries))}
	if h.end != nil {
		return append(append(out, h.end(dir)...), h.behind...)
	}
	return append(append(out, endOf(dir)...), h.behind...)
}

func (m handMember) packed() []byte {
	if m.stored {
		return []byte(m.text)
	}
	return deflated(m.text)
}

func (m handMember) attributes() uint64 {
	kind := uint64(0o100644)
	switch {
	case m.mode&fs.ModeSymlink != 0:
		kind = 0o120777
	case m.mode&fs.ModeNamedPipe != 0:
		kind = 0o010644
	case m.mode.IsDir():
		kind = 0o040755
	}
	return kind << 16
}

// header writes the fields common to both headers. tail holds the additional fields of
// a directory entry.
func (m handMember) header(signature string, flags uint16, sum uint32, sizes [2]uint32, tail []byte) []byte {
	b := []byte(signature)
	if tail != nil {
		b = append(b, 20, 3) // made by Unix
	}
	method := uint16(8)
	if m.stored {
		method = 0
	}
	b = binary.LittleEndian.AppendUint16(b, 20)
	b = binary.LittleEndian.AppendUint16(b, flags)
	b = binary.LittleEndian.AppendUint16(b, method)
	b = append(b, 0, 0, 0x21, 0) // the first time
	b = binary.LittleEndian.AppendUint32(b, sum)
	b = binary.LittleEndian.AppendUint32(b, sizes[0])
	b = binary.LittleEndian.AppendUint32(b, sizes[1])
	b = binary.LittleEndian.AppendUint16(b, uint16(len(m.name)))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(m.extra)))
	return slices.Concat(b, tail, []byte(m.name), m.extra)
}

func endOf(dir span) []byte {
	b := append([]byte(endSignature), 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(dir.count))
	b = binary.LittleEndian.AppendUint16(b, uint16(dir.count))
	b = binary.LittleEndian.AppendUint32(b, uint32(dir.size))
	b = binary.LittleEndian.AppendUint32(b, uint32(dir.offset))
	return append(b, 0, 0)
}

// end64Of returns the end record for more than 4 GiB, to be placed at at, and its
// locator.
func end64Of(dir span, at uint64) []byte {
	b := binary.LittleEndian.AppendUint64([]byte(end64Signature), end64Length-12)
	b = append(b, 45, 3, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	for _, v := range []uint64{dir.count, dir.count, dir.size, dir.offset} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	b = append(append(b, locatorSignature...), 0, 0, 0, 0)
	return append(binary.LittleEndian.AppendUint64(b, at), 1, 0, 0, 0)
}

func extra(id uint16, data string) []byte {
	b := binary.LittleEndian.AppendUint16(nil, id)
	return append(binary.LittleEndian.AppendUint16(b, uint16(len(data))), data...)
}

// put returns a function that overwrites bytes with a value.
func put(at int, value ...byte) func([]byte) []byte {
	return func(b []byte) []byte { copy(b[at:], value); return b }
}

// byHand returns a wheel with one module and its .dist-info.
func byHand() handMade {
	var h handMade
	for _, e := range withRecord([]entry{
		{"horovod/a.py", "import os\nimport os\nimport os\n", 0o644},
		{info + "METADATA", metadata, 0o644},
		{info + "WHEEL", wheelTxt, 0o644},
	}) {
		h.members = append(h.members, handMember{name: e.name, text: e.text})
	}
	return h
}

// A zipCase is a ZIP and the reason to refuse it, "" for one accepted by all readers.
type zipCase struct {
	name   string
	change func(*handMade)
	says   string
}

// first changes the module.
func first(name, says string, change func(*handMember)) zipCase {
	return zipCase{name, func(h *handMade) { change(&h.members[0]) }, says}
}

// more adds members.
func more(name, says string, all ...handMember) zipCase {
	return zipCase{name, func(h *handMade) { h.members = append(h.members, all...) }, says}
}

func zipCases() []zipCase {
	return slices.Concat(plainZIPs(), endCases(), headerCases(), placeCases(), nameCases())
}

// plainZIPs are the forms written by common tools.
func plainZIPs() []zipCase {
	large := func(text string, unpacked, packed uint64) []byte {
		b := binary.LittleEndian.AppendUint64(nil, unpacked)
		return extra(zip64Extra, string(binary.LittleEndian.AppendUint64(b, packed))+text)
	}
	return []zipCase{
		{"as Python writes it", func(*handMade) {}, ""},
		{"the directory in another order", func(h *handMade) { h.reversed = true }, ""},
		first("stored", "", func(m *handMember) { m.stored = true }),
		first("times and owners, as Info-ZIP writes them", "", func(m *handMember) {
			m.extra = slices.Concat(extra(0x5455, "\x01abcd"), extra(0x7875, "\x01\x04abcd\x04abcd"))
		}),
		first("room for large sizes, as Python leaves it", "", func(m *handMember) {
			packed := uint64(len(m.packed()))
			m.local = func(b []byte) []byte {
				b = append(put(18, 255, 255, 255, 255, 255, 255, 255, 255)(b), large("", uint64(len(m.text)), packed)...)
				return put(28, 20)(b)
			}
		}),
		more("a directory", "", handMember{name: "horovod/", stored: true, mode: fs.ModeDir}),
		more("letters of the world", "", handMember{name: "horovod/ä.py", flags: flagUTF8}),
		{"a required end record for more than 4 GiB", func(h *handMade) {
			h.end = func(dir span) []byte {
				b := end64Of(dir, dir.offset+dir.size)
				dir.count, dir.offset, dir.size = 0xffff, 0xffffffff, 0xffffffff
				return append(b, endOf(dir)...)
			}
		}, ""},
	}
}

// endCases state a wrong position of the directory.
func endCases() []zipCase {
	other := func(dir span) span { dir.count--; return dir }
	return []zipCase{
		{"a second end record for more than 4 GiB", func(h *handMade) {
			h.end = func(dir span) []byte { return append(end64Of(dir, dir.offset+dir.size), endOf(dir)...) }
		}, "the first does not require"},
		{"a second end record with another directory", func(h *handMade) {
			evil := byHand()
			evil.members[0].text = "evil"
			h.end = func(dir span) []byte {
				b := evil.bytes()
				return slices.Concat(b, end64Of(dir, dir.offset+dir.size+uint64(len(b))), endOf(dir))
			}
		}, "does not require"},
		{"two different end records", func(h *handMade) {
			h.end = func(dir span) []byte {
				b := end64Of(dir, dir.offset+dir.size)
				dir = other(dir)
				dir.offset = 0xffffffff
				return append(b, endOf(dir)...)
			}
		}, "two end records of the ZIP differ"},
		{"an end record in a wrong place", func(h *handMade) {
			h.end = func(dir span) []byte {
				b := end64Of(dir, dir.offset)
				dir.offset = 0xffffffff
				return append(b, endOf(dir)...)
			}
		}, "is not at its declared place"},
		{"an end record of several disks", func(h *handMade) {
			h.end = func(dir span) []byte { return put(4, 1)(endOf(dir)) }
		}, "several disks"},
		{"a count one below the directory's", func(h *handMade) {
			h.end = func(dir span) []byte { return endOf(other(dir)) }
		}, "counts 3 members"},
		{"a count one above the directory's", func(h *handMade) {
			h.end = func(dir span) []byte { dir.count++; return endOf(dir) }
		}, "counts 5 members"},
		{"two end records", func(h *handMade) {
			h.end = func(dir span) []byte { return append(endOf(dir), endOf(dir)...) }
		}, "extra bytes lie before, between or behind"},
		{"two directories", func(h *handMade) { h.central = func(b []byte) []byte { return append(b, b...) } }, "counts 4 members"},
		{"a comment", func(h *handMade) {
			h.end = func(dir span) []byte { return append(put(20, 5)(endOf(dir)), "hello"...) }
		}, "bytes follow the end record"},
		{"bytes behind the end", func(h *handMade) { h.behind = []byte("hello") }, "bytes follow the end record"},
		{"another ZIP behind the end", func(h *handMade) {
			evil := byHand()
			evil.members[0].text = "evil"
			h.behind = evil.bytes()
		}, "extra bytes lie before, between or behind"},
		{"a program in front", func(h *handMade) { h.before = []byte("#!/bin/sh\n") }, "expect it at byte 0"},
		{"a program in front and uncounted", func(h *handMade) {
			h.end = func(dir span) []byte { dir.offset--; return endOf(dir) }
		}, "extra bytes lie before, between or behind"},
	}
}

// headerCases have wrong values in the header of a member or in its directory entry.
func headerCases() []zipCase {
	unicode := extra(0x7075, "\x01\x00\x00\x00\x00evil.pth")
	large := extra(zip64Extra, "\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00")
	return []zipCase{
		first("another name in its header", "its own header names it", func(m *handMember) { m.local = put(30, []byte("evil.pth    ")...) }),
		first("other sizes in its header", "differs from the directory", func(m *handMember) { m.local = put(18, 1, 0, 0, 0) }),
		first("another checksum in its header", "differs from the directory", func(m *handMember) { m.local = put(14, 1, 2, 3, 4) }),
		first("another method in its header", "differs from the directory", func(m *handMember) { m.local = put(8, 0) }),
		first("other flags in its header", "differs from the directory", func(m *handMember) { m.local = put(6, 0, 8) }),
		first("no header", "its place in the directory holds no member", func(m *handMember) { m.local = put(0, 'X') }),
		first("a comment of its own", "has a comment", func(m *handMember) { m.central = func(b []byte) []byte { return append(put(32, 1)(b), 'x') } }),
		first("a second name", "extra field 0x7075", func(m *handMember) { m.extra = unicode }),
		first("a second name in the directory", "extra field 0x7075", func(m *handMember) {
			m.central = func(b []byte) []byte { return append(put(30, byte(len(unicode)))(b), unicode...) }
		}),
		first("a second name in its header", "extra field 0x7075", func(m *handMember) {
			m.local = func(b []byte) []byte { return append(put(28, byte(len(unicode)))(b), unicode...) }
		}),
		first("a truncated extra field", "a truncated extra field", func(m *handMember) { m.extra = []byte{1, 0, 9} }),
		first("an extra field twice", "0x5455 twice", func(m *handMember) { m.extra = slices.Repeat(extra(0x5455, "\x00"), 2) }),
		first("a link of a Unix of old", "extra field 0x756e", func(m *handMember) { m.extra = extra(0x756e, "/etc/passwd") }),
		first("large sizes that nobody asked for", "two sizes or places", func(m *handMember) { m.extra = large }),
		first("other large sizes in its header", "two sizes or places", func(m *handMember) {
			m.local = func(b []byte) []byte { return append(put(28, 20)(b), large...) }
		}),
		first("encrypted", "it is encrypted", func(m *handMember) { m.flags = 1 }),
		first("an unknown method", "is compressed by method 99", func(m *handMember) { m.local, m.central = put(8, 99), put(10, 99) }),
		first("another disk", "on another disk", func(m *handMember) { m.central = put(34, 1) }),
		first("a version to come", "for a newer reader", func(m *handMember) { m.central = put(6, 64) }),
		first("stored in other sizes", "is not compressed, but has", func(m *handMember) { m.stored, m.padding = true, []byte("x") }),
		first("its sizes behind it", "has its sizes behind it", func(m *handMember) { m.flags = flagDescriptor }),
	}
}

// placeCases state wrong positions of members.
func placeCases() []zipCase {
	evil := handMade{members: []handMember{{name: "evil.pth", text: "import os"}}, end: func(span) []byte { return nil }, central: func([]byte) []byte { return nil }}
	return []zipCase{
		{"an unlisted member", func(h *handMade) { h.between = evil.bytes() }, "bytes before the directory of the ZIP are missing in it"},
		first("an unlisted member between two", "unnamed bytes lie between", func(m *handMember) { m.after = evil.bytes() }),
		{"two members at one offset", func(h *handMade) { h.members[1].central = put(42, 0, 0, 0, 0) }, "members overlap"},
		{"a member overlaps the next", func(h *handMade) {
			m := &h.members[0]
			n := byte(len(m.packed()) + 40)
			m.local, m.central = put(18, n), put(20, n)
		}, "members overlap"},
		{"a member overlaps the directory", func(h *handMade) {
			m := &h.members[len(h.members)-1]
			m.local, m.central = put(18, 0, 0, 9), put(20, 0, 0, 9)
		}, "run into the directory"},
		{"a member listed twice", func(h *handMade) {
			h.members[1].central = func(b []byte) []byte { return slices.Concat(b, b) }
			h.end = func(dir span) []byte { dir.count++; return endOf(dir) }
		}, "2 times"},
	}
}

// nameCases have names that must not be unpacked.
func nameCases() []zipCase {
	name := func(says, name string) zipCase {
		return more("the name "+name[:min(len(name), 20)], says, handMember{name: name})
	}
	return []zipCase{
		name("is an absolute path", "/etc/passwd"),
		name("leaves the wheel by ..", "horovod/../../x"),
		name("leaves the wheel by ..", ".."),
		name("has a backslash", `horovod\x`),
		name("drive letter", "C:/x"),
		name("is not a plain path", "./x"),
		name("is not a plain path", "horovod//x"),
		name("is not a plain path", ""),
		name("is not a plain path", "/"),
		name("is not a plain path", "."),
		name("control character", "a\x1b[2J"),
		name("control character", "horovod/x.py\x00.txt"),
		name("more than 255 bytes", "horovod/"+strings.Repeat("n", 300)),
		name("a path of more than 1024", strings.Repeat("horovod/", 200)+"x"),
		name("without the mark for UTF-8", "horovod/ä.py"),
		more("a name in no language", "is not a plain path", handMember{name: "horovod/\xff.py", flags: flagUTF8}),
		name("2 times", "horovod/a.py"),
		name("is a file in the ZIP, and a directory for", "horovod/a.py/b.py"),
		more("a file and a directory of one name", "is a file in the ZIP, and a directory for", handMember{name: "horovod/a.py/", stored: true, mode: fs.ModeDir}),
		name("is a file in the ZIP, and a directory for", "horovod/a.py/b/c/d.py"),
		more("a symbolic link", "is a symbolic link", handMember{name: "link", text: "/etc", mode: fs.ModeSymlink}),
		more("a symbolic link of no Unix", "is a symbolic link", handMember{name: "link", text: "/etc", mode: fs.ModeSymlink, central: put(5, 0)}),
		more("a pipe", "the mode of neither a file nor a directory", handMember{name: "pipe", mode: fs.ModeNamedPipe}),
		more("a directory with content", "is a directory with content", handMember{name: "d/", text: "x", mode: fs.ModeDir}),
		more("a directory by its mode alone", "or one against its name", handMember{name: "d", mode: fs.ModeDir}),
		more("a file by its mode alone", "or one against its name", handMember{name: "d/"}),
		more("a directory of DOS", "a directory by its attributes", handMember{name: "d", central: put(38, 0x10, 0, 0, 0)}),
	}
}

// The package refuses ZIPs that two readers can interpret differently, and accepts the
// output of common tools.
func TestZIPsThatReadersReadDifferentlyAreRefused(t *testing.T) {
	for _, c := range zipCases() {
		h := byHand()
		c.change(&h)
		data := h.bytes()
		w, err := read(goodName, bytes.NewReader(data), int64(len(data)))
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.says == "":
			_, err := w.ReadFile("horovod/a.py", 100)
			check.That(t, err == nil, "%s: %v", c.name, err)
		case err == nil || !strings.Contains(err.Error(), c.says):
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
	}
}

// After the end of the compressed bytes, a reader from the front finds the next member.
// A reader of the directory ignores these bytes.
func TestBytesBehindTheEndOfACompressedMemberAreRefused(t *testing.T) {
	h := byHand()
	h.members[0].padding = []byte("hidden")
	data := h.bytes()
	w := must.Get(read(goodName, bytes.NewReader(data), int64(len(data))))(t)
	problems := w.Check()
	check.That(t, len(problems) == 1 && strings.Contains(problems[0], "bytes follow the end of the compressed data"), "%q", problems)
}

// A directory can be as long as the file, and stays in memory.
func TestDirectoryIsBounded(t *testing.T) {
	for says, dir := range map[string]span{
		"200001 members, above the limit": {0, 1, maxMembers + 1},
		"33554433 bytes, above the limit": {0, maxDirectory + 1, 1},
	} {
		data := end64Of(dir, 0)
		data = append(data, endOf(span{0xffffffff, 0xffffffff, 0xffff})...)
		check.Fails(t, openError(data), says)
	}
}

func openError(data []byte) error {
	_, err := openZIP(bytes.NewReader(data), int64(len(data)))
	return err
}

// A wheel with a member of more than 4 GiB is accepted, as Python writes it. Only the
// stated sizes are that large here.
func TestLargeMembersAreRead(t *testing.T) {
	const size, at = 5 << 30, 7
	marks := []byte("\xff\xff\xff\xff\xff\xff\xff\xff")
	m := handMember{name: "a", extra: extra(zip64Extra, string(slices.Concat(long(size), long(size-1))))}
	header := m.header(localSignature, 0, 0, [2]uint32{}, nil)
	copy(header[18:], marks)
	entry := m.header(centralSignature, 0, 0, [2]uint32{}, binary.LittleEndian.AppendUint32(make([]byte, 10), at))
	copy(entry[20:], marks)
	f := &zip.File{FileHeader: zip.FileHeader{Name: "a", CompressedSize64: size - 1, UncompressedSize64: size}}
	extras := must.Get(readExtras(m.extra))(t)
	data := uint64(at + len(header))
	end, err := layout{sparse{at: header}, 0}.member(member{f, entry[:centralLength], extras, data}, at)
	check.That(t, err == nil && end == data+size-1, "%d, want %d, %v", end, data+size-1, err)
}

// sparse is a large file with few bytes, by their position.
type sparse map[int64][]byte

func (s sparse) ReadAt(b []byte, at int64) (int, error) {
	for begin, data := range s {
		if at >= begin && at < begin+int64(len(data)) {
			return copy(b, data[at-begin:]), nil
		}
	}
	return 0, io.EOF
}

// walk reads a ZIP from the front without the directory, as uv does.
func walk(data []byte) (map[string]string, bool) {
	members := map[string]string{}
	for len(data) >= localLength && string(data[:4]) == localSignature {
		method, packed := u16(data[8:]), uint64(u32(data[18:]))
		names, extras := int(u16(data[26:])), int(u16(data[28:]))
		if localLength+names+extras > len(data) {
			return nil, false
		}
		name, fields := string(data[localLength:][:names]), data[localLength+names:][:extras]
		data = data[localLength+names+extras:]
		if packed == 0xffffffff {
			for len(fields) >= 20 && u16(fields) != zip64Extra {
				fields = fields[4+int(u16(fields[2:])):]
			}
			if len(fields) < 20 {
				return nil, false
			}
			packed = u64(fields[12:])
		}
		if _, twice := members[name]; twice || packed > uint64(len(data)) {
			return nil, false
		}
		content := io.Reader(bytes.NewReader(data[:packed]))
		if method != 0 {
			content = flate.NewReader(content)
		}
		text, err := io.ReadAll(content)
		if err != nil {
			return nil, false
		}
		members[name], data = string(text), data[packed:]
	}
	return members, true
}

// Every accepted wheel without a broken member has the same contents for this package,
// for archive/zip, and for a reader from the front.
func FuzzReadersAgree(f *testing.F) {
	for _, c := range zipCases() {
		h := handMade{members: []handMember{{name: "horovod/a.py", text: "a"}, {name: "b", text: "bb"}, {name: "c", stored: true}, {name: "d", text: "d"}}}
		c.change(&h)
		f.Add(h.bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ours, err := openZIP(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		have := map[string]string{}
		for _, m := range ours.File {
			var b bytes.Buffer
			if m.UncompressedSize64 > 1<<20 || copyMember(&b, m) != nil {
				return
			}
			have[m.Name] = b.String()
		}
		theirs, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		must.Hold(t, err == nil && len(theirs.File) == len(have), "archive/zip: %v, %d members of %d", err, len(theirs.File), len(have))
		front, ok := walk(data)
		must.Hold(t, ok && len(front) == len(have), "from the front: %v, %q of %q", ok, front, have)
		for name, text := range have {
			check.That(t, front[name] == text, "%q is %q, from the front %q", name, text, front[name])
		}
	})
}
