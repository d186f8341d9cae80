package wheel

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestOpen(t *testing.T) {
	w := openEntries(t, append([]entry{{"horovod/", "", fs.ModeDir | 0o755}}, goodEntries()...)...)
	problems := w.Check()
	check.That(t, len(problems) == 0, "Check found %q", problems)
	check.That(t, w.Name.Version == "0.28.1+rocm5.7" && w.DistInfo+"/" == info, "Name %+v, DistInfo %q", w.Name, w.DistInfo)
	check.That(t, w.Metadata.Get("name") == "horovod" && w.WheelInfo.Get("Wheel-Version") == "1.0",
		"Metadata %v, WheelInfo %v", w.Metadata, w.WheelInfo)
	want := File{"horovod/tensorflow/mpi_lib.so", 9, 0o755}
	diff := cmp.Diff(want, w.Files[1])
	check.That(t, diff == "" && len(w.Files) == 7, "%d files, the second (-want +got):\n%s", len(w.Files), diff)
}

func TestReadFile(t *testing.T) {
	w := openEntries(t, append(goodEntries(), entry{"horovod/", "", fs.ModeDir | 0o755})...)
	got, err := w.ReadFile("horovod/tensorflow/mpi_lib.so", 9)
	check.That(t, err == nil && string(got) == "\x7fELF code", "ReadFile = %q, %v", got, err)
	for name, want := range map[string]string{
		"horovod/tensorflow/mpi_lib.so": "above the limit of 8", "absent": "not in the wheel", "horovod/": "not in the wheel",
	} {
		got, err := w.ReadFile(name, 8)
		check.That(t, err != nil && strings.Contains(err.Error(), want), "ReadFile(%q) = %q, %v; want an error with %q", name, got, err, want)
	}
}

func TestOpenMember(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	w := openEntries(t, goodEntries()...)
	m := must.Get(w.Open(t.Context(), "horovod/tensorflow/mpi_lib.so"))(t)
	defer m.Close()
	got, err := io.ReadAll(io.NewSectionReader(m, 1, 100))
	check.That(t, err == nil && string(got) == "ELF code", "the member holds %q, %v", got, err)
	left, err := filepath.Glob(filepath.Join(tmp, "wheel-member-*"))
	check.That(t, err == nil && len(left) == 0, "the temporary file has a name: %v, %v", left, err)
	_, err = w.Open(t.Context(), "absent")
	check.That(t, err != nil, "an absent member was opened")
}

func TestOpenRefuses(t *testing.T) {
	good := zipOf(t, time.Now(), goodEntries()...)
	for _, test := range []struct {
		test, name string
		data       []byte
		want       string
	}{
		{"truncated", goodName, good[:len(good)-30], "truncated"},
		{"half", goodName, good[:len(good)/2], "truncated"},
		{"empty", goodName, nil, "it does not begin as a ZIP"},
		{"text", goodName, []byte("Not Found"), "it does not begin as a ZIP"},
		{"name", "horovod.whl", good, "parsing wheel name"},
	} {
		t.Run(test.test, func(t *testing.T) {
			path := must.File(t, test.name, test.data)
			w, err := Open(path)
			check.Fails(t, err, test.want, w)
		})
	}
	_, err := Open(filepath.Join(t.TempDir(), goodName))
	check.That(t, errors.Is(err, fs.ErrNotExist), "an absent file: %v", err)
}

func TestPlausible(t *testing.T) {
	file := func(packed, unpacked uint64) *zip.File {
		return &zip.File{FileHeader: zip.FileHeader{Name: "a", CompressedSize64: packed, UncompressedSize64: unpacked}}
	}
	const size = 1 << 30
	tests := map[string]struct {
		files []*zip.File
		want  string
	}{
		"fits":        {[]*zip.File{file(size/2, 5*size), file(10, 1000)}, ""},
		"full":        {[]*zip.File{file(size, maxTotal/2), file(size, maxTotal/2)}, ""},
		"free":        {[]*zip.File{file(1, freeTotal)}, ""},
		"dense":       {[]*zip.File{file(size/100, maxRatio*(size/100)+maxRatio-1)}, ""},
		"many":        {slices.Repeat([]*zip.File{file(0, 0)}, maxMembers), ""},
		"huge":        {[]*zip.File{file(1, 1<<63)}, "directory gives"},
		"total":       {[]*zip.File{file(size/2, maxTotal), file(size/2, maxTotal)}, "above the limit"},
		"ratio":       {[]*zip.File{file(size/1000, 2*size)}, "more than a real wheel"},
		"small ratio": {[]*zip.File{file(1000, 1000000)}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := plausible(test.files)
			check.That(t, (test.want != "" || err == nil) && (test.want == "" || err != nil && strings.Contains(err.Error(), test.want)),
				"plausible = %v, want %q", err, test.want)
		})
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(byHand().bytes())
	f.Add(zipOf(f, time.Unix(0, 0), entry{"a", "", 0o644}, entry{info + "RECORD", "a,b\n\"", 0o644}, entry{info + "METADATA", " x", 0o644}))
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := read(goodName, bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		problems := w.Check()
		var out bytes.Buffer
		if err := Normalise(&out, w, Options{}); err != nil || len(problems) > 0 {
			return
		}
		n, err := read(goodName, bytes.NewReader(out.Bytes()), int64(out.Len()))
		must.Hold(t, err == nil, "a wheel without faults is normalised to what cannot be opened: %v", err)
		problems = n.Check()
		check.That(t, len(problems) == 0, "a wheel without faults is normalised to one with %q", problems)
	})
}
