package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"builder/internal/base/diag"
	"builder/internal/base/web"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// sample is a file larger than any buffer of a transfer.
var sample = func() []byte {
	data := make([]byte, 3<<20)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}()

func blobOf(data []byte) Blob {
	sum := sha256.Sum256(data)
	return Blob{"sample.whl", int64(len(data)), hex.EncodeToString(sum[:])}
}

// server passes the number of each request, from 1, to its handler and records the
// requested ranges.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	ranges []string
}

func serve(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.ranges = append(s.ranges, r.Header.Get("Range"))
		n := len(s.ranges)
		s.mu.Unlock()
		answer(n, w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ranges
}

// whole answers like a server with support for ranges.
func whole(w http.ResponseWriter, r *http.Request, data []byte) {
	http.ServeContent(w, r, "sample.whl", time.Time{}, bytes.NewReader(data))
}

// cut announces more bytes than it sends, then closes the connection.
func cut(w http.ResponseWriter, data []byte, promised int) {
	w.Header().Set("Content-Length", fmt.Sprint(promised))
	_, _ = w.Write(data)
	panic(http.ErrAbortHandler)
}

// fetched fails the test unless the fetched sample is complete.
func fetched(t *testing.T, s *Store, b Blob, from ...Place) {
	t.Helper()
	path := must.Get(s.Fetch(t.Context(), b, from, nil))(t)
	got, err := Of(path)
	info, _ := os.Stat(path)
	if err != nil || got.SHA256 != b.SHA256 || info.Mode().Perm() != 0o444 {
		t.Fatalf("got %+v, %v, %v", got, info.Mode(), err)
	}
	left := append(names(t, filepath.Join(s.dir, partials)), names(t, filepath.Join(s.dir, locks))...)
	check.That(t, len(left) == 0, "left behind: %v", left)
}

func (s *Store) partial(b Blob) string { return filepath.Join(s.dir, partials, b.SHA256) }

func TestFetch(t *testing.T) {
	const half = 1 << 20
	status := func(code int, headers ...string) func(int, http.ResponseWriter, *http.Request) {
		return func(n int, w http.ResponseWriter, r *http.Request) {
			if n > 1 {
				whole(w, r, sample)
				return
			}
			for i := 0; i < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(code)
		}
	}
	for _, c := range []struct {
		name    string
		partial []byte // from an earlier run
		answer  func(n int, w http.ResponseWriter, r *http.Request)
		ranges  []string
	}{
		{"at once", nil, func(_ int, w http.ResponseWriter, r *http.Request) { whole(w, r, sample) }, []string{""}},
		{
			"resumed after an earlier run", sample[:half],
			func(_ int, w http.ResponseWriter, r *http.Request) { whole(w, r, sample) },
			[]string{"bytes=1048576-"},
		},
		{"complete, and only to be accepted", sample, nil, nil},
		{
			"the earlier run left too much", append(bytes.Clone(sample), 0),
			func(_ int, w http.ResponseWriter, r *http.Request) { whole(w, r, sample) },
			[]string{""},
		},
		{
			"a partial file with other bytes", make([]byte, half),
			func(_ int, w http.ResponseWriter, r *http.Request) { whole(w, r, sample) },
			[]string{"bytes=1048576-", ""},
		},
		{
			"a server that ignores ranges", sample[:half],
			func(_ int, w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(sample) },
			[]string{"bytes=1048576-"},
		},
		{
			"a server that sends another range", sample[:half],
			func(n int, w http.ResponseWriter, r *http.Request) {
				if n == 1 {
					w.Header().Set("Content-Range", "bytes 5-9/10")
					w.WriteHeader(http.StatusPartialContent)
					return
				}
				whole(w, r, sample)
			},
			[]string{"bytes=1048576-", ""},
		},
		{
			"a server that refuses the range", sample[:half],
			func(n int, w http.ResponseWriter, r *http.Request) {
				status(http.StatusRequestedRangeNotSatisfiable)(n, w, r)
			},
			[]string{"bytes=1048576-", ""},
		},
		{
			"cut twice", nil,
			func(n int, w http.ResponseWriter, r *http.Request) {
				switch n {
				case 1:
					cut(w, sample[:half], len(sample))
				case 2:
					w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", half, len(sample)-1, len(sample)))
					w.WriteHeader(http.StatusPartialContent)
					_, _ = w.Write(sample[half : 2*half])
				default:
					whole(w, r, sample)
				}
			},
			[]string{"", "bytes=1048576-", "bytes=2097152-"},
		},
		{"500, then well", nil, status(500), []string{"", ""}},
		{"429 with Retry-After", nil, status(429, "Retry-After", "1"), []string{"", ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, b := fresh(t), blobOf(sample)
			if c.partial != nil {
				write(t, s.partial(b), c.partial)
			}
			server := serve(t, c.answer)
			start := time.Now()
			fetched(t, s, b, Place(server.URL+"/sample.whl"))
			if got := server.asked(); strings.Join(got, " ") != strings.Join(c.ranges, " ") || len(got) != len(c.ranges) {
				t.Errorf("asked for %q, want %q", got, c.ranges)
			}
			check.That(t, !strings.Contains(c.name, "Retry-After") || time.Since(start) >= time.Second, "did not wait as asked")
		})
	}
}

func TestFetchOfUnknownSize(t *testing.T) {
	s, b := fresh(t), blobOf(sample)
	b.Size = 0
	server := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 1 {
			cut(w, sample[:1<<20], len(sample))
		}
		whole(w, r, sample)
	})
	fetched(t, s, b, Place(server.URL))
}

func TestFetchStalled(t *testing.T) {
	s, b := fresh(t), blobOf(sample)
	s.client = web.Client(web.Options{Plain: true, Silence: 500 * time.Millisecond}) // enough for a busy host to answer
	server := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		switch n {
		case 1: // no answer
			<-r.Context().Done()
		case 2: // half an answer
			w.Header().Set("Content-Length", fmt.Sprint(len(sample)))
			_, _ = w.Write(sample[:1<<20])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			whole(w, r, sample)
		}
	})
	fetched(t, s, b, Place(server.URL))
	check.Same(t, "asked", 3, len(server.asked()))
}

func TestFetchFromTheNextPlace(t *testing.T) {
	s, b := fresh(t), blobOf(sample)
	gone := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	evil := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, len(sample))) })
	good := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { whole(w, r, sample) })
	fetched(t, s, b, Place(gone.URL), Place(evil.URL), Place(good.URL))
	for _, server := range []*server{gone, evil, good} {
		got := server.asked()
		check.That(t, len(got) == 1 && got[0] == "", "asked for %q", got)
	}
}

func TestFetchTellsWhatEachPlaceSaid(t *testing.T) {
	s, b := fresh(t), blobOf(sample)
	answer := func(code int) string {
		return serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }).URL
	}
	evil := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, len(sample))) })
	long := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(append(bytes.Clone(sample), 0)) })
	secret := strings.Replace(answer(401), "http://", "http://me:hush@", 1) + "/x?token=hush"
	from := []Place{
		Place(answer(404)), Place(answer(403)), Place(secret), Place(answer(503)), Place(evil.URL), Place(long.URL),
		"http://me:hush@127.0.0.1:1/x", "ftp://me:hush@host/x", "http://me:hush@[bad/x?hush", "file://host/x?hush",
		Place(filepath.Join(t.TempDir(), "absent.whl")), "/dev/zero",
	}
	_, err := s.Fetch(t.Context(), b, from, nil)
	e, ok := errors.AsType[*diag.Error](err)
	must.Hold(t, ok && e.Code == diag.Fetch && strings.Contains(e.Hint, "--set source.NAME=PATH") && strings.Contains(e.Hint, "BUILDER_MIRROR_"),
		"got %#v", err)
	text := err.Error()
	for _, want := range []string{
		"sample.whl", "404 Not Found", "403 Forbidden", "401 Unauthorized", "503 Service", "refused", `"ftp"`, "no such file", "not a regular file",
		evil.URL + ": wrong content: expected sha256 " + b.SHA256 + ", got " + blobOf(make([]byte, len(sample))).SHA256,
		"longer than the expected 3145728 bytes",
	} {
		check.That(t, strings.Contains(text, want), "%q is not in\n%s", want, text)
	}
	check.That(t, !strings.Contains(text, "hush"), "tells a secret:\n%s", text)
	n := strings.Count(text, "\n")
	check.That(t, n == len(from), "%d lines for %d places:\n%s", n, len(from), text)
	left := names(t, filepath.Join(s.dir, partials))
	check.That(t, len(left) == 0, "left behind: %v", left)
	_, err = s.Fetch(t.Context(), b, nil, nil)
	check.That(t, diag.CodeOf(err) == diag.Fetch && strings.Contains(err.Error(), "no place"), "without a place: %v", err)
	_, err = s.Fetch(t.Context(), Blob{Name: "x", SHA256: "../../x"}, from, nil)
	check.That(t, diag.CodeOf(err) == diag.Fetch, "a digest that is a path: %v", err)
}

func TestFetchFromThisHost(t *testing.T) {
	b := blobOf(sample)
	path := write(t, filepath.Join(t.TempDir(), "a file.whl"), sample)
	for _, from := range []Place{Place(path), Place("file://" + strings.ReplaceAll(path, " ", "%20"))} {
		s := fresh(t)
		var done int64
		_, err := s.Fetch(t.Context(), b, []Place{from}, func(n, total int64) { done = max(done, n) })
		check.That(t, err == nil && done == b.Size, "%s: %v after %d bytes", from, err, done)
		fetched(t, s, b, from)
	}
	info, err := os.Stat(path)
	check.That(t, err == nil && info.Mode().Perm() == 0o644, "the user's file was changed: %v, %v", info, err)
	for want, content := range map[string][]byte{"the file has 9 bytes instead of the expected 3145728": sample[:9], "wrong content": make([]byte, len(sample))} {
		s := fresh(t)
		_, err := s.Fetch(t.Context(), b, []Place{Place(write(t, filepath.Join(t.TempDir(), "x"), content))}, nil)
		check.That(t, diag.CodeOf(err) == diag.Fetch && strings.Contains(err.Error(), want), "got %v, want %s", err, want)
		left := names(t, filepath.Join(s.dir, temps))
		check.That(t, len(left) == 0, "%s: left behind: %v", want, left)
	}
}

// TestFetchOnceForManyProcesses runs itself in several processes.
func TestFetchOnceForManyProcesses(t *testing.T) {
	b := blobOf(sample)
	if dir := os.Getenv("STORE_TEST_DIR"); dir != "" {
		s := must.Get(Open(dir))(t)
		fetchedBy, err := s.Fetch(t.Context(), b, []Place{Place(os.Getenv("STORE_TEST_URL"))}, nil)
		if err != nil {
			t.Fatal(fetchedBy, err)
		}
		return
	}
	s := fresh(t)
	server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		time.Sleep(300 * time.Millisecond)
		whole(w, r, sample)
	})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestFetchOnceForManyProcesses$")
			cmd.Env = append(os.Environ(), "STORE_TEST_DIR="+s.dir, "STORE_TEST_URL="+server.URL)
			out, err := cmd.CombinedOutput()
			check.That(t, err == nil, "%v: %s", err, out)
		})
	}
	wg.Wait()
	check.Same(t, "fetched", 1, len(server.asked()))
	fetched(t, s, b)
}

func TestFetchCancelledContinuesLater(t *testing.T) {
	s, b := fresh(t), blobOf(sample)
	server := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 1 {
			w.Header().Set("Content-Length", fmt.Sprint(len(sample)))
			_, _ = w.Write(sample[:1<<20])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		whole(w, r, sample)
	})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.Fetch(ctx, b, []Place{Place(server.URL), "/absent"}, func(done, total int64) {
		if done == 1<<20 && total == b.Size {
			time.AfterFunc(10*time.Millisecond, cancel) // after the bytes were written
		}
	})
	must.Hold(t, errors.Is(err, context.Canceled) && diag.CodeOf(err) == diag.Interrupted, "got %v", err)
	info, err := os.Stat(s.partial(b))
	must.Hold(t, err == nil && info.Size() == 1<<20, "the partial: %v, %v", info, err)
	fetched(t, s, b, Place(server.URL))
	got := server.asked()
	check.That(t, got[len(got)-1] == "bytes=1048576-", "asked for %q", got)
}

func TestSize(t *testing.T) {
	server := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/absent" {
			http.NotFound(w, r)
			return
		}
		whole(w, r, sample)
	})
	path := write(t, filepath.Join(t.TempDir(), "f"), sample)
	for _, from := range []Place{Place(server.URL), Place(path), Place("file://" + path)} {
		n, err := Size(t.Context(), from)
		check.That(t, err == nil && n == int64(len(sample)), "%s: %d, %v", from, n, err)
	}
	for _, from := range []Place{Place(server.URL + "/absent?token=hush"), "ftp://x", "/absent"} {
		_, err := Size(t.Context(), from)
		check.That(t, err != nil && !strings.Contains(err.Error(), "hush"), "%s: %v", from, err)
	}
}
