package wheel

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const goodName = "horovod-0.28.1+rocm5.7-cp311-cp311-linux_x86_64.whl"

const (
	info     = "horovod-0.28.1+rocm5.7.dist-info/"
	metadata = "Metadata-Version: 2.1\nName: horovod\nVersion: 0.28.1+rocm5.7\nLicense: Apache\n        2.0\n\ntext: of the description\n"
	wheelTxt = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: cp311-cp311-linux_x86_64\n"
)

type entry struct {
	name string
	text string
	mode fs.FileMode
}

// goodEntries returns the members of a wheel without a fault, RECORD last.
func goodEntries() []entry {
	return withRecord([]entry{
		{"horovod/__init__.py", "__version__ = '0.28.1'\n", 0o644},
		{"horovod/tensorflow/mpi_lib.so", "\x7fELF code", 0o755},
		{"horovod-0.28.1+rocm5.7.data/scripts/horovodrun", "#!python\n", 0o755},
		{info + "METADATA", metadata, 0o644},
		{info + "WHEEL", wheelTxt, 0o644},
		{info + "entry, points.txt", "", 0o644}, // a comma, which RECORD must quote
	})
}

func withRecord(entries []entry) []entry {
	var lines []recordLine
	for _, e := range entries {
		sum := sha256.Sum256([]byte(e.text))
		lines = append(lines, lineOf(e.name, sum[:], int64(len(e.text))))
	}
	return append(entries, entry{info + "RECORD", string(formatRecord(lines, info+"RECORD")), 0o644})
}

// zipOf writes entries as they are, with a time of their own.
func zipOf(t testing.TB, modified time.Time, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: modified}
		h.SetMode(e.mode)
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(e.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func openBytes(t testing.TB, name string, data []byte) *Wheel { //nolint:unparam // the name stands beside the bytes
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func openEntries(t testing.TB, entries ...entry) *Wheel {
	t.Helper()
	return openBytes(t, goodName, zipOf(t, time.Unix(1700000000, 0), entries...))
}
