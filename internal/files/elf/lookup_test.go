package elf_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"builder/internal/files/elf"
	"builder/internal/files/elf/elftest"
)

func TestReadLinks(t *testing.T) {
	l := elftest.Library{Soname: "liba.so.1", Needed: []string{"libb.so.2"}, Runpath: "$ORIGIN:/usr/lib", Undefined: elftest.Named("b")}
	f, err := elf.ReadLinks(bytes.NewReader(l.Bytes()))
	if err != nil || f.Soname != "liba.so.1" || !slices.Equal(f.Needed, l.Needed) || len(f.Runpath) != 2 || f.Machine != "x86_64" || f.Undefined != nil {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := elf.ReadLinks(strings.NewReader("#!/bin/sh")); err == nil {
		t.Error("a script has links")
	}
}

func TestFindSection(t *testing.T) {
	data := bytes.NewReader(elftest.Library{Sections: []elftest.Section{{Name: ".extra", Data: []byte("text")}}}.Bytes())
	s, ok, err := elf.FindSection(data, ".extra")
	if !ok || err != nil || s.Size != 4 {
		t.Fatalf("%+v, %v, %v", s, ok, err)
	}
	if text, err := io.ReadAll(s.Open()); string(text) != "text" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if _, ok, err := elf.FindSection(data, ".other"); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}

func TestConstant(t *testing.T) {
	l := elftest.Library{Exported: []elftest.Symbol{{Name: "longer_version", Code: []byte("none")}, {Name: "version", Code: []byte{3, 0, 0, 0}}}, Undefined: elftest.Named("wanted")}
	data := bytes.NewReader(l.Bytes())
	if got, err := elf.Constant(data, "version", 4); err != nil || !bytes.Equal(got, []byte{3, 0, 0, 0}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, name := range []string{"wanted", "sion", "nothing"} {
		if got, err := elf.Constant(data, name, 4); !errors.Is(err, elf.ErrNoSymbol) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := elf.Constant(data, "version", 1<<19); err == nil {
		t.Error("a constant of more bytes than the file has")
	}
}

func TestLibraryNames(t *testing.T) {
	texts := []string{
		"libnvrtc.so.13", "opening libnone.so.1", "libno%d.so", "/usr/lib/libpath.so.1", "libtext.so.1 is missing", "nolib.so", "libwords.sound", "libplain.so",
		strings.Repeat("x", 3<<20), "libfar.so.2.1", "libnvrtc.so.13",
	}
	// This name crosses the end of the first window.
	texts = append(texts, strings.Repeat("y", 1<<20), "libborder.so.7")
	got, err := elf.LibraryNames(bytes.NewReader(elftest.Library{Texts: texts}.Bytes()))
	if want := []string{"libborder.so.7", "libfar.so.2.1", "libnvrtc.so.13", "libplain.so"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for at := 1<<20 - 40; at < 1<<20+10; at++ { // at every position around the border
		got, err := elf.LibraryNames(bytes.NewReader(elftest.Library{Texts: []string{strings.Repeat("z", at), "libedge.so.3"}}.Bytes()))
		if err != nil || !slices.Equal(got, []string{"libedge.so.3"}) {
			t.Fatalf("%d: %v, %v", at, got, err)
		}
	}
}
