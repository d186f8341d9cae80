// Package wheeltest makes wheels from values, for tests with a wheel that differs from
// a good one in a single property.
//
// The package shares no code with internal/files/wheel, because a mistake in shared
// code would stay hidden.
package wheeltest

import (
	"archive/zip"
	"bytes"
	"cmp"
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/csv"
	"hash/crc32"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"builder/test/kit/must"
)

// File is a member of a wheel.
type File struct {
	Name string
	Text string
	Mode fs.FileMode // 0 means 0644
}

// Wheel is a correct wheel, unless a field introduces a problem.
type Wheel struct {
	// Name is the file name. METADATA, WHEEL and the name of the .dist-info directory
	// follow from it.
	Name     string
	Files    []File   // without .dist-info
	Requires []string // values of Requires-Dist in METADATA
	License  string   // in METADATA

	// The following fields introduce problems.
	Version  string                        // in METADATA, in place of the version in Name
	Tags     []string                      // in WHEEL, in place of the tag in Name
	Unlisted []File                        // written, but not in RECORD
	Swapped  map[string]string             // written in place of the content RECORD was made from
	Omitted  []string                      // in RECORD, but not written
	Record   func(lines []string) []string // edits RECORD
}

// Info returns the name of the .dist-info directory.
func (w Wheel) Info() string {
	parts := strings.Split(w.Name, "-")
	return parts[0] + "-" + parts[1] + ".dist-info"
}

// metadata returns the members of .dist-info except RECORD.
func (w Wheel) metadata() []File {
	parts := strings.Split(strings.TrimSuffix(w.Name, ".whl"), "-")
	tags := w.Tags
	if tags == nil {
		tags = []string{strings.Join(parts[len(parts)-3:], "-")}
	}
	var needs strings.Builder
	for _, need := range w.Requires {
		needs.WriteString("Requires-Dist: " + need + "\n")
	}
	if w.License != "" {
		needs.WriteString("License: " + w.License + "\n")
	}
	return []File{
		{Name: w.Info() + "/METADATA", Text: "Metadata-Version: 2.1\nName: " + parts[0] + "\nVersion: " + cmp.Or(w.Version, parts[1]) + "\n" + needs.String()},
		{Name: w.Info() + "/WHEEL", Text: "Wheel-Version: 1.0\nGenerator: wheeltest\nRoot-Is-Purelib: false\nTag: " + strings.Join(tags, "\nTag: ") + "\n"},
	}
}

// Bytes returns the wheel as a file.
func (w Wheel) Bytes() []byte {
	listed := slices.Concat(w.Files, w.metadata())
	record := Record(w.Info()+"/RECORD", listed...)
	if w.Record != nil {
		record.Text = strings.Join(w.Record(slices.Collect(strings.Lines(record.Text))), "")
	}
	var written []File
	for _, f := range slices.Concat(listed, w.Unlisted, []File{record}) {
		if slices.Contains(w.Omitted, f.Name) {
			continue
		}
		if text, ok := w.Swapped[f.Name]; ok {
			f.Text = text
		}
		written = append(written, f)
	}
	return ZIP(time.Unix(1700000000, 0), written...)
}

// Write writes the wheel to a temporary directory of the test and returns its path.
func (w Wheel) Write(t testing.TB) string {
	t.Helper()
	return must.File(t, w.Name, w.Bytes())
}

// Record returns RECORD for these members, with its own line last.
func Record(name string, files ...File) File {
	var b bytes.Buffer
	out := csv.NewWriter(&b)
	for _, f := range files {
		sum := sha256.Sum256([]byte(f.Text))
		out.Write([]string{f.Name, "sha256=" + base64.RawURLEncoding.EncodeToString(sum[:]), strconv.Itoa(len(f.Text))}) // writing to a buffer does not fail
	}
	out.Write([]string{name, "", ""})
	out.Flush()
	return File{Name: name, Text: b.String()}
}

// ZIP returns a ZIP of the given members, without a check of their names. Sizes are before
// the members, as the Python index requires.
func ZIP(modified time.Time, files ...File) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		var packed bytes.Buffer
		deflate, _ := flate.NewWriter(&packed, flate.DefaultCompression) // a valid level
		deflate.Write([]byte(f.Text))                                    // writing to a buffer does not fail
		deflate.Close()
		h := &zip.FileHeader{
			Name: f.Name, Method: zip.Deflate, CRC32: crc32.ChecksumIEEE([]byte(f.Text)),
			CompressedSize64: uint64(packed.Len()), UncompressedSize64: uint64(len(f.Text)),
			ModifiedDate: 0x21, // the first day; the extra field has the time
			Extra:        binary.LittleEndian.AppendUint32([]byte{0x55, 0x54, 5, 0, 1}, uint32(modified.Unix())),
		}
		switch {
		case strings.HasSuffix(f.Name, "/"):
			h.Method, h.CompressedSize64 = zip.Store, 0
			packed.Reset()
		case strings.ContainsFunc(f.Name, func(r rune) bool { return r > unicode.MaxASCII }):
			h.Flags = 0x800 // the name is UTF-8
		}
		h.SetMode(cmp.Or(f.Mode, 0o644))
		member, err := w.CreateRaw(h)
		if err != nil {
			panic(err)
		}
		member.Write(packed.Bytes())
	}
	w.Close()
	return b.Bytes()
}
