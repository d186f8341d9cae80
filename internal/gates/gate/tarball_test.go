package gate

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
	"builder/test/kit/packtest"
)

// member is an entry of an archive.
type member struct {
	tar.Header
	text string
}

func dir(name string) member {
	return member{Header: tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755}}
}

func file(name, text string) member {
	return member{tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))}, text}
}

func link(name, to string) member {
	return member{Header: tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to, Mode: 0o777}}
}

// layout returns upstream's layout with text as the library.
func layout(text string) []member {
	return []member{
		dir("nccl/"), dir("nccl/lib/"), link("nccl/lib/libnccl.so", "libnccl.so.2"), link("nccl/lib/libnccl.so.2", "libnccl.so.2.29.7"),
		file("nccl/lib/libnccl.so.2.29.7", text), dir("nccl/include/"), file("nccl/include/nccl.h", "#pragma once\n"),
	}
}

func tarOf(t testing.TB, entries ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		must.Succeed(t, w.WriteHeader(&e.Header))
		_, err := io.WriteString(w, e.text)
		must.Hold(t, err == nil, "%v", err)
	}
	must.Succeed(t, w.Close())
	return b.Bytes()
}

var alreadyPacked sync.Map

// compressed compresses bytes in the format of the name. It caches results, because
// most bad artifacts have the archive of the good one.
func compressed(t testing.TB, name string, plain []byte) []byte {
	t.Helper()
	key := name + string(plain)
	if have, ok := alreadyPacked.Load(key); ok {
		return have.([]byte)
	}
	packed := packtest.Compress(t, name, plain)
	alreadyPacked.Store(key, packed)
	return packed
}

func readTar(plain []byte, limit int64) (*contents, error) {
	c := newContents(limit)
	return c, c.read(&io.LimitedReader{R: bytes.NewReader(plain), N: limit + 1})
}

// edited returns the layout with one changed entry.
func edited(name string, change func(*member)) []member {
	entries := layout("code")
	change(&entries[slices.IndexFunc(entries, func(m member) bool { return m.Name == name })])
	return entries
}

func TestTarball(t *testing.T) {
	const header, library = "nccl/include/nccl.h", "nccl/lib/libnccl.so.2.29.7"
	for name, c := range map[string]struct {
		entries []member
		says    []string // one for each problem
	}{
		"good":                      {layout("code"), nil},
		"without directories":       {slices.DeleteFunc(layout("code"), func(m member) bool { return m.Typeflag == tar.TypeDir }), nil},
		"owned by root":             {edited(header, func(m *member) { m.Uname, m.Gname = "root", "root" }), nil},
		"other user":                {edited(header, func(m *member) { m.Uid = 1000 }), []string{"nccl.h belongs to 1000:0"}},
		"other group":               {edited(header, func(m *member) { m.Gid = 100 }), []string{"nccl.h belongs to 0:100"}},
		"other user by name":        {edited(header, func(m *member) { m.Uname = "games" }), []string{"0:0 games:"}},
		"other group by name":       {edited(header, func(m *member) { m.Gname = "games" }), []string{"0:0 :games"}},
		"setuid":                    {edited(library, func(m *member) { m.Mode = 0o4755 }), []string{"libnccl.so.2.29.7 has mode 4755"}},
		"setgid":                    {edited(library, func(m *member) { m.Mode = 0o2755 }), []string{"mode 2755"}},
		"world-writable":            {edited(library, func(m *member) { m.Mode = 0o666 }), []string{"mode 666"}},
		"parent":                    {append(layout("code"), file("nccl/../../x", "")), []string{`"nccl/../../x" leads out`}},
		"parent inside the tree":    {append(layout("code"), file("nccl/lib/../x", "")), []string{"not a plain path"}},
		"absolute":                  {append(layout("code"), file("/etc/x", "")), []string{`"/etc/x" leads out`}},
		"beside":                    {append(layout("code"), file("other/x", "")), []string{"other/x lies beside nccl"}},
		"twice":                     {append(layout("code"), file(library, "other")), []string{"in the archive twice"}},
		"hard link":                 {append(layout("code"), member{Header: tar.Header{Name: "nccl/x", Typeflag: tar.TypeLink, Linkname: library}}), []string{"nccl/x is not a file, a directory or a symbolic link"}},
		"device":                    {append(layout("code"), member{Header: tar.Header{Name: "nccl/x", Typeflag: tar.TypeBlock}}), []string{"nccl/x is not a file, a directory or a symbolic link"}},
		"link by root":              {append(layout("code"), link("nccl/lib/x", "/etc/passwd")), []string{"nccl/lib/x leads to /etc/passwd"}},
		"link to parent":            {append(layout("code"), link("nccl/lib/x", "..")), []string{"nccl/lib/x leads to .."}},
		"link to itself":            {append(layout("code"), link("nccl/lib/x", ".")), []string{"nccl/lib/x leads to ."}},
		"link to another directory": {append(layout("code"), link("nccl/lib/x", "../include/nccl.h")), []string{"out of its directory"}},
		"two faults":                {append(layout("code"), file("/x", ""), file("nccl/lib", "")), []string{`"/x" leads`, "twice"}},
	} {
		got, err := readTar(tarOf(t, c.entries...), 1<<20)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(got.problems) != len(c.says) {
			t.Errorf("%s: %q", name, got.problems)
			continue
		}
		for i, says := range c.says {
			check.That(t, strings.Contains(got.problems[i], says), "%s: %q lacks %q", name, got.problems[i], says)
		}
	}
}

func TestTarballIsBounded(t *testing.T) {
	many := make([]member, maxArchived)
	for i := range many {
		many[i] = file("a/"+strings.Repeat("b", i%80+1), "")
	}
	whole := tarOf(t, layout("code")...)
	size := int64(len(whole))
	for name, c := range map[string]struct {
		plain []byte
		limit int64
		says  string // "" for none
	}{
		"exactly the limit":        {whole, size, ""},
		"one byte above the limit": {whole, size - 1, "more than the limit"},
		"just fits":                {tarOf(t, many...), 1 << 30, ""},
		"bytes behind the end":     {append(bytes.Clone(whole), "x"...), size + 100, "bytes after the end of the archive"},
		"zeros behind the end":     {append(bytes.Clone(whole), make([]byte, 9000)...), size + 9000, ""},
		"too many zeros":           {append(bytes.Clone(whole), make([]byte, 9001)...), size + 9000, "more than the limit"},
		"empty":                    {tarOf(t), 1 << 20, "it is empty"},
		"cut in a file":            {whole[:512*6+2], size, "unexpected EOF"},
		"a hole has 1 TiB":         {sparse(), 1 << 30, "x has 1099511627776 bytes, above the limit"},
	} {
		_, err := readTar(c.plain, c.limit)
		check.That(t, (err == nil) == (c.says == "") && (err == nil || strings.Contains(err.Error(), c.says)),
			"%s: %v, want %q", name, err, c.says)
	}
}

// sparse returns an archive of 1.5 KiB with a file of 1 TiB without data (the old
// format of GNU tar).
func sparse() []byte {
	h := make([]byte, 512)
	for at, text := range map[int]string{
		0: "x", 100: "0000644", 108: "0000000", 116: "0000000", 124: "00000000000", 136: "00000000000",
		156: "S", 257: "ustar  ", 386: "00000000000\x0000000000000", 483: "\x80\x00\x00\x00\x00\x00\x01",
	} {
		copy(h[at:], text)
	}
	sum := 8 * int(' ') // stands for the checksum itself
	for _, b := range h {
		sum += int(b)
	}
	copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
	return append(h, make([]byte, 1024)...)
}

// A truncated archive is refused, although tar needs none of its last bytes.
func TestCutTarball(t *testing.T) {
	for _, suffix := range []string{".txz", ".tar.gz", ".tar.zst"} {
		whole := compressed(t, suffix, tarOf(t, layout("code")...))
		path := filepath.Join(t.TempDir(), "nccl"+suffix)
		for _, cut := range []int{0, 1, 4, 8, 12, 24} { // xz: the footer has 12 bytes, the index 12
			n := len(whole) - cut
			must.Succeed(t, os.WriteFile(path, whole[:n], 0o600))
			_, err := readArchive(path, path, 1<<20)
			check.That(t, (err == nil) == (n == len(whole)), "%d of %d bytes of %s: %v", n, len(whole), suffix, err)
		}
	}
	_, err := readArchive(filepath.Join(t.TempDir(), "none.txz"), "none.txz", 1)
	check.That(t, os.IsNotExist(err), "no archive: %v", err)
}

func TestTarballHoldsTheLibrary(t *testing.T) {
	const sum = "5694d08a2e53ffcae0c3103e5ad6f6076abd960eb1f8a56577040bc1028f702b" // of "code"
	beside := append(edited("nccl/lib/libnccl.so.2", func(m *member) { *m = file(m.Name, "other") }), file("nccl/lib/a", ""))
	for name, c := range map[string]struct {
		entries []member
		says    []string
	}{
		"good":          {layout("code"), nil},
		"other bytes":   {layout("codf"), []string{"lib/libnccl.so.2 is 82d20845", "lib/libnccl.so is 82d20845"}},
		"another first": {beside, []string{"lib/libnccl.so.2 is d9298a10", "lib/libnccl.so is d9298a10"}},
		"no link":       {edited("nccl/lib/libnccl.so", func(m *member) { m.Name = "nccl/lib/nccl.so" }), []string{"lib/libnccl.so is missing"}},
		"link in a ring": {
			edited("nccl/lib/libnccl.so.2", func(m *member) { m.Linkname = "libnccl.so" }),
			[]string{"lib/libnccl.so.2 is missing", "lib/libnccl.so is missing"},
		},
	} {
		got := must.Get(readTar(tarOf(t, c.entries...), 1<<20))(t)
		problems := got.differs("libnccl.so.2", sum)
		if len(problems) != len(c.says) {
			t.Errorf("%s: %q", name, problems)
			continue
		}
		for i, says := range c.says {
			check.That(t, strings.Contains(problems[i], says), "%s: %q lacks %q", name, problems[i], says)
		}
	}
}

func FuzzTarball(f *testing.F) {
	f.Add(tarOf(f, layout("code")...))
	f.Add(tarOf(f, file("../x", "y"), link("a/b", "/c")))
	f.Add(sparse())
	f.Fuzz(func(t *testing.T, plain []byte) {
		c, err := readTar(plain, 1<<16)
		check.That(t, err != nil || c.left >= 0 && c.count <= maxArchived, "more was read than may be")
		c.differs("libnccl.so.2", "")
	})
}
