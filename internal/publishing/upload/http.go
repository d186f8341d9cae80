package upload

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"builder/internal/base/diag"
	"builder/internal/base/retry"
	"builder/internal/base/web"
	"builder/internal/input/store"

	"golang.org/x/net/html"
)

// Limits of a server's answer, in bytes, and of the part quoted in an error.
const (
	maxAnswer = 1 << 20
	maxPage   = 32 << 20
	maxQuote  = 400
)

var (
	errElsewhere = errors.New("the server redirects to another server")
	errStalled   = errors.New("the transfer made no progress for too long")
)

// redirected follows redirects of an index within its origin, for a missing slash or a
// normalized name. It never redirects uploads or credentials, because the user meant
// them for the given address only.
func redirected(req *http.Request, via []*http.Request) error {
	switch {
	case via[0].Method != http.MethodGet:
		return http.ErrUseLastResponse
	case !sameOrigin(req.URL, via[0].URL):
		return errElsewhere
	case len(via) >= 10:
		return errors.New("stopped after 10 redirects of the server")
	}
	return nil
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}

// An answer is the server's response to an upload.
type answer struct {
	code     int
	reason   string // from the status line
	location string
	after    time.Duration // Retry-After
	text     string        // without markup
	page     bool
}

// post sends the form once.
func (s *Server) post(ctx context.Context, f *form, progress func(done, total int64)) (answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(s.stall, func() { cancel(errStalled) })
	defer stalled.Stop()
	b, err := f.open(func(done, total int64) {
		stalled.Reset(s.stall)
		progress(done, total)
	})
	if err != nil {
		return answer{}, err
	}
	defer b.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, b)
	if err != nil {
		return answer{}, web.WithoutAddress(err)
	}
	req.ContentLength = f.size() // some servers refuse chunked bodies
	req.Header.Set("Content-Type", f.kind)
	if f.ask {
		req.Header.Set("Expect", "100-continue")
	}
	s.credentials.authorise(req)
	resp, err := s.client.Do(req)
	switch ours := b.ours(); {
	case ours != nil:
		if err == nil {
			_ = resp.Body.Close()
		}
		return answer{}, ours
	case err != nil:
		return answer{}, s.temporary(ctx, web.WithoutAddress(err))
	}
	defer resp.Body.Close()
	s.answered.Store(true)
	return s.read(resp), nil
}

// read reads at most maxAnswer bytes of an answer. The status counts even if the text
// is truncated or endless.
func (s *Server) read(resp *http.Response) answer {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	start := strings.ToLower(strings.TrimSpace(string(data[:min(len(data), 512)])))
	a := answer{
		code:   resp.StatusCode,
		reason: strings.TrimSpace(strings.TrimPrefix(resp.Status, strconv.Itoa(resp.StatusCode))),
		after:  retry.After(resp.Header.Get("Retry-After"), time.Now()),
		page:   strings.HasPrefix(start, "<!doctype") || strings.HasPrefix(start, "<html"),
	}
	text := string(data)
	if a.page {
		text = plain(text)
	}
	a.text = s.credentials.scrub(printable(text))
	a.reason = s.credentials.scrub(printable(a.reason))
	if to, err := resp.Location(); err == nil {
		a.location = s.credentials.scrub(store.Redact(to.String()))
	}
	return a
}

// plain returns the visible text of a web page.
func plain(page string) string {
	var b strings.Builder
	hidden := false
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		switch z.Next() {
		case html.ErrorToken:
			return b.String()
		case html.TextToken:
			if !hidden {
				b.Write(z.Text())
				b.WriteByte(' ')
			}
		case html.StartTagToken:
			name, _ := z.TagName()
			hidden = string(name) == "style" || string(name) == "script"
		case html.EndTagToken:
			hidden = false
		}
	}
}

// printable turns a text into one line without terminal control characters.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, " "))
	return strings.Join(strings.Fields(text), " ")
}

func (a answer) taken() bool { return a.code >= 200 && a.code < 300 }

// maybeThere reports whether servers give this status for a file they already have.
func (a answer) maybeThere() bool {
	return a.code == http.StatusBadRequest || a.code == http.StatusForbidden || a.code == http.StatusConflict
}

// existing lists phrases servers use for a name already in use.
var existing = []string{"already exist", "already been taken", "already uploaded", "does not allow updating", "overwrite", "redeploy"}

func (a answer) saysExists() bool {
	if a.code == http.StatusConflict {
		return true
	}
	said := strings.ToLower(a.reason + " " + a.text)
	for _, words := range existing {
		if strings.Contains(said, words) {
			return a.maybeThere()
		}
	}
	return false
}

// err returns the answer as an error.
func (a answer) err() error {
	reason := a.reason
	if reason == "" {
		reason = http.StatusText(a.code)
	}
	said := fmt.Sprintf("the server answered %d %s", a.code, cut(reason))
	if text := cut(a.text); text != "" && !strings.EqualFold(text, reason) {
		said += ": " + text
	}
	return errors.New(said)
}

func cut(text string) string {
	if runes := []rune(text); len(runes) > maxQuote {
		return string(runes[:maxQuote]) + "…"
	}
	return text
}

// hinted is an error with a hint.
type hinted struct {
	err  error
	hint string
}

func (h *hinted) Error() string { return h.err.Error() }
func (h *hinted) Unwrap() error { return h.err }

// refused turns an answer into an error. The error is temporary if the status is.
func (s *Server) refused(a answer, f *form) error {
	err := a.err()
	switch code := a.code; {
	case a.location != "" && code/100 == 3:
		return &hinted{fmt.Errorf("%w, and redirects to %s", err, a.location), "builder does not follow redirects of uploads; if the new address is right, publish to it"}
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return &hinted{err, s.credentials.advice(code)}
	case code == http.StatusRequestEntityTooLarge:
		return &hinted{err, fmt.Sprintf("the server, or a proxy before it, accepts less than %d bytes: raise its limit", f.size())}
	case code == http.StatusNotFound || code == http.StatusMethodNotAllowed:
		return &hinted{err, "check the address, it accepts no uploads: a slash at its end may be missing or wrong"}
	case code == http.StatusExpectationFailed && f.ask:
		f.ask = false
		return retry.Temporary(err, 0)
	case busy(code):
		return retry.Temporary(err, a.after)
	case a.saysExists():
		return &hinted{err, "add the address of its index with ?simple=URL, so that builder can compare the files"}
	}
	return err
}

// busy reports whether a status asks the client to try again.
func busy(code int) bool {
	return code == http.StatusRequestTimeout || code == http.StatusTooManyRequests || code >= 500 && code != http.StatusNotImplemented && code != http.StatusInsufficientStorage
}

// temporary marks errors that another request may avoid: a stall, a broken connection,
// and a connection refused by a server that answered before and may be restarting. An
// unknown host name is permanent.
func (s *Server) temporary(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errStalled) {
		return retry.Temporary(cause, 0)
	}
	if errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNREFUSED) && s.answered.Load() {
		return retry.Temporary(err, 0)
	}
	return retry.Dropped(err)
}

// explain turns an error into a message for the user, with a hint.
func (s *Server) explain(what string, err error) error {
	explained := diag.Errorf(diag.Publish, "%s: %w", what, err)
	if h, ok := errors.AsType[*hinted](err); ok {
		return explained.WithHint("%s", h.hint)
	}
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, unreachable := errors.AsType[*net.OpError](err)
	switch {
	case untrusted:
		return explained.WithHint("set SSL_CERT_FILE to a file with the server's certificate authority; builder checks every certificate, and --insecure only allows http")
	case isConflict(err):
		return explained.WithHint("give the new file another version or build tag, or find the origin of the published file; builder never replaces it")
	case errors.Is(err, errChanged):
		return explained.WithHint("build or verify the wheel again: another program wrote to the file")
	case unreachable:
		return explained.WithHint("check that this host can reach the server, and run the same command again: it does not send a file twice")
	case retry.IsTemporary(err):
		return explained.WithHint("run the same command again: it does not send a file twice")
	}
	return explained
}
