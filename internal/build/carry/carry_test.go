package carry_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/build/carry"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// receiver records its calls.
type receiver struct{ took []string }

func (s *receiver) Entry(id, _ string, _ []byte) error {
	s.took = append(s.took, "entry "+id)
	return nil
}

func (s *receiver) Blob(b store.Blob, r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if of(string(data)).SHA256 != b.SHA256 {
		return errors.New("wrong content")
	}
	s.took = append(s.took, "blob "+string(data))
	return nil
}

func of(content string) store.Blob {
	return store.Blob{Name: content + ".whl", Size: int64(len(content)), SHA256: sum(content)}
}

// load has two files and one cell.
func load() carry.Load {
	blobs := map[string]string{sum("one"): "one", sum("two"): "two"}
	e := lock.Entry{Schema: lock.EntrySchema, ID: "tiny-1.0"}
	return carry.Load{
		Entries: []lock.Entry{e}, Blobs: []store.Blob{of("two"), of("one"), of("two")},
		Open: func(b store.Blob) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(blobs[b.SHA256])), nil
		},
	}
}

func written(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	x, err := carry.Write(path, load())
	must.Hold(t, err == nil && len(x.In(carry.Blobs)) == 2 && len(x.Members) == 3, "%+v, %v", x, err)
	return path
}

func TestRoundTrip(t *testing.T) {
	s := &receiver{}
	_, err := carry.Read(written(t, "x.tar"), s)
	must.Succeed(t, err)
	slices.Sort(s.took[1:3]) // they are in order of digest
	check.Same(t, "what was taken", []string{"entry tiny-1.0", "blob one", "blob two"}, s.took)
}

func TestEqualContentIsAnEqualFile(t *testing.T) {
	one, err1 := os.ReadFile(written(t, "a.tar"))
	two, err2 := os.ReadFile(written(t, "b.tar"))
	check.That(t, err1 == nil && err2 == nil && bytes.Equal(one, two), "they differ: %v, %v", err1, err2)
	in := tar.NewReader(bytes.NewReader(one))
	for first := true; ; first = false {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil || h.ModTime.Unix() != 0 || h.Mode != 0o444 || h.Uid != 0 || h.Uname != "" || first != (h.Name == "index.json") {
			t.Fatalf("%+v, %v", h, err)
		}
	}
}

func TestWriteIsAllOrNothing(t *testing.T) {
	for what, content := range map[string]string{"damaged": "twu", "cut": "t"} {
		l := load()
		open := l.Open
		l.Open = func(b store.Blob) (io.ReadCloser, error) {
			if b.SHA256 == sum("two") {
				return io.NopCloser(strings.NewReader(content)), nil
			}
			return open(b)
		}
		dir := t.TempDir()
		_, err := carry.Write(filepath.Join(dir, "x.tar"), l)
		check.Fails(t, err, "two.whl", what)
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: left behind: %v, %v", what, left, err)
		}
	}
}

// Members before the manipulated one are taken, and none after it.
func TestReadRefuses(t *testing.T) {
	good, err := os.ReadFile(written(t, "x.tar"))
	must.Succeed(t, err)
	first := min(sum("one"), sum("two"))
	for name, c := range map[string]struct {
		change func(members []file) []file
		want   string
	}{
		"another name":     {rename("sha256/"+first, "sha256/../../x"), `found "sha256/../../x", expected sha256/` + first},
		"an absolute name": {rename("sha256/"+first, "/etc/passwd"), `found "/etc/passwd", expected`},
		"a link": {edit("sha256/"+first, func(f *file) {
			f.Typeflag, f.Linkname, f.Size, f.data = tar.TypeSymlink, "/etc/passwd", 0, nil
		}), "is not a regular file"},
		"a hard link": {edit("sha256/"+first, func(f *file) {
			f.Typeflag, f.Linkname, f.Size, f.data = tar.TypeLink, "index.json", 0, nil
		}), "is not a regular file"},
		"a device": {edit("sha256/"+first, func(f *file) { f.Typeflag, f.Size, f.data = tar.TypeChar, 0, nil }), "is not a regular file"},
		"more bytes": {edit("sha256/"+first, func(f *file) {
			f.data = append(f.data, 'x')
			f.Size++
		}), "has 4 bytes, the index lists 3"},
		"other bytes":        {edit("sha256/"+first, func(f *file) { f.data = []byte("xxx") }), "wrong content"},
		"other entry":        {edit("entries/", func(f *file) { f.data = bytes.ToUpper(f.data) }), "wrong content"},
		"an extra file":      {func(all []file) []file { return append(all, all[1]) }, "is not in the index"},
		"a file too few":     {func(all []file) []file { return all[:len(all)-1] }, "it ends before sha256/"},
		"no index":           {func(all []file) []file { return all[1:] }, "expected index.json"},
		"nothing":            {func([]file) []file { return nil }, "it ends before index.json"},
		"twice":              {func(all []file) []file { return append(all[:2:2], all[1:]...) }, "expected"},
		"schema":             {index(`"schema": 3`, `"schema": 2`), "schema 2, this builder reads 3"},
		"no JSON":            {index(`{`, `[`), "the index: "},
		"unknown":            {index(`"name"`, `"nam"`), "unknown field"},
		"no digest":          {index(`"sha256": "`+first, `"sha256": "../`+first[3:]), "has a malformed digest"},
		"another path":       {index("sha256/"+first, "sha256/../../x"), "is in no folder of an archive"},
		"another key":        {index("sha256/"+first, "sha256/"+sum("x")), "is not the path of a member"},
		"another order":      {index("entries/", "sha256/"), "is not the path of a member"},
		"a path":             {index("one.whl", "../one.whl"), "is not a valid name"},
		"huge":               {index(`"size": 3`, `"size": 99999999999999`), "the limit is"},
		"negative":           {index(`"size": 3`, `"size": -3`), "the limit is"},
		"more than a number": {index(`"size": 3`, `"size": 9999999999999999999999`), "the index: "},
	} {
		s := &receiver{}
		_, err := carry.Read(repack(t, good, c.change), s)
		if err == nil || !strings.Contains(err.Error(), c.want) || diag.CodeOf(err) != diag.Fetch {
			t.Errorf("%s: got %v", name, err)
		}
		check.That(t, !slices.Contains(s.took, "blob xxx"), "%s: took %q", name, s.took)
	}
	for n := 0; n < len(good); n += 100 {
		path := filepath.Join(t.TempDir(), "x.tar")
		must.Succeed(t, os.WriteFile(path, good[:n], 0o644))
		s := &receiver{}
		_, err := carry.Read(path, s) // the empty blocks at the end of a tar file may be missing
		check.That(t, err != nil || len(s.took) == 3, "%d of %d bytes were taken for all", n, len(good))
	}
}

func TestReadRefusesWhatIsNoFile(t *testing.T) {
	_, err := carry.Read(t.TempDir(), &receiver{})
	check.Fails(t, err, "not a regular file")
	_, err = carry.Read(filepath.Join(t.TempDir(), "absent"), &receiver{})
	check.That(t, errors.Is(err, fs.ErrNotExist) && diag.CodeOf(err) == diag.Usage, "got %v", err)
}

// FuzzRead checks that Read of a damaged file does not panic, and either takes every
// member or returns an error.
//
// An input is a change to a valid file. With a whole file as input, the fuzzer would
// spend its time on making it smaller.
func FuzzRead(f *testing.F) {
	var whole [][]byte
	for _, change := range []func([]file) []file{
		func(all []file) []file { return all },
		func(all []file) []file { return all[:2] },
		rename("sha256/", "sha256"),
	} {
		path := filepath.Join(f.TempDir(), "x.tar")
		_, err := carry.Write(path, load())
		must.Succeed(f, err)
		good, err := os.ReadFile(path)
		must.Succeed(f, err)
		data, err := os.ReadFile(repack(f, good, change))
		must.Succeed(f, err)
		whole = append(whole, data)
	}
	f.Add(uint8(0), uint16(0), []byte(nil), uint16(0))
	f.Add(uint8(1), uint16(0), []byte("x"), uint16(0))
	f.Add(uint8(2), uint16(512), []byte("{}"), uint16(700))
	f.Fuzz(func(t *testing.T, which uint8, at uint16, change []byte, cut uint16) {
		data := bytes.Clone(whole[int(which)%len(whole)])
		copy(data[int(at)%len(data):], change)
		data = data[:len(data)-int(cut)%len(data)]
		s := &receiver{}
		x, err := carry.ReadTar(bytes.NewReader(data), s)
		if all := len(x.Members); err == nil && len(s.took) != all {
			t.Errorf("took %d of %d", len(s.took), all)
		}
	})
}

// file is a member of a tar file.
type file struct {
	tar.Header
	data []byte
}

// repack changes the members of a tar file.
func repack(t testing.TB, data []byte, change func([]file) []file) string {
	t.Helper()
	var all []file
	for in := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must.Succeed(t, err)
		content, err := io.ReadAll(in)
		must.Succeed(t, err)
		all = append(all, file{*h, content})
	}
	var packed bytes.Buffer
	out := tar.NewWriter(&packed)
	for _, f := range change(all) {
		err := out.WriteHeader(&f.Header)
		if err == nil {
			_, err = out.Write(f.data)
		}
		must.Succeed(t, err)
	}
	must.Succeed(t, out.Close())
	path := filepath.Join(t.TempDir(), "x.tar")
	must.Succeed(t, os.WriteFile(path, packed.Bytes(), 0o644))
	return path
}

// edit changes the first member whose name starts with name.
func edit(name string, change func(*file)) func([]file) []file {
	return func(all []file) []file {
		i := slices.IndexFunc(all, func(f file) bool { return strings.HasPrefix(f.Name, name) })
		change(&all[i])
		return all
	}
}

func rename(from, to string) func([]file) []file {
	return edit(from, func(f *file) { f.Name = to })
}

// index replaces text in the index.
func index(from, to string) func([]file) []file {
	return edit("index.json", func(f *file) {
		f.data = bytes.Replace(f.data, []byte(from), []byte(to), 1)
		f.Size = int64(len(f.data))
	})
}

func sum(content string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(content))) }
