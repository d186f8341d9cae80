package upload

import (
	"bytes"
	"context"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/net/html"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/base/retry"
	"builder/internal/base/web"
)

// Limits of an index page: its bytes, and the time to read it.
const (
	maxPage  = 32 << 20
	patience = 5 * time.Minute
)

// whereCredentials is a hint with the variables of a user's credentials. They are those
// of uv.
const whereCredentials = "set UV_PUBLISH_TOKEN, or UV_PUBLISH_USERNAME and UV_PUBLISH_PASSWORD"

// client gets the password of uploads, also without TLS where [Open] allows that.
var client = web.Client(web.Options{Plain: true, Stay: true})

// authorise adds the credentials for uploads to a request, if it goes to the same
// server.
func (s *Server) authorise(req *http.Request) {
	if !web.Same(req.URL, s.target) {
		return
	}
	user, password := os.Getenv("UV_PUBLISH_USERNAME"), os.Getenv("UV_PUBLISH_PASSWORD")
	if token := os.Getenv("UV_PUBLISH_TOKEN"); token != "" {
		user, password = "__token__", token
	}
	if password != "" {
		req.SetBasicAuth(user, password)
	}
}

// listed returns the sha256 of every file with the name on the page of a project. An
// index that redirects the project to another server has no such project: that server
// cannot say what this one has.
func (s *Server) listed(ctx context.Context, page *url.URL, name string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page.String(), http.NoBody)
	if err != nil {
		return nil, web.WithoutAddress(err)
	}
	req.Header.Set("Accept", "application/vnd.pypi.simple.v1+html, text/html;q=0.5")
	req.Header.Set("Cache-Control", "no-cache") // the page must include the latest upload
	s.authorise(req)
	resp, err := client.Do(req)
	if errors.Is(err, web.ErrElsewhere) {
		return nil, nil
	}
	if err != nil {
		return nil, unreachable(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return nil, nil
	}
	if err := refusal(resp); err != nil {
		return nil, err
	}
	data, err := regular.All(resp.Body, maxPage)
	if err != nil && !errors.Is(err, regular.ErrLarger) {
		err = unreachable(err)
	}
	return parse(data, name), err
}

// unreachable returns an error for a request without a whole answer.
func unreachable(err error) error {
	return diag.Errorf(diag.Publish, "%w", web.WithoutAddress(err)).
		WithHint("check that this host can reach the server and trusts its certificate (SSL_CERT_FILE), and run the same command again: it sends nothing that the index shows")
}

// refusal returns an error for an answer that is no index page.
func refusal(resp *http.Response) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode == http.StatusOK && (kind == "text/html" || kind == "application/vnd.pypi.simple.v1+html") {
		return nil
	}
	err := diag.Errorf(diag.Publish, "%w, with the content type %.80q", retry.Status(resp), kind)
	if code := resp.StatusCode; code == http.StatusUnauthorized || code == http.StatusForbidden {
		return err.WithHint("the index wants credentials too: %s. builder reads no netrc and no keyring for the index", whereCredentials)
	}
	return err.WithHint("name an index in HTML (PEP 503) with ?simple=URL, or run the same command again later: it sends nothing that the index shows")
}

// parse returns the sha256 of every link of a page (PEP 503) to a file with the name, ""
// for a link without it. The name of a file is the last part of its address, which
// installers use too. The text of the link does not count.
func parse(page []byte, name string) (sums []string) {
	z := html.NewTokenizer(bytes.NewReader(page))
	for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
		tag := z.Token()
		if tag.Data != "a" || kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		for _, a := range tag.Attr {
			u, err := url.Parse(strings.TrimSpace(a.Val))
			if a.Key == "href" && err == nil && path.Base(u.Path) == name && !strings.HasSuffix(u.Path, "/") {
				fragment, _ := url.ParseQuery(u.Fragment)
				sums = append(sums, strings.ToLower(fragment.Get("sha256")))
			}
		}
	}
	return sums
}
