package store

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"builder/internal/base/retry"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// fresh returns an empty store with short waiting times.
func fresh(t *testing.T) *Store {
	t.Helper()
	s := must.Get(Open(filepath.Join(t.TempDir(), "store")))(t)
	s.policy = retry.Policy{Tries: 4, First: time.Millisecond, Most: 5 * time.Millisecond}
	return s
}

// put stores content under a name.
func put(t *testing.T, s *Store, name, content string) Blob {
	t.Helper()
	b := must.Get(s.Put(strings.NewReader(content)))(t)
	b.Name = name
	return b
}

// names lists a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries := must.Get(os.ReadDir(dir))(t)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func write(t *testing.T, path string, content []byte) string {
	t.Helper()
	must.Succeed(t, os.WriteFile(path, content, 0o644))
	return path
}

func TestPut(t *testing.T) {
	s := fresh(t)
	b := put(t, s, "abc", "abc")
	want := "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	must.Hold(t, b.SHA256 == want && b.Size == 3, "got %+v", b)
	path, ok := s.Path(b)
	info, err := os.Stat(path)
	must.Hold(t, ok && err == nil && info.Mode().Perm() == 0o444, "%v, %v, %v", ok, info, err)
	for _, c := range []struct {
		name string
		b    Blob
		want bool
	}{
		{"of unknown size", Blob{SHA256: b.SHA256}, true},
		{"of another size", Blob{SHA256: b.SHA256, Size: 4}, false},
		{"of a path as digest", Blob{SHA256: "../" + b.SHA256[3:]}, false},
		{"of no digest", Blob{}, false},
		{"in capitals", Blob{SHA256: strings.ToUpper(b.SHA256)}, false},
	} {
		_, ok := s.Path(c.b)
		check.That(t, ok == c.want, "%s: %v", c.name, ok)
	}
	_, err = s.Put(iotest.ErrReader(io.ErrUnexpectedEOF))
	check.That(t, errors.Is(err, io.ErrUnexpectedEOF), "a broken reader: %v", err)
	left := names(t, filepath.Join(s.dir, temps))
	check.That(t, len(left) == 0, "left behind: %v", left)
}

func TestImport(t *testing.T) {
	s := fresh(t)
	path := write(t, filepath.Join(t.TempDir(), "a.whl"), []byte("wheel"))
	b, err := s.Import(path)
	must.Hold(t, err == nil && b.Name == "a.whl", "%+v, %v", b, err)
	write(t, path, []byte("other"))
	err = s.Verify(b)
	check.That(t, err == nil, "writing to the imported file changed the store: %v", err)
	_, err = s.Import(t.TempDir())
	check.That(t, err != nil, "a directory was imported")
}

func TestStage(t *testing.T) {
	s := fresh(t)
	a, b := put(t, s, "a.whl", "first"), put(t, s, "b.whl", "second")
	dir := filepath.Join(t.TempDir(), "mounts", "wheels")
	stage := func(all ...Blob) os.FileInfo {
		t.Helper()
		must.Succeed(t, s.Stage(dir, all))
		return must.Get(os.Stat(dir))(t)
	}
	made := stage(a, b, a)
	got := names(t, dir)
	must.Hold(t, len(got) == 2 && got[0] == "a.whl" && got[1] == "b.whl", "got %v", got)
	path, _ := s.Path(a)
	blob, _ := os.Stat(path)
	linked, err := os.Stat(filepath.Join(dir, "a.whl"))
	check.That(t, err == nil && os.SameFile(blob, linked), "a.whl is no link: %v", err)
	check.That(t, os.SameFile(made, stage(b, a)), "what was right was made again")
	if write(t, filepath.Join(dir, "c"), nil); os.SameFile(made, stage(a, b)) {
		t.Error("a stray file was left")
	}
	must.Succeed(t, os.Remove(filepath.Join(dir, "a.whl")))
	write(t, filepath.Join(dir, "a.whl"), []byte("first"))
	copied := stage(a, b)
	write(t, filepath.Join(dir, "a.whl"), []byte("worst"))
	check.That(t, !os.SameFile(copied, stage(a, b)), "a copy with other bytes was taken")
	if stage(); len(names(t, dir)) != 0 {
		t.Error("nothing was wanted, and something is there")
	}
	left := names(t, filepath.Dir(dir))
	check.That(t, len(left) == 1, "left behind: %v", left)
}

func TestStageRefuses(t *testing.T) {
	s := fresh(t)
	good := put(t, s, "a", "first")
	dir := filepath.Join(t.TempDir(), "d")
	for _, name := range []string{"", ".", "..", "../a", "x/y", "/etc/passwd", "a\x00b"} {
		err := s.Stage(dir, []Blob{{name, good.Size, good.SHA256}})
		check.That(t, err != nil, "%q was staged", name)
	}
	err := s.Stage(dir, []Blob{good, put(t, s, "a", "second")})
	check.That(t, err != nil, "two files of one name were staged")
	err = s.Stage(dir, []Blob{{"a", 1, strings.Repeat("0", 64)}})
	check.That(t, err != nil, "an absent blob was staged")
	_, err = os.Stat(dir)
	check.That(t, errors.Is(err, fs.ErrNotExist), "a refused stage left a directory")
}

func TestDocuments(t *testing.T) {
	s := fresh(t)
	_, ok := s.Documents().Get("k1")
	check.That(t, !ok, "found before it was put")
	for _, want := range []string{`{"a":1}`, `{"a":2}`} {
		must.Succeed(t, s.Documents().Put("k1", []byte(want)))
		got, ok := s.Documents().Get("k1")
		check.That(t, ok && string(got) == want, "got %q, %v", got, ok)
	}
	for _, key := range []string{"", "..", "../x", "a/b", ".hidden", strings.Repeat("k", 201)} {
		check.That(t, s.Documents().Put(key, nil) != nil, "%q was taken as a key", key)
	}
}

func TestSweep(t *testing.T) {
	s := fresh(t)
	dir := filepath.Join(s.dir, temps)
	old := write(t, filepath.Join(dir, "old"), nil)
	write(t, filepath.Join(dir, "new"), nil)
	day := time.Now().Add(-25 * time.Hour)
	must.Succeed(t, os.Chtimes(old, day, day))
	must.Get(Open(s.dir))(t)
	got := names(t, dir)
	check.That(t, len(got) == 1 && got[0] == "new", "got %v", got)
}

func TestLockIsHeldByOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l")
	var holders, most atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				unlock, err := Lock(t.Context(), path, nil)
				if err != nil {
					t.Error(err)
					return
				}
				most.Store(max(most.Load(), holders.Add(1)))
				time.Sleep(50 * time.Microsecond)
				holders.Add(-1)
				unlock()
			}
		})
	}
	wg.Wait()
	check.That(t, most.Load() == 1, "%d held it at once", most.Load())
	_, err := os.Stat(path)
	check.That(t, errors.Is(err, fs.ErrNotExist), "the file stays behind")
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"https://user:pa@ss@host/f.whl?token=x#sha": "https://host/f.whl?…#sha",
		"https://host/@scope/f.whl":                 "https://host/@scope/f.whl",
		`Get "http://u:p@h/f?X-Sig=1": EOF`:         `Get "http://h/f?…": EOF`,
		"/a/file?name":                              "/a/file?name",
		"two http://a@b/?c http://d:e@f/g":          "two http://b/?… http://f/g",
	} {
		check.Same(t, in, want, Place(in).String())
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("secret", "host/path")
	f.Fuzz(func(t *testing.T, secret, rest string) {
		if secret == "" || strings.ContainsAny(secret+rest, " \x01\t\r\n\f\v\"'/?#@:%") {
			t.Skip()
		}
		// The mark distinguishes the secret from the same letters elsewhere.
		secret = "\x01" + secret
		got := Redact("https://u:" + secret + "@" + rest + "/p?t=" + secret)
		check.That(t, !strings.Contains(got, secret), "%q tells it", got)
	})
}

// A waiting caller is notified once and can give up.
func TestLockSaysThatItWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := Lock(t.Context(), path, func() { t.Error("nobody else holds it") })
	must.Succeed(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	_, err = Lock(ctx, path, func() { calls++; cancel() })
	check.That(t, errors.Is(err, context.Canceled) && calls == 1, "told %d times, %v", calls, err)
	unlock()
	again := must.Get(Lock(t.Context(), path, nil))(t)
	again()
}

func TestCheck(t *testing.T) {
	path := must.File(t, "good", "x")
	good, err := Of(path)
	must.Succeed(t, err, good.Check(path))
	longer, other := good, good
	longer.Size++
	other.SHA256 = strings.Repeat("0", 64)
	for _, b := range []Blob{longer, other} {
		check.Fails(t, b.Check(path), "good: expected sha256 "+b.SHA256)
	}
	check.That(t, errors.Is(good.Check(path+"x"), fs.ErrNotExist), "a file that is not there is right")
}
