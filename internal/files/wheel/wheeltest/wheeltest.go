// Package wheeltest makes wheels from values, for tests that need one which
// differs from a good one in a single thing.
//
// It shares no code with internal/files/wheel, so that a mistake of the reader cannot
// hide in the writer.
package wheeltest

import (
	"archive/zip"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// File is a member of a wheel.
type File struct {
	Name string
	Text string
	Mode fs.FileMode // 0 stands for 0644
}

// Wheel is a wheel that is right unless a field says otherwise.
type Wheel struct {
	// Name is the name of the file. METADATA, WHEEL and the .dist-info directory
	// follow from it.
	Name  string
	Files []File // without those of .dist-info
	// Requires and External are lines of Requires-Dist and Requires-External in
	// METADATA.
	Requires, External []string

	// The lies.
	Version  string                        // in METADATA instead of the one in Name
	Tags     []string                      // in WHEEL instead of the one in Name
	Unlisted []File                        // written, but not in RECORD
	Swapped  map[string]string             // written instead of what RECORD was made from
	Omitted  []string                      // in RECORD, but not written
	Record   func(lines []string) []string // what becomes of RECORD
}

// Info is the name of the .dist-info directory.
func (w Wheel) Info() string {
	parts := strings.Split(w.Name, "-")
	return parts[0] + "-" + parts[1] + ".dist-info"
}

// metadata returns the members of .dist-info but for RECORD.
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
	for _, need := range w.External {
		needs.WriteString("Requires-External: " + need + "\n")
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

// Write writes the wheel into a directory of the test and returns its path.
func (w Wheel) Write(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), w.Name)
	if err := os.WriteFile(path, w.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Record returns RECORD for these members, its own line last.
func Record(name string, files ...File) File {
	var b bytes.Buffer
	out := csv.NewWriter(&b)
	for _, f := range files {
		sum := sha256.Sum256([]byte(f.Text))
		out.Write([]string{f.Name, "sha256=" + base64.RawURLEncoding.EncodeToString(sum[:]), strconv.Itoa(len(f.Text))}) // a buffer takes all
	}
	out.Write([]string{name, "", ""})
	out.Flush()
	return File{Name: name, Text: b.String()}
}

// ZIP returns members as they are given, whatever they are called.
func ZIP(modified time.Time, files ...File) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		if f.Mode == 0 {
			f.Mode = 0o644
		}
		h := &zip.FileHeader{Name: f.Name, Method: zip.Deflate, Modified: modified}
		h.SetMode(f.Mode)
		member, err := w.CreateHeader(h)
		if err == nil {
			_, err = member.Write([]byte(f.Text))
		}
		if err != nil {
			panic(err) // a directory with content, which archive/zip refuses to write
		}
	}
	if err := w.Close(); err != nil {
		panic(err) // a buffer takes all
	}
	return b.Bytes()
}
