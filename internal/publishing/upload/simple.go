package upload

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"builder/internal/base/retry"
	"builder/internal/base/web"
	"builder/internal/files/wheel"

	"golang.org/x/net/html"
)

// Media types of an index page (PEP 691).
const (
	jsonPage = "application/vnd.pypi.simple.v1+json"
	htmlPage = "application/vnd.pypi.simple.v1+html"
	accepted = jsonPage + ", " + htmlPage + ";q=0.2, text/html;q=0.1"
)

// lookup returns the sha256 of a file in the index, in hex. A missing project or file
// is no error. A listed file without sha256 is one, because its content is unknown. An
// index that redirects a project to another origin counts as without the project.
func (s *Server) lookup(ctx context.Context, project, filename string) (string, bool, error) {
	for _, root := range s.places() {
		files, err := s.project(ctx, root, project)
		switch {
		case err == nil:
			if sum, found, err := find(files, filename); found || err != nil {
				return sum, found, err
			}
		case errors.Is(err, errNoProject):
		case s.simple == "" && errors.Is(err, errNoIndex) && !retry.IsTemporary(err): // the address was a guess
		default:
			return "", false, fmt.Errorf("reading the index: %w", err)
		}
	}
	return "", false, nil
}

// places returns the possible roots of the index: the one in the destination, or those
// of pypiserver, Artifactory and Nexus, and of devpi.
func (s *Server) places() []string {
	if s.simple != "" {
		return []string{s.simple}
	}
	base := strings.TrimRight(s.URL, "/")
	return []string{base + "/simple", base + "/+simple"}
}

var (
	errNoProject = errors.New("the index has no such project")
	errNoIndex   = errors.New("no readable index")
)

// project returns the files of a project in the index at root.
func (s *Server) project(ctx context.Context, root, project string) ([]listed, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(s.stall, func() { cancel(errStalled) })
	defer stalled.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(root, "/")+"/"+url.PathEscape(wheel.NormalName(project))+"/", http.NoBody)
	if err != nil {
		return nil, web.WithoutAddress(err)
	}
	req.Header.Set("Accept", accepted)
	req.Header.Set("Cache-Control", "no-cache") // the page must include the latest upload
	s.forIndex(req.URL).authorise(req)
	resp, err := s.client.Do(req)
	switch {
	case errors.Is(err, errElsewhere):
		return nil, errNoProject
	case err != nil:
		return nil, s.temporary(ctx, web.WithoutAddress(err))
	}
	defer resp.Body.Close()
	s.answered.Store(true)
	switch code := resp.StatusCode; {
	case code == http.StatusNotFound:
		return nil, errNoProject
	case code != http.StatusOK:
		return nil, s.noIndex(resp)
	}
	files, err := parse(resp.Header.Get("Content-Type"), &bounded{resp.Body, maxPage, func() { stalled.Reset(s.stall) }})
	if err != nil {
		return nil, s.temporary(ctx, err)
	}
	return files, nil
}

// forIndex returns the credentials for an index.
func (s *Server) forIndex(u *url.URL) credentials {
	if target, err := url.Parse(s.URL); err == nil && sameOrigin(target, u) {
		return s.credentials
	}
	return s.foreign
}

// noIndex returns the reason for a missing page.
func (s *Server) noIndex(resp *http.Response) error {
	a := s.read(resp)
	err := fmt.Errorf("%w: %w", errNoIndex, a.err())
	switch {
	case busy(a.code):
		return retry.Temporary(err, a.after)
	case a.code == http.StatusUnauthorized || a.code == http.StatusForbidden:
		return &hinted{err, s.forIndex(resp.Request.URL).advice(a.code)}
	}
	return err
}

// bounded is a reader with a limit, past which it returns an error.
type bounded struct {
	r     io.Reader
	left  int64
	moved func()
}

// Read implements [io.Reader].
func (b *bounded) Read(data []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("%w: the page has more than %d bytes", errNoIndex, int64(maxPage))
	}
	n, err := b.r.Read(data[:min(int64(len(data)), b.left)])
	b.left -= int64(n)
	b.moved()
	return n, err
}

// A listed file is an entry of an index page.
type listed struct {
	name   string
	sha256 string // in lower case, "" if the page has none
}

// parse reads an index page in JSON or HTML.
func parse(contentType string, page io.Reader) ([]listed, error) {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, fmt.Errorf("%w: its content type is %.80q", errNoIndex, contentType)
	}
	switch kind {
	case jsonPage, "application/json":
		return parseJSON(page)
	case htmlPage, "text/html", "application/xhtml+xml":
		return parseHTML(page)
	}
	return nil, fmt.Errorf("%w: its content type is %.80q", errNoIndex, contentType)
}

// parseJSON reads a page of PEP 691.
func parseJSON(page io.Reader) ([]listed, error) {
	data, err := io.ReadAll(page)
	if err != nil {
		return nil, err
	}
	var doc struct {
		Meta struct {
			Version string `json:"api-version"`
		} `json:"meta"`
		Files []struct {
			Name   string            `json:"filename"`
			Hashes map[string]string `json:"hashes"`
		} `json:"files"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoIndex, err)
	}
	if err := known(doc.Meta.Version); err != nil {
		return nil, err
	}
	files := make([]listed, len(doc.Files))
	for i, f := range doc.Files {
		files[i] = listed{f.Name, digest(f.Hashes["sha256"])}
	}
	return files, nil
}

// known refuses an unknown major version of the format.
func known(version string) error {
	if major, _, _ := strings.Cut(version, "."); major != "1" {
		return fmt.Errorf("%w: its format has the unknown version %.20q", errNoIndex, version)
	}
	return nil
}

// parseHTML reads a page of PEP 503. Every link is a file, with its digest in the
// fragment.
func parseHTML(page io.Reader) ([]listed, error) {
	var files []listed
	z := html.NewTokenizer(page)
	z.SetMaxBuf(maxAnswer)
	for {
		switch z.Next() {
		case html.ErrorToken:
			if err := z.Err(); !errors.Is(err, io.EOF) {
				return nil, fmt.Errorf("reading the index page: %w", err)
			}
			return files, nil
		case html.StartTagToken, html.SelfClosingTagToken:
			tag := z.Token()
			switch tag.Data {
			case "a":
				if f, ok := link(attribute(tag, "href")); ok {
					files = append(files, f)
				}
			case "meta":
				if attribute(tag, "name") == "pypi:repository-version" {
					if err := known(attribute(tag, "content")); err != nil {
						return nil, err
					}
				}
			}
		}
	}
}

func attribute(tag html.Token, name string) string {
	for _, a := range tag.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// link reads the target of a link. The name of a file is the last part of its address,
// which installers use too. The text of the link does not count.
func link(href string) (listed, bool) {
	u, err := url.Parse(strings.TrimSpace(href))
	if err != nil || u.Path == "" || strings.HasSuffix(u.Path, "/") {
		return listed{}, false
	}
	f := listed{name: path.Base(u.Path)}
	for part := range strings.SplitSeq(u.Fragment, "&") {
		if sum, ok := strings.CutPrefix(part, "sha256="); ok && f.sha256 == "" {
			f.sha256 = digest(sum)
		}
	}
	return f, true
}

// digest normalizes a sha256 to lower case. It returns "" for other texts.
func digest(text string) string {
	if raw, err := hex.DecodeString(text); err != nil || len(raw) != 32 {
		return ""
	}
	return strings.ToLower(text)
}

// find returns the only digest for a name on a page.
func find(files []listed, name string) (sum string, found bool, err error) {
	for _, f := range files {
		switch {
		case f.name != name:
			continue
		case sum != "" && f.sha256 != "" && f.sha256 != sum:
			return "", true, fmt.Errorf("the index lists %q twice, with different digests", name)
		case sum == "":
			sum = f.sha256
		}
		found = true
	}
	if found && sum == "" {
		return "", true, &hinted{
			fmt.Errorf("the index lists %q without its sha256, so the files cannot be compared", name),
			"configure the server to show sha256, as most servers do by default",
		}
	}
	return sum, found, nil
}
