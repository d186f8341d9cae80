package wheel

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io/fs"
	"slices"
	"testing"
	"time"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

var epoch = time.Unix(1700000000, 0)

func normalised(t *testing.T, w *Wheel, opts Options) []byte {
	t.Helper()
	var b bytes.Buffer
	must.Succeed(t, Normalise(&b, w, opts))
	return b.Bytes()
}

func TestNormaliseIsAFunctionOfTheContent(t *testing.T) {
	want := normalised(t, openEntries(t, goodEntries()...), Options{Epoch: epoch})

	other := append(goodEntries(), entry{"horovod/", "", fs.ModeDir | 0o700}, entry{info + "RECORD.jws", "{}", 0o644})
	for i := range other {
		if other[i].mode.IsRegular() {
			other[i].mode = other[i].mode&0o111 | 0o600
		}
	}
	slices.Reverse(other)
	w := openBytes(t, goodName, zipOf(t, time.Now(), other...))
	got := normalised(t, w, Options{Epoch: epoch.In(time.FixedZone("x", 3600))})
	check.That(t, bytes.Equal(want, got), "order, times and modes of the original show in the result")
	again := normalised(t, openBytes(t, goodName, got), Options{Epoch: epoch})
	check.That(t, bytes.Equal(want, again), "normalising twice changes the wheel")
}

func TestNormaliseOrderTimesAndModes(t *testing.T) {
	data := normalised(t, openEntries(t, goodEntries()...), Options{Epoch: epoch})
	r := must.Get(zip.NewReader(bytes.NewReader(data), int64(len(data))))(t)
	var got []string
	for _, f := range r.File {
		got = append(got, f.Mode().String()+" "+f.Name)
		check.That(t, f.Modified.Equal(epoch) && f.Method == zip.Deflate, "%s: %v, method %d", f.Name, f.Modified, f.Method)
	}
	want := []string{
		"-rwxr-xr-x horovod-0.28.1+rocm5.7.data/scripts/horovodrun",
		"-rw-r--r-- horovod/__init__.py",
		"-rwxr-xr-x horovod/tensorflow/mpi_lib.so",
		"-rw-r--r-- " + info + "METADATA",
		"-rw-r--r-- " + info + "WHEEL",
		"-rw-r--r-- " + info + "entry, points.txt",
		"-rw-r--r-- " + info + "RECORD",
	}
	check.Same(t, "members", want, got)
	problems := openBytes(t, goodName, data).Check()
	check.That(t, len(problems) == 0, "Check found %q", problems)
}

func TestNormaliseReplaces(t *testing.T) {
	const sbom = info + "sboms/builder.spdx.json"
	data := normalised(t, openEntries(t, goodEntries()...), Options{
		Epoch:   epoch,
		Replace: map[string][]byte{"horovod/tensorflow/mpi_lib.so": []byte("new"), sbom: []byte("{}")},
	})
	w := openBytes(t, goodName, data)
	problems := w.Check()
	check.That(t, len(problems) == 0, "Check found %q", problems)
	got, err := w.ReadFile("horovod/tensorflow/mpi_lib.so", 10)
	check.That(t, err == nil && string(got) == "new", "the replaced file holds %q, %v", got, err)
	i := slices.IndexFunc(w.Files, func(f File) bool { return f.Name == sbom })
	check.That(t, i >= 0 && w.Files[i].Mode == 0o644, "the new file is not there, or of another mode: %v", w.Files)
}

func TestNormaliseClampsTheTime(t *testing.T) {
	for in, want := range map[int64]time.Time{0: time.Unix(firstTime, 0).UTC(), 1700000000: epoch, 1 << 40: time.Unix(lastTime, 0).UTC()} {
		data := normalised(t, openEntries(t, goodEntries()...), Options{Epoch: time.Unix(in, 0)})
		r := must.Get(zip.NewReader(bytes.NewReader(data), int64(len(data))))(t)
		got := r.File[0].Modified
		check.That(t, got.Equal(want), "epoch %d became %v, want %v", in, got, want)
	}
}

func TestNormaliseRefuses(t *testing.T) {
	replace := func(name string) Options { return Options{Replace: map[string][]byte{name: nil}} }
	for _, test := range []struct {
		name    string
		entries []entry
		opts    Options
		want    string
	}{
		{"no dist-info", goodEntries()[:1], Options{}, "0 .dist-info"},
		{"two dist-infos", added("a-1.dist-info/x", 0o644), Options{}, "2 .dist-info"},
		{"new traversal", goodEntries(), replace("/x"), "absolute"},
		{"new directory", goodEntries(), replace("x/"), "is"},
		{"new RECORD", goodEntries(), replace(info + "RECORD"), "overwritten"},
	} {
		err := Normalise(&bytes.Buffer{}, openEntries(t, test.entries...), test.opts)
		check.Fails(t, err, test.want, test.name)
	}
}

// The sizes of a member precede its content. The Python index refuses wheels with sizes
// after the members.
func TestNormaliseWritesNoDescriptors(t *testing.T) {
	entries := append(goodEntries(), entry{"horovod/ünicode.py", "x", 0o644}, entry{"horovod/empty.py", "", 0o644})
	data := normalised(t, openEntries(t, entries...), Options{Epoch: epoch})
	r := must.Get(zip.NewReader(bytes.NewReader(data), int64(len(data))))(t)
	for _, f := range r.File {
		at := must.Get(f.DataOffset())(t)
		local := data[int(at)-len(f.Name)-len(f.Extra)-localLength:]
		crc, packed, size := binary.LittleEndian.Uint32(local[14:]), binary.LittleEndian.Uint32(local[18:]), binary.LittleEndian.Uint32(local[22:])
		check.That(t, string(local[:4]) == localSignature && f.Flags&flagDescriptor == 0 && local[6]&flagDescriptor == 0 &&
			crc == f.CRC32 && uint64(packed) == f.CompressedSize64 && uint64(size) == f.UncompressedSize64, "%s: flags %#x, %08x, %d of %d", f.Name, f.Flags, crc, packed, size)
		utf8 := f.Flags&flagUTF8 != 0
		check.That(t, utf8 == !isASCII(f.Name) && !f.NonUTF8, "%s: UTF-8 is %v", f.Name, utf8)
	}
	check.That(t, !bytes.Contains(data, []byte("PK\x07\x08")), "there is a data descriptor")
}
