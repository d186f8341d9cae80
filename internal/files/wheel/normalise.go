package wheel

import (
	"archive/zip"
	"cmp"
	"compress/flate"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"
)

// Packing identifies the output format of [Normalise] and [Described]. A change of the
// value means that the same content may give other bytes.
const Packing = "2: sizes before members, described"

// SBOMs is the directory of statements of a wheel's contents, below .dist-info (PEP 770).
const SBOMs = "sboms/"

// Options control how [Normalise] changes a wheel.
type Options struct {
	// Epoch is the time of every member, usually SOURCE_DATE_EPOCH. ZIP supports the
	// years 1980 to 2106.
	Epoch time.Time
	// Replace gives members new content, and adds names missing in the wheel.
	Replace map[string][]byte
}

// Normalise writes the wheel so that the same content gives the same bytes, independent
// of the order, times, modes and compression of the original. The output has sorted
// names with .dist-info last, a new RECORD at the very end, one time, and modes 0644 or
// 0755. It leaves out directory entries and signatures of the old RECORD. The bytes
// also depend on the deflate implementation of the Go release that built the tool.
func Normalise(dst io.Writer, w *Wheel, opts Options) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("normalising %s: %w", w.Name, err)
		}
	}()
	if w.DistInfo == "" || len(w.infoDirs) != 1 {
		return fmt.Errorf("it has %d .dist-info directories, want 1", len(w.infoDirs))
	}
	files, err := selection(w.Files, w.DistInfo, opts.Replace)
	if err != nil {
		return err
	}
	spool, err := os.CreateTemp("", "wheel-packed-*")
	if err != nil {
		return err
	}
	defer spool.Close()
	if err := os.Remove(spool.Name()); err != nil {
		return err
	}
	out := writer{zip.NewWriter(dst), time.Unix(min(max(opts.Epoch.Unix(), firstTime), lastTime), 0).UTC(), spool}
	var lines []recordLine
	for _, f := range files {
		fill := func(dst io.Writer) error { return w.Copy(dst, f.Name) }
		if data, replaced := opts.Replace[f.Name]; replaced {
			fill = copied(data)
		}
		line, err := out.write(f.Name, f.Mode, fill)
		if err != nil {
			return err
		}
		lines = append(lines, line)
	}
	self := w.DistInfo + "/RECORD"
	if _, err := out.write(self, 0, copied(formatRecord(lines, self))); err != nil {
		return err
	}
	return out.zip.Close()
}

// selection returns the files to write, in order, without RECORD. A file of replace that
// the wheel has keeps its mode.
func selection(files []File, distInfo string, replace map[string][]byte) ([]File, error) {
	var problems []string
	chosen := map[string]File{}
	for _, f := range files {
		chosen[f.Name] = f
	}
	for name := range replace {
		if problem := pathFault(name); problem != "" || strings.HasSuffix(name, "/") {
			problems = append(problems, fmt.Sprintf("the new file %q %s", name, cmp.Or(problem, "is a directory")))
		}
		if unhashed(name, distInfo) {
			problems = append(problems, fmt.Sprintf("the new file %q would be overwritten: RECORD is generated from the written files", name))
		}
		chosen[name] = File{Name: name, Mode: chosen[name].Mode}
	}
	if len(problems) > 0 {
		slices.Sort(problems)
		return nil, errors.New(strings.Join(problems, "; "))
	}
	maps.DeleteFunc(chosen, func(name string, _ File) bool { return unhashed(name, distInfo) })
	inInfo := func(f File) bool { return strings.HasPrefix(f.Name, distInfo+"/") }
	return slices.SortedFunc(maps.Values(chosen), func(a, b File) int {
		switch {
		case inInfo(a) == inInfo(b):
			return cmp.Compare(a.Name, b.Name)
		case inInfo(a): // .dist-info is last, as PEP 427 recommends: tools amend it without rewriting the rest
			return 1
		}
		return -1
	}), nil
}

// copied returns a function that writes data.
func copied(data []byte) func(io.Writer) error {
	return func(dst io.Writer) error {
		_, err := dst.Write(data)
		return err
	}
}

// writer writes members that differ only in name, content and the executable bit. The
// sizes of a member precede its content, as the Python index requires for uploads.
// writer therefore first compresses the member to the spool, an unlinked temporary
// file.
type writer struct {
	zip   *zip.Writer
	epoch time.Time
	spool *os.File
}

// Constants of a member's header: the version of the format needed to unpack it, and
// the extra field with its time in seconds (APPNOTE.TXT 4.4.3, 4.5.2).
const (
	unpackedBy = 20
	timeExtra  = 0x5455
	maxMember  = math.MaxUint32 - 1 // bytes that fit in a header without an extra field
)

// write compresses a member to the spool, writes it and returns its line of RECORD.
func (w writer) write(name string, mode fs.FileMode, fill func(io.Writer) error) (recordLine, error) {
	if _, err := w.spool.Seek(0, io.SeekStart); err != nil {
		return recordLine{}, err
	}
	var packed, plain counter
	crc, sum := crc32.NewIEEE(), sha256.New()
	deflate, err := flate.NewWriter(io.MultiWriter(w.spool, &packed), level)
	if err == nil {
		err = fill(io.MultiWriter(deflate, crc, sum, &plain))
	}
	if err == nil {
		err = deflate.Close()
	}
	if err == nil && max(packed, plain) > maxMember {
		err = fmt.Errorf("%.300q has %d bytes, %d packed: indexes refuse members of 4 GiB", name, plain, packed)
	}
	if err != nil {
		return recordLine{}, err
	}
	h := &zip.FileHeader{
		Name: name, Method: zip.Deflate, Modified: w.epoch, ReaderVersion: unpackedBy,
		CRC32: crc.Sum32(), CompressedSize64: uint64(packed), UncompressedSize64: uint64(plain),
	}
	t := w.epoch // in the format of the older fields, with a resolution of two seconds
	h.ModifiedDate = uint16(t.Day() + int(t.Month())<<5 + (t.Year()-1980)<<9)
	h.ModifiedTime = uint16(t.Second()/2 + t.Minute()<<5 + t.Hour()<<11)
	h.Extra = binary.LittleEndian.AppendUint32([]byte{timeExtra & 0xff, timeExtra >> 8, 5, 0, 1}, uint32(w.epoch.Unix()))
	if !isASCII(name) {
		h.Flags |= flagUTF8
	}
	h.SetMode(0o644)
	if mode&0o111 != 0 {
		h.SetMode(0o755)
	}
	h.CreatorVersion = h.CreatorVersion&0xff00 | unpackedBy
	member, err := w.zip.CreateRaw(h)
	if err == nil {
		_, err = io.Copy(member, io.NewSectionReader(w.spool, 0, int64(packed)))
	}
	return lineOf(name, sum.Sum(nil), int64(plain)), err
}

// level is the compression level of archive/zip. With another level, the same content
// would give other bytes.
const level = 5

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > '~' }) < 0
}

// The first time of the older field, and the last one of the extended field, rounded to the
// two seconds of the older one, in seconds.
const (
	firstTime = 315532800
	lastTime  = math.MaxUint32 - 1
)
