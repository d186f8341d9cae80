package deb

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

var suffixes = []string{"", ".gz", ".xz", ".zst"}

// extracted returns the data archive of a package. limit is the largest allowed size in
// bytes.
func extracted(content []byte, limit int64) ([]byte, error) {
	var b bytes.Buffer
	err := extract(&b, bytes.NewReader(content), limit)
	return b.Bytes(), err
}

func TestExtract(t *testing.T) {
	plain := data(t, dir("./"), file("./usr/bin/x", "odd"))
	for _, suffix := range suffixes {
		got, err := extracted(debOf(t, suffix, plain), int64(len(plain)))
		check.That(t, err == nil && bytes.Equal(got, plain), "data.tar%s: got %d bytes of %d, %v", suffix, len(got), len(plain), err)
	}
	gnu := arOf(part{"debian-binary/", "2.0\n"}, part{"data.tar/", string(plain)})
	got, err := extracted(gnu, 1<<20)
	check.That(t, err == nil && bytes.Equal(got, plain), "names that end with a slash: got %d bytes of %d, %v", len(got), len(plain), err)
	future := arOf(part{"debian-binary", "2.1\nmore\n"}, part{"_gpgorigin", "x"}, part{"data.tar", string(plain)}, part{"data.tar.gz", "not read"})
	if got, err := extracted(future, 1<<20); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("a later format of the same major number: got %d bytes of %d, %v", len(got), len(plain), err)
	}
}

func TestExtractRefuses(t *testing.T) {
	plain := string(data(t, file("./x", "x")))
	good := string(arOf(format, part{"data.tar", plain}))
	sized := func(size string) string {
		p := part{"data.tar", plain}
		return string(arOf(format)) + p.header()[:48] + size + "`\n" + plain
	}
	garbled := compressed(t, ".gz", []byte(plain))
	garbled[len(garbled)-5] ^= 1 // in the checksum
	for name, c := range map[string]struct{ content, want string }{
		"empty":                  {"", "not a Debian package"},
		"wrong magic":            {strings.Replace(good, "<arch>", "<thin>", 1), "not a Debian package"},
		"no member":              {"!<arch>\n", "truncated"},
		"half a header":          {good[:30], "truncated"},
		"no data":                {string(arOf(format, part{"control.tar", "odd"})), "has no data.tar"},
		"format is cut":          {string(arOf(format))[:70], "truncated"},
		"member is cut":          {string(arOf(format, part{"control.tar", strings.Repeat("x", 100)}))[:180], "truncated"},
		"member of 10 GB":        {string(arOf(format)) + "control.tar     0           0     0     100644  9999999999`\n", "truncated"},
		"header end":             {strings.Replace(good, "`\n", "x\n", 1), "ar header is damaged"},
		"negative size":          {sized("-5        "), "ar header is damaged"},
		"compressed data is cut": {cut(debOf(t, ".gz", []byte(plain)), 20), "unexpected EOF"},
		"xz is cut":              {cut(debOf(t, ".xz", []byte(plain)), 20), "unexpected EOF"},
		"zstd is cut":            {cut(debOf(t, ".zst", []byte(plain)), 4), "unexpected EOF"},
		"checksum":               {string(arOf(format, part{"data.tar.gz", string(garbled)})), "checksum"},
		"not gzip":               {string(arOf(format, part{"data.tar.gz", "no gzip at all"})), "reading data.tar.gz: gzip: invalid header"},
		"not xz":                 {string(arOf(format, part{"data.tar.xz", "no xz at all"})), "reading data.tar.xz: xz: invalid"},
		"not zstd":               {string(arOf(format, part{"data.tar.zst", "no zstd at all"})), "unpacking data.tar.zst: "},
		"another compression":    {string(arOf(format, part{"data.tar.lzma", "x"})), "data.tar.lzma has an unknown compression"},
		"another name":           {string(arOf(format, part{"data.tarball", "x"})), "data.tarball has an unknown compression"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := extracted([]byte(c.content), 1<<20)
			check.That(t, err != nil && strings.Contains(err.Error(), c.want),
				"got %d bytes, %v; want an error with %q", len(got), err, c.want)
		})
	}
}

func cut(content []byte, n int) string { return string(content[:len(content)-n]) }

// The output is bounded, however well the data was compressed.
func TestExtractIsBounded(t *testing.T) {
	const limit = 100_000
	for _, suffix := range suffixes {
		for extra, fits := range map[int]bool{0: true, 1: false, 20 << 20: false} {
			got, err := extracted(debOf(t, suffix, make([]byte, limit+extra)), limit)
			check.That(t, (err == nil) == fits && len(got) <= limit+1,
				"data.tar%s with %d bytes too many: wrote %d, %v", suffix, extra, len(got), err)
			check.That(t, err == nil || strings.Contains(err.Error(), "more than 100000 bytes"), "data.tar%s: %v", suffix, err)
		}
	}
}

// A frame with a window of 2 GiB is refused before the memory is allocated.
func TestExtractRefusesAHugeZstdWindow(t *testing.T) {
	frame := "\x28\xb5\x2f\xfd\x00\xa8" + "\x01\x00\x00"
	got, err := extracted(arOf(format, part{"data.tar.zst", frame}), 1<<20)
	check.That(t, err != nil && strings.Contains(err.Error(), "window size exceeded"), "got %d bytes, %v", len(got), err)
}

func TestExtractReportsTheWriter(t *testing.T) {
	full := errors.New("no space left")
	r, w := io.Pipe()
	r.CloseWithError(full)
	err := extract(w, bytes.NewReader(debOf(t, ".xz", data(t, file("x", "x")))), 1<<20)
	check.That(t, errors.Is(err, full), "got %v", err)
}

// A package with a wrong digest is not unpacked.
func TestUnpackVerifiesFirst(t *testing.T) {
	d := pack(t, "good", file("./x", "x"))
	content, err := os.ReadFile(d.Path)
	must.Succeed(t, err)
	content[len(content)-1] ^= 1
	must.Succeed(t, os.WriteFile(d.Path, content, 0o644))
	dir := t.TempDir()
	_, err = unpackData(d, dir)
	check.That(t, diag.CodeOf(err) == diag.Fetch, "got %v", err)
	left, _ := os.ReadDir(dir)
	check.That(t, len(left) == 0, "something was written: %v", left)
}

// sparing lowers the dictionary size of an xz stream from 8 MiB to 4 KiB.
func sparing(stream []byte) []byte {
	const at = 12 // offset of the first block's header, behind the stream header
	sum := at + int(stream[at])*4
	stream[at+bytes.Index(stream[at:sum], []byte("\x21\x01"))+2] = 0
	binary.LittleEndian.PutUint32(stream[sum:], crc32.ChecksumIEEE(stream[at:sum]))
	return stream
}

// FuzzPackage takes a change to a whole package as its input. Whole packages as input
// are so large that the fuzzer spends its time minimizing them. Each package of the
// corpus shows one property.
func FuzzPackage(f *testing.F) {
	var whole [][]byte
	for _, i := range []item{
		dir("./usr/"), file("./usr/x", "text"), symlink("./usr/y", "../etc/y"), hardLink("./usr/z", "./usr/x"),
		file("./"+strings.Repeat("long/", 60)+"ü", "x"), special("./dev/null", tar.TypeChar), file("./../out", "x"),
	} {
		whole = append(whole, debOf(f, "", data(f, i)))
	}
	plain := data(f, dir("./usr/"), file("./usr/x", "text"))
	for _, suffix := range suffixes[1:] {
		packed := compressed(f, suffix, plain)
		if suffix == ".xz" {
			packed = sparing(packed)
		}
		whole = append(whole, arOf(format, part{"data.tar" + suffix, string(packed)}))
	}
	for i, p := range whole {
		_, err := extracted(p, 1<<20)
		must.Hold(f, err == nil, "package %d: %v", i, err)
	}
	for _, sparse := range sparseArchives(f) {
		whole = append(whole, debOf(f, "", sparse))
	}
	whole = append(whole, arOf(format, part{"data.tar.zst", "\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00"}))
	for i := range whole {
		f.Add(uint8(i), uint16(0), []byte(nil), uint16(0))
	}
	f.Fuzz(func(t *testing.T, which uint8, at uint16, change []byte, cut uint16) {
		content := bytes.Clone(whole[int(which)%len(whole)])
		copy(content[int(at)%len(content):], change)
		content = content[:len(content)-int(cut)%len(content)]
		const limit = 1 << 20
		plain, err := extracted(content, limit)
		must.Hold(t, len(plain) <= limit+1, "unpacked to %d bytes", len(plain))
		if err != nil {
			return
		}
		var written bytes.Buffer
		l := &layer{out: tar.NewWriter(&written), seen: map[string]entryOf{}}
		_ = eachEntry(bytes.NewReader(plain), func(h *tar.Header, r io.Reader) error { return l.entry("p", h, r) })
		// A header may grow by PAX records for values too large for its fields.
		most := 8*len(plain) + 4096
		check.That(t, written.Len() <= most, "%d bytes of a data archive became %d of a layer", len(plain), written.Len())
		for name := range l.seen {
			check.That(t, !strings.HasPrefix(name, "/") && !strings.Contains("/"+name+"/", "/../"), "%q leaves the root", name)
		}
	})
}
