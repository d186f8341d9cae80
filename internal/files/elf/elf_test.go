package elf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/elftest"
	"builder/test/kit/must"
)

const (
	librarySource = `
#include <math.h>
#include <stdio.h>
extern int absent(void) __attribute__((weak));
double given(double x) { if (absent) absent(); puts("x"); return cos(x); }
__attribute__((visibility("hidden"))) int kept(void) { return 1; }
`
	versionScript = "MINE_1.2 { global: given; local: *; };\n"
)

// compile builds a small library with gcc, in the same way as the extension of a wheel.
func compile(t *testing.T) string {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("needs gcc")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.c"), librarySource)
	write(t, filepath.Join(dir, "a.map"), versionScript)
	out := filepath.Join(dir, "liba.so")
	cmd := exec.Command(gcc, "-shared", "-fPIC", "-O1", "-fno-builtin", "-o", out, "a.c",
		"-Wl,-soname,liba.so.1,-rpath,$ORIGIN/lib:/opt/x,--enable-new-dtags,--version-script,a.map,--no-as-needed", "-lm")
	cmd.Dir = dir
	log, err := cmd.CombinedOutput()
	must.Hold(t, err == nil, "compiling: %v\n%s", err, log)
	return out
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestRead(t *testing.T) {
	file := must.Get(os.Open(compile(t)))(t)
	defer file.Close()
	got := must.Get(Read(file))(t)
	check.Same(t, "Needed", []string{"libm.so.6", "libc.so.6"}, got.Needed)
	check.Same(t, "Runpath", []string{"$ORIGIN/lib", "/opt/x"}, got.Runpath)
	check.That(t, got.Soname == "liba.so.1" && got.Rpath == nil, "Soname %q, Rpath %q", got.Soname, got.Rpath)
	check.That(t, got.Floors["GLIBC"] != "", "Floors %v", got.Floors)
	check.Same(t, "Exported", []Symbol{{Name: "given", Version: "MINE_1.2"}}, exportedCode(got))
	wantUndefined(t, got, "absent", false, true)
	wantUndefined(t, got, "cos", true, false)
	wantUndefined(t, got, "puts", true, false)
}

// exportedCode leaves out the symbols for the versions themselves.
func exportedCode(f *File) []Symbol {
	return slices.DeleteFunc(slices.Clone(f.Exported), func(s Symbol) bool { return strings.HasPrefix(s.Name, "MINE_") })
}

func wantUndefined(t *testing.T, f *File, name string, versioned, weak bool) {
	t.Helper()
	i := slices.IndexFunc(f.Undefined, func(s Symbol) bool { return s.Name == name })
	if i < 0 {
		t.Errorf("%s is not among the undefined symbols %v", name, f.Undefined)
		return
	}
	s := f.Undefined[i]
	check.That(t, s.Weak == weak && strings.HasPrefix(s.Version, "GLIBC_") == versioned, "%s is %+v", name, s)
}

func TestReadRefuses(t *testing.T) {
	whole := elftest.File(elftest.Section{Name: ".text", Data: []byte("x")})
	for _, test := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "too short"},
		{"text", bytes.Repeat([]byte("text "), 20), "wrong magic"},
		{"truncated", whole[:len(whole)-1], "section table"},
		{"no dynamic segment", whole, "no dynamic segment"},
		{"32 bits", append([]byte("\x7fELF\x01\x01"), whole[6:]...), "64-bit"},
	} {
		got, err := Read(bytes.NewReader(test.data))
		check.Fails(t, err, test.want, test.name, got)
	}
}

func TestReadRefusesEveryTruncation(t *testing.T) {
	whole := must.Get(os.ReadFile(compile(t)))(t)
	for n := range len(whole) {
		_, err := describe(bytes.NewReader(whole[:n]))
		must.Hold(t, err != nil, "the first %d of %d bytes are read without an error", n, len(whole))
	}
}

// small is a library of a few hundred bytes with every kind of content.
func small() elftest.Library {
	return elftest.Library{
		Soname: "liba.so", Needed: []string{"libc.so.6"}, Runpath: "$ORIGIN", Texts: []string{"a text"},
		Undefined: append(elftest.From("libc.so.6", "GLIBC_2.2.5", "puts"), elftest.Symbol{Name: "absent", Weak: true}),
		Exported:  []elftest.Symbol{{Name: "given"}, {Name: "other", Version: "MINE_1"}},
	}
}

func FuzzRead(f *testing.F) {
	files := [][]byte{small().Bytes(), elftest.File(elftest.Section{Name: ".text", Data: []byte("x")})}
	fuzz(f, files, func(t *testing.T, file []byte) {
		got, err := describe(bytes.NewReader(file))
		check.That(t, err != nil || got.File.Floors != nil, "neither an error nor a file")
	})
}

// In an accepted file, the bytes of each section equal the bytes loaded at its address,
// and the dynamic section is the dynamic segment.
func FuzzTheLoaderSeesTheSame(f *testing.F) {
	files := [][]byte{small().Bytes(), elftest.Two(small(), elftest.Library{}, false), elftest.Two(small(), elftest.Library{}, true)}
	fuzz(f, files, func(t *testing.T, file []byte) {
		img, err := openImage(bytes.NewReader(file))
		if err != nil {
			return
		}
		d, err := img.readDynamic()
		if err != nil {
			return
		}
		for i, s := range img.file.Sections {
			if i == int(img.header.Shstrndx) || s.Type == elf.SHT_NULL || s.Type == elf.SHT_NOBITS || s.Flags&elf.SHF_ALLOC == 0 || s.Size == 0 || s.Size > 1<<20 {
				continue
			}
			seen, err1 := s.Data()
			off, err2 := img.offset(s.Addr, s.Size)
			check.That(t, err1 == nil && err2 == nil && bytes.Equal(seen, file[off:][:s.Size]),
				"section %d shows %x (%v), the loader has those at %#x (%v)", i, seen, err1, off, err2)
		}
		s := d.sections[elf.SHT_DYNAMIC]
		check.That(t, s.Addr == img.dynamic.Vaddr && s.Offset == img.dynamic.Off, "the dynamic section is not the dynamic segment")
	})
}

// The binding, the definition and the visibility of a symbol decide how the linker
// treats it.
func TestSymbolsByBinding(t *testing.T) {
	symbol := func(bind elf.SymBind, visible elf.SymVis, section elf.SectionIndex) elf.Symbol {
		return elf.Symbol{Name: "add", Info: elf.ST_INFO(bind, elf.STT_FUNC), Other: byte(visible), Section: section}
	}
	add := Symbol{Name: "add"}
	for _, c := range []struct {
		name                string
		symbol              elf.Symbol
		undefined, exported []Symbol
	}{
		{"global", symbol(elf.STB_GLOBAL, elf.STV_DEFAULT, 7), nil, []Symbol{add}},
		{"protected", symbol(elf.STB_GLOBAL, elf.STV_PROTECTED, 7), nil, []Symbol{add}},
		{"hidden", symbol(elf.STB_GLOBAL, elf.STV_HIDDEN, 7), nil, nil},
		{"wanted", symbol(elf.STB_GLOBAL, elf.STV_DEFAULT, elf.SHN_UNDEF), []Symbol{add}, nil},
		{"wanted weakly", symbol(elf.STB_WEAK, elf.STV_DEFAULT, elf.SHN_UNDEF), []Symbol{{Name: "add", Weak: true}}, nil},
		{"unique", symbol(gnuUnique, elf.STV_DEFAULT, 7), nil, []Symbol{add}},
		{"local", symbol(elf.STB_LOCAL, elf.STV_DEFAULT, 7), nil, nil},
	} {
		f := &File{}
		err := f.addSymbols([]elf.Symbol{c.symbol})
		check.That(t, err == nil && slices.Equal(f.Undefined, c.undefined) && slices.Equal(f.Exported, c.exported), "%s: wants %v, gives %v, %v", c.name, f.Undefined, f.Exported, err)
	}
}

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
