package upload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"builder/internal/base/diag"
	"builder/internal/base/retry"
	"builder/internal/files/artifact"
	"builder/test/kit/wheeltest"
)

func upload(t *testing.T, s *Server, w artifact.Artifact) (Result, error) {
	t.Helper()
	return s.Upload(t.Context(), w, nil)
}

func TestUploadTwiceIsOnce(t *testing.T) {
	for _, form := range []string{"html", "json"} {
		f := newFake(t)
		f.json = form == "json"
		s, w := open(t, "pypi:"+f.URL, Options{}), small(t, "a = 1\n")
		for i, want := range []Result{Uploaded, Existed} {
			if got, err := upload(t, s, w); got != want || err != nil {
				t.Fatalf("%s, upload %d: %q, %v", form, i+1, got, err)
			}
		}
		if f.posts != 1 {
			t.Errorf("%s: it was sent %d times", form, f.posts)
		}
		sum, found, err := s.lookup(t.Context(), "Demo.Pkg", w.Name)
		if sum != w.SHA256 || !found || err != nil {
			t.Errorf("%s: lookup: %q, %v, %v", form, sum, found, err)
		}
		if _, found, err := s.lookup(t.Context(), "demo-pkg", "other-1-py3-none-any.whl"); found || err != nil {
			t.Errorf("%s: lookup of what is not there: %v, %v", form, found, err)
		}
	}
}

func TestOtherBytesAreAConflict(t *testing.T) {
	f := newFake(t)
	s, first, second := open(t, f.URL, Options{}), small(t, "a = 1\n"), small(t, "a = 2\n")
	if _, err := upload(t, s, first); err != nil {
		t.Fatal(err)
	}
	_, err := upload(t, s, second)
	conflict, ok := errors.AsType[*Conflict](err)
	if !ok || conflict.Have != first.SHA256 || conflict.Want != second.SHA256 || diag.CodeOf(err) != diag.Publish {
		t.Errorf("%v", err)
	}
	if f.posts != 1 {
		t.Errorf("it was sent %d times", f.posts)
	}
}

func TestTheFormHoldsTheMetadata(t *testing.T) {
	metadata := "Metadata-Version: 2.1\nName: demo-pkg\nVersion: 1.0\nSummary: Größe\nHome-page: UNKNOWN\n" +
		"Classifier: A\nClassifier: B\nRequires-Dist: numpy>=1\nRequires-Dist: torch ; extra == 'x'\nProvides-Extra: x\n" +
		"Requires-Python: >=3.8\nProject-URL: Docs, there\n\n# Readme\n\ntext\n"
	path := wheeltest.Wheel{
		Name:    "demo_pkg-1.0-cp311-cp311-linux_x86_64.whl",
		Swapped: map[string]string{"demo_pkg-1.0.dist-info/METADATA": metadata},
	}.Write(t)
	f := newFake(t)
	if _, err := upload(t, open(t, f.URL, Options{}), measure(t, path)); err != nil {
		t.Fatal(err)
	}
	got := f.fields[0]
	for name, want := range map[string]string{
		":action": "file_upload", "protocol_version": "1", "filetype": "bdist_wheel", "pyversion": "cp311",
		"metadata_version": "2.1", "name": "demo-pkg", "version": "1.0", "summary": "Größe",
		"classifiers": "A|B", "requires_dist": "numpy>=1|torch ; extra == 'x'", "provides_extra": "x",
		"requires_python": ">=3.8", "project_urls": "Docs, there", "description": "# Readme\n\ntext\n", "home_page": "",
	} {
		if strings.Join(got[name], "|") != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
}

// say answers an upload with a status and a text.
func say(code int, text string) func(int, http.ResponseWriter, *http.Request) bool {
	return func(_ int, w http.ResponseWriter, r *http.Request) bool {
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(code)
		io.WriteString(w, text)
		return true
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		fault      func(int, http.ResponseWriter, *http.Request) bool
		says, hint string
		posts      int
	}{
		"401":          {say(401, "no"), "401 Unauthorized: no", "BUILDER_PUBLISH_PASSWORD", 1},
		"403":          {say(403, "not yours"), "403 Forbidden: not yours", "are wrong, or lack the right to upload", 1},
		"404":          {say(404, ""), "404 Not Found", "slash", 1},
		"409":          {say(409, "taken"), "409 Conflict: taken", "?simple=", 1},
		"400 exists":   {say(400, "File already exists."), "400 Bad Request: File already exists.", "?simple=", 1},
		"400":          {say(400, "Invalid classifier"), "Invalid classifier", "", 1},
		"413":          {say(413, "<html><title>413</title><style>x{}</style><p>too <b>large</b></html>"), ": 413 too large", "raise its limit", 1},
		"500":          {say(500, "oops"), "500 Internal Server Error: oops", "does not send a file twice", 3},
		"501":          {say(501, ""), "501", "", 1},
		"507":          {say(507, ""), "507", "", 1},
		"a web page":   {say(200, "<!DOCTYPE html><h1>Log in</h1>"), "answered with a web page", "", 1},
		"control":      {say(400, "a\x1b[31mb\r\nc"), "400 Bad Request: a [31mb c", "", 1},
		"its password": {say(400, "you sent "+secret), "you sent …", "", 1},
		"long":         {say(400, strings.Repeat("ä", 5000)), "ä…", "", 1},
		"redirect": {func(_ int, w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "https://user:pass@other.example/up?token=x", http.StatusPermanentRedirect)
			return true
		}, "and redirects to https://other.example/up?…", "does not follow redirects of uploads", 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.fault = c.fault
			_, err := upload(t, open(t, f.URL, Options{}), small(t, "a = 1\n"))
			all := diag.All(err)
			if err == nil || !strings.Contains(err.Error(), c.says) || diag.CodeOf(err) != diag.Publish {
				t.Fatalf("%v", err)
			}
			if !strings.Contains(all[0].Hint, c.hint) || (c.hint == "") != (all[0].Hint == "") {
				t.Errorf("hint: %q", all[0].Hint)
			}
			if f.posts != c.posts {
				t.Errorf("it was sent %d times, want %d", f.posts, c.posts)
			}
			if whole := fmt.Sprintf("%v %+v %s", err, err, all[0].Hint); strings.Contains(whole, secret) || strings.Contains(whole, "pass@") || len(whole) > 3000 {
				t.Errorf("%s", whole)
			}
		})
	}
}

func TestATemporaryFaultPasses(t *testing.T) {
	for name, fault := range map[string]func(int, http.ResponseWriter, *http.Request) bool{
		"500": func(n int, w http.ResponseWriter, _ *http.Request) bool {
			if n < 3 {
				w.WriteHeader(500)
			}
			return n < 3
		},
		"417": func(_ int, w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("Expect") != "" {
				w.WriteHeader(417)
			}
			return r.Header.Get("Expect") != ""
		},
		"cut at once": func(n int, w http.ResponseWriter, _ *http.Request) bool {
			if n == 1 {
				cutConnection(w)
			}
			return n == 1
		},
		"cut in the middle": func(n int, w http.ResponseWriter, r *http.Request) bool {
			if n == 1 {
				io.CopyN(io.Discard, r.Body, 3<<20)
				cutConnection(w)
			}
			return n == 1
		},
	} {
		f := newFake(t)
		f.fault = fault
		w := large(t)
		var most int64
		got, err := open(t, f.URL, Options{}).Upload(t.Context(), w, func(done, total int64) {
			if most = max(most, done); total != w.Size {
				t.Errorf("%s: total is %d", name, total)
			}
		})
		if got != Uploaded || err != nil || most != w.Size || f.files[w.Name] != w.SHA256 {
			t.Errorf("%s: %q, %v, %d of %d bytes", name, got, err, most, w.Size)
		}
	}
}

// A server that answered before may be restarting, so the client waits. It does not
// wait for a server that never answered.
func TestAServerThatRestarts(t *testing.T) {
	f := newFake(t)
	s, w := open(t, f.URL, Options{}), small(t, "a = 1\n")
	addr := f.Listener.Addr().String()
	f.fault = func(n int, rw http.ResponseWriter, _ *http.Request) bool {
		if n > 1 {
			return false
		}
		f.Listener.Close()
		cutConnection(rw)
		time.AfterFunc(20*time.Millisecond, func() {
			again, err := net.Listen("tcp", addr)
			if err != nil {
				t.Error(err)
				return
			}
			go http.Serve(again, f) //nolint:errcheck,gosec // it ends with the test
			t.Cleanup(func() { again.Close() })
		})
		return true
	}
	s.policy = retry.Policy{Tries: 8, First: 10 * time.Millisecond, Most: 100 * time.Millisecond}
	if got, err := upload(t, s, w); got != Uploaded || err != nil || f.files[w.Name] != w.SHA256 {
		t.Errorf("%q, %v", got, err)
	}
}

// The server stores the file, but the answer is lost.
func TestALostAnswer(t *testing.T) {
	f := newFake(t)
	f.fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
		name, sum, _ := f.receive(w, r)
		f.mu.Lock()
		f.files[name] = sum
		f.mu.Unlock()
		cutConnection(w)
		return true
	}
	if got, err := upload(t, open(t, f.URL, Options{}), small(t, "a = 1\n")); got != Uploaded || err != nil || f.posts != 1 {
		t.Errorf("%q, %v, sent %d times", got, err, f.posts)
	}
}

func TestTheServersWishToWaitCounts(t *testing.T) {
	f := newFake(t)
	var times []time.Time
	f.fault = func(n int, w http.ResponseWriter, _ *http.Request) bool {
		times = append(times, time.Now())
		if n == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(429)
		}
		return n == 1
	}
	got, err := upload(t, open(t, f.URL, Options{}), small(t, "a = 1\n"))
	if got != Uploaded || err != nil || len(times) != 2 || times[1].Sub(times[0]) < time.Second {
		t.Errorf("%q, %v, at %v", got, err, times)
	}
}

// For an endless answer only the status counts. The client stops reading.
func TestAnEndlessAnswer(t *testing.T) {
	f := newFake(t)
	sent := 0
	f.fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
		name, sum, _ := f.receive(w, r)
		f.mu.Lock()
		f.files[name] = sum
		f.mu.Unlock()
		for sent = 0; sent < 256<<20; {
			n, err := w.Write(bytes.Repeat([]byte("x"), 1<<16))
			if sent += n; err != nil {
				break
			}
		}
		return true
	}
	if got, err := upload(t, open(t, f.URL, Options{}), small(t, "a = 1\n")); got != Uploaded || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	f.Close() // waits for the answer to end
	if sent > 64<<20 {
		t.Errorf("%d bytes of the answer were sent", sent)
	}
}

func TestAnEndlessIndex(t *testing.T) {
	f := newFake(t)
	f.look = func(_ int, w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "text/html")
		for {
			if _, err := w.Write(bytes.Repeat([]byte("<p>x</p>"), 1<<13)); err != nil {
				return true
			}
		}
	}
	_, err := upload(t, open(t, f.URL+"?simple=simple/", Options{}), small(t, "a = 1\n"))
	if err == nil || !strings.Contains(err.Error(), "the page has more than 33554432 bytes") || f.posts != 0 {
		t.Errorf("%v", err)
	}
}

func TestTheServerRecordsAnotherDigest(t *testing.T) {
	f := newFake(t)
	f.fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
		name, _, _ := f.receive(w, r)
		f.mu.Lock()
		f.files[name] = strings.Repeat("ab", 32)
		f.mu.Unlock()
		return true
	}
	_, err := upload(t, open(t, f.URL, Options{}), small(t, "a = 1\n"))
	if !isConflict(err) || !strings.Contains(err.Error(), "accepted the file, but its index shows another") {
		t.Errorf("%v", err)
	}
}

func TestAnIndexThatLags(t *testing.T) {
	f := newFake(t)
	f.look = func(n int, w http.ResponseWriter, r *http.Request) bool {
		if n < 4 {
			http.NotFound(w, r)
		}
		return n < 4
	}
	if got, err := upload(t, open(t, f.URL, Options{simple: "/simple/"}), small(t, "a = 1\n")); got != Uploaded || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	f = newFake(t)
	f.look = func(_ int, w http.ResponseWriter, r *http.Request) bool { http.NotFound(w, r); return true }
	if got, err := upload(t, open(t, f.URL, Options{}), small(t, "a = 1\n")); got != Accepted || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestTwoAtOnce(t *testing.T) {
	f := newFake(t)
	both := sync.WaitGroup{}
	both.Add(2)
	f.fault = func(int, http.ResponseWriter, *http.Request) bool {
		both.Done() // both have read the index before either upload
		both.Wait()
		return false
	}
	w := small(t, "a = 1\n")
	results := make(chan Result, 2)
	for range 2 {
		s := open(t, f.URL, Options{})
		go func() {
			got, err := s.Upload(t.Context(), w, nil)
			if err != nil {
				t.Error(err)
			}
			results <- got
		}()
	}
	if a, b := <-results, <-results; a == b || a == Accepted || b == Accepted {
		t.Errorf("%q and %q", a, b)
	}
}

func TestAFileThatChanges(t *testing.T) {
	for name, change := range map[string]func(data []byte) []byte{
		"other bytes": func([]byte) []byte { return small2(t, "a = 2\n") },
		"longer":      func([]byte) []byte { return small2(t, strings.Repeat("a = 1\n", 999)) },
	} {
		f := newFake(t)
		w := small(t, "a = 1\n")
		data, err := os.ReadFile(w.Path)
		if err != nil {
			t.Fatal(err)
		}
		write(t, w.Path, string(change(data)), 0o600)
		_, err = upload(t, open(t, f.URL, Options{}), w)
		f.Close() // waits until the server has read to the end
		if !errors.Is(err, errChanged) || len(f.files) != 0 || f.posts > 1 {
			t.Errorf("%s: %v, %v", name, err, f.files)
		}
	}
}

func small2(t *testing.T, text string) []byte {
	data, err := os.ReadFile(small(t, text).Path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestNothingMoves(t *testing.T) {
	f := newFake(t)
	f.fault = func(_ int, _ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-r.Context().Done():
		case <-time.After(500 * time.Millisecond):
		}
		return true
	}
	s := open(t, f.URL, Options{})
	s.stall = 50 * time.Millisecond
	s.policy.Tries = 2
	_, err := upload(t, s, large(t))
	f.Close()
	if !errors.Is(err, errStalled) || !retry.IsTemporary(err) || f.posts != 2 {
		t.Errorf("%v, sent %d times", err, f.posts)
	}
}

// Credentials go only to the given address, not to the target of a redirect.
func TestRedirectsCarryNoCredentials(t *testing.T) {
	asked := 0
	var seen []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked++
		seen = append(seen, r.Header.Get("Authorization"))
	}))
	defer other.Close()
	f := newFake(t)
	send := func(_ int, w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
		return true
	}
	f.fault = send
	_, err := upload(t, open(t, f.URL, Options{}), small(t, "a = 1\n"))
	if err == nil || !strings.Contains(err.Error(), other.URL) || asked != 0 {
		t.Errorf("%v, asked %d times", err, asked)
	}
	f.fault, f.look = nil, send // an index that redirects to another
	if got, err := upload(t, open(t, f.URL, Options{simple: "/simple/"}), small(t, "a = 1\n")); got != Accepted || err != nil || asked != 0 {
		t.Errorf("%q, %v, asked %d times", got, err, asked)
	}
	upload(t, open(t, f.URL, Options{simple: other.URL}), small(t, "a = 1\n"))
	if asked == 0 || strings.Join(seen, "") != "" {
		t.Errorf("an index of another origin sees %q", seen)
	}
	if len(f.auth) == 0 || f.auth[0] == "" {
		t.Error("the server itself saw no credentials")
	}
}

func TestNobodyListens(t *testing.T) {
	f := newFake(t)
	f.Close()
	_, err := upload(t, open(t, f.URL, Options{}), small(t, "a = 1\n"))
	if err == nil || !strings.Contains(err.Error(), "connection refused") || diag.CodeOf(err) != diag.Publish {
		t.Errorf("%v", err)
	}
}

func TestItCanBeInterrupted(t *testing.T) {
	f := newFake(t)
	ctx, cancel := context.WithCancel(t.Context())
	f.fault = func(_ int, _ http.ResponseWriter, r *http.Request) bool {
		io.Copy(io.Discard, r.Body) // a server detects a closed connection only after reading the body
		cancel()
		<-r.Context().Done()
		return true
	}
	_, err := open(t, f.URL, Options{}).Upload(ctx, small(t, "a = 1\n"), nil)
	if diag.CodeOf(err) != diag.Interrupted {
		t.Errorf("%v", err)
	}
}

// A large file is not sent to a server that refuses it in advance.
func TestARefusalBeforehand(t *testing.T) {
	f := newFake(t)
	f.fault = func(_ int, w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	sent := int64(0)
	_, err := open(t, f.URL, Options{}).Upload(t.Context(), large(t), func(done, _ int64) { sent = done })
	if err == nil || !strings.Contains(err.Error(), "401") || sent != 0 {
		t.Errorf("%v, %d bytes were sent", err, sent)
	}
}

// A truncated page or a busy index does not prove that the file is missing.
func TestAnIndexThatFails(t *testing.T) {
	for name, look := range map[string]func(w http.ResponseWriter){
		"cut": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, "<a href=x>")
		},
		"busy": func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
	} {
		for _, most := range []int{2, 100} {
			f := newFake(t)
			w := small(t, "a = 1\n")
			f.files[w.Name] = w.SHA256
			f.look = func(n int, w http.ResponseWriter, _ *http.Request) bool {
				if n <= most {
					look(w)
				}
				return n <= most
			}
			got, err := upload(t, open(t, f.URL, Options{}), w)
			if most == 2 && (got != Existed || err != nil) || most == 100 && (err == nil || !retry.IsTemporary(err)) || f.posts != 0 {
				t.Errorf("%s, %d times: %q, %v, sent %d times", name, most, got, err, f.posts)
			}
		}
	}
	for code, hint := range map[int]string{401: "correct them there", 403: "are wrong, or lack", 500: "does not send a file twice", 418: ""} {
		f := newFake(t)
		f.look = func(_ int, w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(code); return true }
		_, err := upload(t, open(t, f.URL, Options{simple: "/simple"}), small(t, "a = 1\n"))
		if err == nil || diag.CodeOf(err) != diag.Publish || !strings.Contains(diag.All(err)[0].Hint, hint) {
			t.Errorf("%d: %v", code, err)
		}
	}
}

func TestACertificateOfNobody(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	_, err := upload(t, open(t, server.URL, Options{Insecure: true}), small(t, "a = 1\n"))
	if err == nil || !strings.Contains(diag.All(err)[0].Hint, "SSL_CERT_FILE") {
		t.Errorf("%v", err)
	}
}

func TestWhatIsNoWheel(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.txt": "x", "a-1-py3-none-any.whl": "x"} {
		f := newFake(t)
		_, err := upload(t, open(t, f.URL, Options{}), measure(t, write(t, filepath.Join(dir, name), text, 0o600)))
		if err == nil || len(f.auth) != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
