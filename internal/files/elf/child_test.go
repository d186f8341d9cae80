package elf

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"builder/test/kit/check"
	"builder/test/kit/elftest"
	"builder/test/kit/must"
)

// sharedNames returns a library of 300 KB whose symbols all have the same name of 60 KB.
func sharedNames(t *testing.T) []byte {
	symbols := elftest.Named(strings.Repeat("long", 15_000))
	for range 12_000 {
		symbols = append(symbols, elftest.Symbol{Name: "a"})
	}
	return edit(t, elftest.Library{Undefined: symbols}, ".dynsym", func(b []byte) {
		for at := 2 * 24; at < len(b); at += 24 {
			copy(b[at:], b[24:28])
		}
	})
}

// sharedVersions returns a library of 300 KB whose table of versions lists the same
// versions for each of many libraries.
func sharedVersions(t *testing.T) []byte {
	const versions = 4000
	var symbols []elftest.Symbol
	for i := range versions {
		symbols = append(symbols, elftest.Symbol{Name: "a", Library: "libc.so.6", Version: fmt.Sprint("GLIBC_2.", i)})
	}
	return edit(t, elftest.Library{Needed: []string{"libc.so.6"}, Undefined: symbols}, ".gnu.version_r", func(b []byte) {
		const records = versions / 2
		for at := 0; at < records*16; at += 16 {
			binary.LittleEndian.PutUint16(b[at:], 1)
			binary.LittleEndian.PutUint16(b[at+2:], versions-records+1)
			binary.LittleEndian.PutUint32(b[at+8:], uint32(records*16-at))
			binary.LittleEndian.PutUint32(b[at+12:], 16)
		}
		binary.LittleEndian.PutUint32(b[(records-1)*16+12:], 0)
	})
}

// edit returns a library after change edited one of its sections in place.
func edit(t *testing.T, l elftest.Library, section string, change func([]byte)) []byte {
	t.Helper()
	file := l.Bytes()
	parsed := must.Get(elf.NewFile(bytes.NewReader(file)))(t)
	s := parsed.Section(section)
	change(file[s.Offset : s.Offset+s.Size])
	return file
}

// bomb returns a library of some kilobytes that unpacks to the given number of bytes.
func bomb(size int) []byte {
	packed := elftest.Compress(3, 1, elftest.Bundle(elftest.Code{ID: "hipv4-amdgcn-amd-amdhsa--gfx90a", Data: make([]byte, size)}))
	return elftest.Library{Sections: []elftest.Section{{Name: ".hip_fatbin", Data: packed}}}.Bytes()
}

// A small file that takes gigabytes or minutes is refused before it does.
func TestHostileLibrariesAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		file []byte
		says string
	}{
		"symbols with one long name": {sharedNames(t), "reading it"},
		"versions of many libraries": {sharedVersions(t), "reading it"},
	} {
		t.Run(name, func(t *testing.T) {
			budget := &Budget{all: time.Second, left: time.Second, known: map[io.ReaderAt]description{}}
			_, err := Read(budget.Reader(t.Context(), bytes.NewReader(c.file)))
			check.Fails(t, err, c.says, len(c.file))
		})
	}
}

// The budget belongs to the file. Several libraries and several calls share it.
func TestTheBudgetIsOfAllLibraries(t *testing.T) {
	file, budget := bomb(64<<20), NewBudget(0)
	budget.left = time.Second / 2
	for i := range 100 {
		if targets, err := DeviceTargets(budget.Reader(t.Context(), bytes.NewReader(file))); err != nil {
			check.That(t, strings.Contains(err.Error(), "more than 3s of a processor") && i >= 1, "library %d: %v, %v", i, targets, err)
			return
		}
	}
	t.Error("6.4 GB are unpacked of a file of nothing")
}

func TestAChildEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Read(Bounded(ctx, bytes.NewReader(small().Bytes())))
	check.Fails(t, err, "context canceled")
}
