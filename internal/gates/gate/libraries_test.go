package gate

import (
	"bytes"
	"strings"
	"testing"

	"builder/internal/files/wheel"
	"builder/test/kit/check"
	"builder/test/kit/elftest"
	"builder/test/kit/must"
)

func nameOf(t *testing.T, tag string) wheel.Name {
	t.Helper()
	return must.Get(wheel.ParseName("x-1-" + tag + ".whl"))(t)
}

// The header of a library states its machine and system. Installers go by the tag
// alone.
func TestLibrariesAreForTheTag(t *testing.T) {
	header := func(change ...byte) []byte {
		b := (&elftest.Library{}).Bytes()
		for i := 0; i < len(change); i += 2 {
			b[change[i]] = change[i+1]
		}
		return b
	}
	for _, c := range []struct {
		tag  string
		file []byte
		says string
	}{
		{"cp311-cp311-linux_x86_64", header(), ""},
		{"cp311-cp311-linux_x86_64", header(7, 3), ""},
		{"cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64", header(), ""},
		{"cp311-cp311-musllinux_1_2_aarch64", header(18, 183), ""},
		{"cp311-cp311-linux_i686", header(18, 3), ""},
		{"cp311-cp311-linux_aarch64", header(), "is for x86_64"},
		{"cp311-cp311-linux_x86_64", header(18, 183), "is for aarch64"},
		{"cp311-cp311-linux_x86_64", header(18, 0), "is damaged: its ELF header names no machine"},
		{"cp311-cp311-linux_x86_64", header(7, 9), "is for the system ELFOSABI_FREEBSD"},
		{"cp311-cp311-linux_x86_64", header(5, 2), "is for "},
		{"cp311-cp311-linux_x86_64.linux_aarch64", header(), "the tag is cp311-cp311-linux_aarch64"},
		{"py3-none-any", header(), "the tag is py3-none-any"},
		{"py3-none-win_amd64", header(), "the tag is py3-none-win_amd64"},
		{"cp311-cp311-macosx_11_0_x86_64", header(), "is for x86_64"},
	} {
		native, problem := nativeFault(bytes.NewReader(c.file), nameOf(t, c.tag))
		check.That(t, native && (problem == "") == (c.says == "") && strings.Contains(problem, c.says),
			"%s: %v, %q, want %q", c.tag, native, problem, c.says)
	}
	for name, file := range map[string][]byte{"text": []byte("INPUT(libx.so.1) and more"), "short": []byte("\x7fELF"), "code of a GPU": header(18, 224)} {
		native, problem := nativeFault(bytes.NewReader(file), nameOf(t, "py3-none-any"))
		check.That(t, !native && problem == "", "%s: %v, %q", name, native, problem)
	}
}

func TestLibrariesAreForTheLibcOfTheTag(t *testing.T) {
	for _, c := range []struct {
		tag, needs string
		ok         bool
	}{
		{"cp311-cp311-linux_x86_64", "libc.so.6", true},
		{"cp311-cp311-manylinux_2_28_x86_64", "libc.so.6", true},
		{"cp311-cp311-musllinux_1_2_x86_64", "libc.musl-x86_64.so.1", true},
		{"cp311-cp311-musllinux_1_2_x86_64", "libm.so.6", true},
		{"cp311-cp311-linux_x86_64", "libc.musl-x86_64.so.1", false},
		{"cp311-cp311-manylinux_2_28_x86_64.musllinux_1_2_x86_64", "libc.musl-x86_64.so.1", false},
		{"cp311-cp311-musllinux_1_2_x86_64", "libc.so.6", false},
	} {
		problem := libcFault([]string{"libz.so.1", c.needs}, nameOf(t, c.tag))
		check.That(t, (problem == "") == c.ok, "%+v: %q", c, problem)
	}
}

// Python finds an extension by the suffix of its name.
func TestExtensionsAreNamedForTheTag(t *testing.T) {
	for _, c := range []struct {
		tag, file string
		ok        bool
	}{
		{"cp311-cp311-linux_x86_64", "x/a.cpython-311-x86_64-linux-gnu.so", true},
		{"cp311-abi3-linux_x86_64", "x/a.cpython-39-x86_64-linux-gnu.so", true},
		{"cp311-cp311-musllinux_1_2_aarch64", "x/a.cpython-311-aarch64-linux-musl.so", true},
		{"cp313-cp313t-linux_x86_64", "x/a.cpython-313t-x86_64-linux-gnu.so", true},
		{"cp311-cp311-linux_x86_64", "x/a.abi3.so", true},
		{"cp311-cp311-linux_x86_64", "x/a.so", true},
		{"py3-none-linux_x86_64", "x/a.cpython-39-x86_64-linux-gnu.so", true},
		{"cp312-cp312-linux_x86_64", "x/a.cpython-311-x86_64-linux-gnu.so", false},
		{"cp311-cp311-linux_x86_64", "x/a.cpython-311-aarch64-linux-gnu.so", false},
		{"cp311-cp311-linux_x86_64", "x/a.cpython-311-x86_64-linux-musl.so", false},
		{"cp311-cp311-musllinux_1_2_x86_64", "x/a.cpython-311-x86_64-linux-gnu.so", false},
	} {
		problem := suffixFault(c.file, nameOf(t, c.tag))
		check.That(t, (problem == "") == c.ok, "%+v: %q", c, problem)
	}
}
