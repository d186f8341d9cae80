package store

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/test/kit/check"
)

// Many proxies send a login page or a "not found" page with status 200. Another request
// would get the same page.
func TestFetchOfAPage(t *testing.T) {
	const page = "<html>please log in</html>"
	for name, answer := range map[string]func(w http.ResponseWriter){
		"of a stated size":    func(w http.ResponseWriter) { fmt.Fprint(w, page) },
		"of an unstated size": func(w http.ResponseWriter) { fmt.Fprint(w, page); w.(http.Flusher).Flush() },
	} {
		t.Run(name, func(t *testing.T) {
			s, b := fresh(t), blobOf(sample)
			proxy := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				answer(w)
			})
			_, err := s.Fetch(t.Context(), b, []Place{Place(proxy.URL)}, nil)
			want := fmt.Sprintf("fetching sample.whl (sha256 %s): %s: the server sent a web page of 26 bytes instead of the expected %d", b.SHA256, proxy.URL, b.Size)
			check.That(t, diag.CodeOf(err) == diag.Fetch && err.Error() == want, "got %v", err)
			check.Same(t, "asked", 1, len(proxy.asked()))
			good := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { whole(w, r, sample) })
			fetched(t, s, b, Place(proxy.URL), Place(good.URL))
			got := good.asked()
			check.That(t, len(got) == 1 && got[0] == "", "the page was taken for the beginning: %q", got)
		})
	}
}

// A file of another size is another file. The partial download is kept.
func TestFetchOfAShorterFile(t *testing.T) {
	s, b := fresh(t), blobOf(sample)
	write(t, s.partial(b), sample[:1<<20])
	short := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { whole(w, r, sample[:2<<20]) })
	good := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { whole(w, r, sample) })
	fetched(t, s, b, Place(short.URL), Place(good.URL))
	got := append(short.asked(), good.asked()...)
	check.That(t, len(got) == 2 && got[1] == "bytes=1048576-", "asked for %q", got)
}

// The target of a redirect receives neither the password nor the token of the first
// host.
func TestRedirectTellsNothing(t *testing.T) {
	var requests []string
	other := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		requests = append(requests, fmt.Sprint(r.Header, r.URL))
		whole(w, r, sample)
	})
	elsewhere := strings.Replace(other.URL, "127.0.0.1", "localhost", 1) + "/there"
	first := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		check.That(t, user == "me" && password == "hush", "the first host was not told the password")
		http.Redirect(w, r, elsewhere, http.StatusFound)
	})
	s, b := fresh(t), blobOf(sample)
	fetched(t, s, b, Place(strings.Replace(first.URL, "http://", "http://me:hush@", 1)+"/f?token=hush"))
	check.That(t, len(requests) == 1 && !strings.Contains(requests[0], "hush") && !strings.Contains(requests[0], "Authorization"),
		"the other host was told %q", requests)
}

func TestRedirectForEver(t *testing.T) {
	s, b := fresh(t), blobOf(sample)
	server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) })
	_, err := s.Fetch(t.Context(), b, []Place{Place(server.URL)}, nil)
	check.That(t, diag.CodeOf(err) == diag.Fetch && strings.Contains(err.Error(), "redirected 10 times") && len(server.asked()) == 10,
		"asked %d times: %v", len(server.asked()), err)
}
