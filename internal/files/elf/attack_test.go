package elf

import (
	"bytes"
	"encoding/binary"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/elftest"
)

func changed(t *testing.T, l elftest.Library, section string, change func([]byte)) *bytes.Reader {
	t.Helper()
	return bytes.NewReader(edit(t, l, section, change))
}

func wantFault(t *testing.T, r *bytes.Reader, says string) {
	t.Helper()
	_, err := Read(r)
	check.Fails(t, err, says)
}

// The loader requires every version in the table, even a version without a symbol.
func TestARequiredVersionIsNotHiddenByAnother(t *testing.T) {
	l := elftest.Library{Needed: []string{"libc.so.6"}, Undefined: append(elftest.From("libc.so.6", "GLIBC_2.99", "new"), elftest.From("libc.so.6", "GLIBC_2.2.5", "puts")...)}
	low, err := Read(changed(t, l, ".gnu.version_r", func(b []byte) {
		copy(b[16+6:], []byte{1, 0}) // the index of no version
	}))
	check.That(t, err == nil && low.Floors["GLIBC"] == "2.99", "the floor is %+v, %v", low, err)
}

// The loader loads the library named by a filter, as it does for DT_NEEDED.
func TestFiltersAreNeeded(t *testing.T) {
	for _, tag := range []uint64{0x7ffffffd, 0x7fffffff} {
		f, err := Read(changed(t, elftest.Library{Needed: []string{"libforbidden.so"}}, ".dynamic", func(b []byte) {
			binary.LittleEndian.PutUint64(b, tag)
		}))
		check.That(t, err == nil && len(f.Needed) == 1 && f.Needed[0] == "libforbidden.so", "%#x: %+v, %v", tag, f, err)
	}
}

// Loaders take the last of two values of one tag. A reader may show the first.
func TestTagsThatAreThereTwiceAreRefused(t *testing.T) {
	l := elftest.Library{Soname: "libx.so", Runpath: "/home/x"}
	wantFault(t, changed(t, l, ".dynamic", func(b []byte) {
		copy(b[16:], b[:8]) // the run path becomes a second soname
	}), "DT_SONAME twice")
}
