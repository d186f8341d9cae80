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
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// receiver records its calls, and compares digests as a store does.
type receiver struct{ took []string }

func (s *receiver) take(b store.Blob, r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if sum(string(data)) != b.SHA256 {
		return errors.New("wrong content")
	}
	s.took = append(s.took, string(data))
	return nil
}

func of(content string) store.Blob {
	return store.Blob{Name: content + ".whl", Size: int64(len(content)), SHA256: sum(content)}
}

// open opens one of two files.
func open(b store.Blob) (io.ReadCloser, error) {
	content := map[string]string{sum("one"): "one", sum("two"): "two"}[b.SHA256]
	return io.NopCloser(strings.NewReader(content)), nil
}

func written(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must.Succeed(t, carry.Write(path, []store.Blob{of("two"), of("one"), of("two")}, open))
	return path
}

func TestRoundTrip(t *testing.T) {
	s := &receiver{}
	must.Succeed(t, carry.Read(written(t, "x.tar"), s.take))
	slices.Sort(s.took) // they are in order of digest
	check.Same(t, "what was taken", []string{"one", "two"}, s.took)
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
		if err != nil || h.ModTime.Unix() != 0 || h.Mode != 0o444 || h.Uid != 0 || h.Uname != "" || first != (h.Name == "SHA256SUMS") {
			t.Fatalf("%+v, %v", h, err)
		}
	}
}

func TestWriteIsAllOrNothing(t *testing.T) {
	for what, content := range map[string]string{"longer": "twoo", "cut": "t"} {
		dir := t.TempDir()
		err := carry.Write(filepath.Join(dir, "x.tar"), []store.Blob{of("one"), of("two")}, func(b store.Blob) (io.ReadCloser, error) {
			if b.SHA256 == sum("two") {
				return io.NopCloser(strings.NewReader(content)), nil
			}
			return open(b)
		})
		check.Fails(t, err, "two.whl", what)
		left, err := os.ReadDir(dir)
		check.That(t, err == nil && len(left) == 0, "%s: left behind: %v, %v", what, left, err)
	}
}

// Members before the manipulated one are taken, and none after it.
func TestReadRefuses(t *testing.T) {
	good := must.Get(os.ReadFile(written(t, "x.tar")))(t)
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
			f.Typeflag, f.Linkname, f.Size, f.data = tar.TypeLink, "SHA256SUMS", 0, nil
		}), "is not a regular file"},
		"a device":                         {edit("sha256/"+first, func(f *file) { f.Typeflag, f.Size, f.data = tar.TypeChar, 0, nil }), "is not a regular file"},
		"other bytes":                      {edit("sha256/"+first, func(f *file) { f.data = []byte("xxx") }), "wrong content"},
		"more bytes":                       {edit("sha256/"+first, func(f *file) { f.data, f.Size = append(f.data, 'x'), f.Size+1 }), "wrong content"},
		"an extra file":                    {func(all []file) []file { return append(all, all[1]) }, "is not in SHA256SUMS"},
		"a file too few":                   {func(all []file) []file { return all[:len(all)-1] }, "it ends before the file"},
		"no list":                          {func(all []file) []file { return all[1:] }, "expected SHA256SUMS"},
		"nothing":                          {func([]file) []file { return nil }, "it ends before the file"},
		"twice":                            {func(all []file) []file { return append(all[:2:2], all[1:]...) }, "expected"},
		"another path":                     {listed("  sha256/"+first, "  sha256/../../x"), "SHA256SUMS has the line"},
		"another digest":                   {listed(first, sum("x")), "SHA256SUMS has the line"},
		"an archive of an earlier version": {rename("SHA256SUMS", "index.json"), "write a new one"},
	} {
		s := &receiver{}
		err := carry.Read(repack(t, good, c.change), s.take)
		check.That(t, err != nil && strings.Contains(fmt.Sprint(err, diag.All(err)[0].Hint), c.want) && diag.CodeOf(err) == diag.Fetch,
			"%s: got %v", name, err)
	}
	for n := 0; n < len(good); n += 100 {
		path := must.File(t, "x.tar", good[:n])
		s := &receiver{}
		err := carry.Read(path, s.take) // the empty blocks at the end of a tar file may be missing
		check.That(t, err != nil || len(s.took) == 2, "%d of %d bytes were taken for all", n, len(good))
	}
}

func TestReadRefusesWhatIsNoFile(t *testing.T) {
	err := carry.Read(t.TempDir(), nil)
	check.Fails(t, err, "not a regular file")
	err = carry.Read(filepath.Join(t.TempDir(), "absent"), nil)
	check.That(t, errors.Is(err, fs.ErrNotExist) && diag.CodeOf(err) == diag.Usage, "got %v", err)
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
		content := must.Get(io.ReadAll(in))(t)
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
	return must.File(t, "x.tar", packed.Bytes())
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

// listed replaces text in the list.
func listed(from, to string) func([]file) []file {
	return edit("SHA256SUMS", func(f *file) {
		f.data = bytes.Replace(f.data, []byte(from), []byte(to), 1)
		f.Size = int64(len(f.data))
	})
}

func sum(content string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(content))) }
