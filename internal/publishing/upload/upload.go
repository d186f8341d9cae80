// Package upload uploads a wheel to a server with the protocol of PyPI, such as PyPI
// itself, devpi, pypiserver, Artifactory and Nexus, and reports whether the server has
// it.
//
// A name identifies one file. Before and after the upload, the package compares the
// digest in the server's index with the wheel. It sends nothing if the same bytes are
// there. Other bytes under the name are a [Conflict], even if the server would have
// accepted the upload. An upload can therefore be repeated, by the user or by the retry
// after a broken connection.
//
// Credentials come from the environment, a netrc file or a keyring. They are sent only
// to the given address, and no error contains them.
package upload

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"builder/internal/base/diag"
	"builder/internal/base/retry"
	"builder/internal/base/web"
	"builder/internal/files/artifact"
	"builder/internal/input/store"
)

// Prefix begins a destination of this package.
const Prefix = "pypi:"

// A Server is an upload server.
type Server struct {
	URL string // address for uploads
	// simple is the root of the server's index, PEP 503 or 691. If it is empty, the
	// usual places below URL are tried.
	simple      string
	credentials credentials

	foreign  credentials // for an index of another origin
	client   *http.Client
	policy   retry.Policy
	shown    retry.Policy  // how long to wait for an upload to appear in the index
	stall    time.Duration // maximum time without progress on a connection
	answered *atomic.Bool  // whether the server answered since Open
}

// Options control [Open]. The zero value suits the user's own host.
type Options struct {
	simple   string                                   // index, in place of the one in the destination
	Insecure bool                                     // allow http to other hosts, with a readable password
	env      func(name string) string                 // nil means [os.Getenv]
	Warn     func(format string, args ...any)         // may be nil
	keyring  func(url, user string) (password string) // replaces the program in tests
}

// Result is the outcome of an upload.
type Result string

// The results of an upload.
const (
	// Uploaded: the index now shows the file with its digest, and did not before.
	Uploaded Result = "uploaded"
	// Accepted: the server accepted the file, but no known index shows it yet.
	Accepted Result = "accepted"
	// Existed: the same file was already there, and nothing changed.
	Existed Result = "existed"
)

// A Conflict is a different file with the name of the wheel.
type Conflict struct {
	Name string
	Want string // sha256 of the wheel
	Have string // sha256 of the server's file, "" if unknown
}

// Error returns the name and both digests.
func (c *Conflict) Error() string {
	if c.Have == "" {
		return fmt.Sprintf("the server has another file named %q (ours has sha256 %s)", c.Name, c.Want)
	}
	return fmt.Sprintf("the server has another file named %q: sha256 %s, ours has %s", c.Name, c.Have, c.Want)
}

// Open parses a destination: pypi:URL, with an optional ?simple=URL for the index,
// which may be relative. It searches for credentials, but contacts no server. All
// errors have class [diag.Usage].
func Open(ctx context.Context, text string, o Options) (*Server, error) {
	if o.env == nil {
		o.env = os.Getenv
	}
	if o.Warn == nil {
		o.Warn = func(string, ...any) {}
	}
	target, index, err := o.addresses(text)
	if err != nil {
		return nil, err
	}
	s := &Server{URL: target.String(), policy: retry.Default, stall: 5 * time.Minute, answered: new(atomic.Bool)}
	s.shown = retry.Policy{Tries: 4, First: time.Second, Most: 5 * time.Second}
	s.client = web.Client(redirected)
	if s.credentials, err = o.find(ctx, target); err != nil {
		return nil, err
	}
	if index != nil {
		s.simple = index.String()
		if sameOrigin(target, index) {
			return s, nil
		}
		if s.foreign, err = o.netrc(index); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// addresses splits a destination into the address for uploads and the address of the
// index, which may be nil.
func (o Options) addresses(text string) (target, index *url.URL, err error) {
	target, err = o.address(strings.TrimPrefix(text, Prefix))
	if err != nil {
		return nil, nil, err
	}
	simple, meant := strings.CutPrefix(target.RawQuery, "simple=")
	if meant = meant || target.RawQuery == ""; !meant || strings.Contains(simple, "&") || target.Fragment != "" {
		return nil, nil, diag.Errorf(diag.Usage, "%q has an unsupported query or fragment", store.Redact(text)).
			WithHint("only ?simple=URL is supported; put a token into BUILDER_PUBLISH_TOKEN")
	}
	if simple, err = url.PathUnescape(simple); err != nil { // not QueryUnescape, which turns the + in devpi's +simple/ into a space
		return nil, nil, diag.Errorf(diag.Usage, "the address of the index is malformed")
	}
	target.RawQuery, target.ForceQuery = "", false
	if o.simple != "" {
		simple = o.simple
	}
	if simple == "" {
		return target, nil, nil
	}
	relative, err := url.Parse(simple)
	if err != nil {
		return nil, nil, diag.Errorf(diag.Usage, "the address of the index is malformed")
	}
	index, err = o.address(target.ResolveReference(relative).String())
	if err == nil && (index.RawQuery != "" || index.Fragment != "") {
		err = diag.Errorf(diag.Usage, "the address of the index, %q, has a query or a fragment", store.Redact(index.String()))
	}
	return target, index, err
}

// address parses an address to which a password may be sent. Its errors do not quote an
// unparsable address, which may contain a password at any place.
func (o Options) address(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, diag.Errorf(diag.Usage, "the address of the upload server is malformed").
			WithHint("write pypi:https://HOST/PATH")
	}
	if u.User != nil {
		return nil, diag.Errorf(diag.Usage, "the address %q holds credentials, and every process of this host could read them", store.Redact(text)).
			WithHint("%s", whereCredentials)
	}
	if !o.Insecure && !web.Private(u) {
		return nil, diag.Errorf(diag.Usage, "%q is not encrypted: others on the network could read and change the password and the wheel", store.Redact(text)).
			WithHint("write https://, or allow http with --insecure in a trusted network")
	}
	return u, nil
}

// Upload uploads the wheel unless the server already has it. It reads the file while
// sending, and sends the end of the form only after it has verified size and sha256. If
// progress is not nil, it is called with the bytes of the file sent so far. done
// decreases when a retry starts over.
//
// Errors have class [diag.Publish]. Use errors.As to find a [Conflict].
func (s *Server) Upload(ctx context.Context, w artifact.Artifact, progress func(done, total int64)) (Result, error) {
	if progress == nil {
		progress = func(int64, int64) {}
	}
	result, err := s.upload(ctx, w, progress)
	switch {
	case err == nil:
		return result, nil
	case ctx.Err() != nil:
		return "", fmt.Errorf("uploading %s: %w", w.Name, context.Cause(ctx))
	}
	return "", s.explain(fmt.Sprintf("uploading %s to %s", w.Name, s.URL), err)
}

func (s *Server) upload(ctx context.Context, w artifact.Artifact, progress func(done, total int64)) (Result, error) {
	f, err := newForm(w)
	if err != nil {
		return "", err
	}
	there, err := retry.Do(ctx, s.policy, func(ctx context.Context) (bool, error) { return s.compare(ctx, f) })
	if there || err != nil {
		return Existed, err
	}
	tried := false
	result, err := retry.Do(ctx, s.policy, func(ctx context.Context) (Result, error) {
		if tried { // an earlier try may have succeeded without an answer
			if there, err := s.compare(ctx, f); there || err != nil {
				return Uploaded, err
			}
		}
		tried = true
		return s.attempt(ctx, f, progress)
	})
	if retry.IsTemporary(err) && ctx.Err() == nil {
		if there, again := s.compare(ctx, f); there || isConflict(again) {
			return Uploaded, again
		}
	}
	return result, err
}

// attempt sends the file once and interprets the answer.
func (s *Server) attempt(ctx context.Context, f *form, progress func(done, total int64)) (Result, error) {
	a, err := s.post(ctx, f, progress)
	switch {
	case err != nil:
		return "", err
	case a.taken():
		return s.confirm(ctx, f, a)
	case a.maybeThere():
		return s.resolve(ctx, f, a)
	}
	return "", s.refused(a, f)
}

var errNotShown = errors.New("the index does not show the file")

// confirm checks whether the index shows the accepted file.
func (s *Server) confirm(ctx context.Context, f *form, a answer) (Result, error) {
	there, err := s.await(ctx, f)
	switch {
	case isConflict(err):
		return "", fmt.Errorf("the server accepted the file, but its index shows another: %w", err)
	case errors.Is(err, errNotShown) && a.page:
		return "", fmt.Errorf("the server answered with a web page, and its index does not show the file: %w", a.err())
	case errors.Is(err, errNotShown):
		return Accepted, nil
	case err != nil:
		return "", fmt.Errorf("comparing the uploaded file: %w", err)
	case there:
		return Uploaded, nil
	}
	return Accepted, nil
}

// resolve decides whether a refusal means that the server already has the file.
func (s *Server) resolve(ctx context.Context, f *form, a answer) (Result, error) {
	if !a.saysExists() {
		if there, err := s.compare(ctx, f); there || err != nil {
			return Existed, err
		}
		return "", s.refused(a, f)
	}
	there, err := s.await(ctx, f)
	switch {
	case errors.Is(err, errNotShown):
		return "", s.refused(a, f)
	case there || err != nil:
		return Existed, err
	}
	return "", s.refused(a, f)
}

// await compares until the index shows the file or the time is up, because an index may
// be cached. It queries a guessed index only once.
func (s *Server) await(ctx context.Context, f *form) (bool, error) {
	if s.simple == "" {
		there, err := s.compare(ctx, f)
		if err == nil && !there {
			err = errNotShown
		}
		return there, err
	}
	return retry.Do(ctx, s.shown, func(ctx context.Context) (bool, error) {
		there, err := s.compare(ctx, f)
		if err == nil && !there {
			err = retry.Temporary(errNotShown, 0)
		}
		return there, err
	})
}

// compare reports whether the index shows the file. Another file under its name is a
// [Conflict].
func (s *Server) compare(ctx context.Context, f *form) (bool, error) {
	sum, found, err := s.lookup(ctx, f.name.Distribution, f.wheel.Name)
	if found && err == nil && sum != f.wheel.SHA256 {
		err = &Conflict{Name: f.wheel.Name, Want: f.wheel.SHA256, Have: sum}
	}
	return found && err == nil, err
}

func isConflict(err error) bool {
	_, ok := errors.AsType[*Conflict](err)
	return ok
}
