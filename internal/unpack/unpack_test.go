package unpack_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"builder/internal/unpack"
)

func packed(t *testing.T, suffix, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := unpack.Writer(&b, "file"+suffix)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReader(t *testing.T) {
	for _, suffix := range []string{".tar", ".gz", ".tgz", ".xz", ".txz", ".zst"} {
		r, err := unpack.Reader(bytes.NewReader(packed(t, suffix, "what was packed")), "file"+suffix)
		if err != nil {
			t.Errorf("%s: %v", suffix, err)
			continue
		}
		have, err := io.ReadAll(r)
		if err != nil || string(have) != "what was packed" {
			t.Errorf("%s: %q, %v", suffix, have, err)
		}
		if err := r.Close(); err != nil {
			t.Errorf("closing %s: %v", suffix, err)
		}
	}
}

func TestReaderRefuses(t *testing.T) {
	if _, err := unpack.Reader(strings.NewReader(""), "data.tar.lzma"); err == nil || !strings.Contains(err.Error(), "data.tar.lzma is compressed in a way") {
		t.Errorf("an unknown suffix: %v", err)
	}
	if _, err := unpack.Writer(io.Discard, "data.tar.lzma"); err == nil || !strings.Contains(err.Error(), "data.tar.lzma would be compressed") {
		t.Errorf("an unknown suffix to write: %v", err)
	}
	for _, suffix := range []string{".gz", ".xz", ".zst"} {
		whole := packed(t, suffix, strings.Repeat("text ", 1000))
		r, err := unpack.Reader(bytes.NewReader(whole[:len(whole)-8]), "file"+suffix)
		if err == nil {
			_, err = io.ReadAll(r)
		}
		if err == nil {
			t.Errorf("a cut file%s was read to its end", suffix)
		}
	}
}
