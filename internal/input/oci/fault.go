package oci

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"builder/internal/base/diag"
)

// NotFound is the error for a tag or digest missing in a repository.
type NotFound struct{}

func (*NotFound) Error() string { return "not in the registry" }

// Conflict is the error for a tag on other content.
type Conflict struct {
	Tag        string
	Have, Want string // digests
}

func (c *Conflict) Error() string {
	return fmt.Sprintf("the tag %s names %s, not %s", c.Tag, c.Have, c.Want)
}

// A Refusal is a registry's answer with an error status.
type Refusal struct {
	Status int    // HTTP status
	Reason string // in the registry's words; may be empty
}

func (r *Refusal) Error() string {
	text := fmt.Sprintf("the registry answered %d %s", r.Status, http.StatusText(r.Status))
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	return text
}

// silent is the error for a registry without any traffic for a time.
type silent struct{ after time.Duration }

func (s *silent) Error() string {
	return fmt.Sprintf("the registry sent nothing for %s", s.after)
}

// errRealm is the error for a token service that must not receive a password.
var errRealm = errors.New("the registry names an unsafe token service for the password")

// stripped is an error without addresses in its text. The address of a redirect may
// carry credentials.
type stripped struct {
	error
	text string
}

func (s *stripped) Error() string { return s.text }
func (s *stripped) Unwrap() error { return s.error }

var address = regexp.MustCompile(`"?https?://[^\s"]*"?`)

// plainFault turns an error of oras-go or net/http into an error safe to print.
func plainFault(err error) error {
	if response, ok := errors.AsType[*errcode.ErrorResponse](err); ok {
		if response.StatusCode == http.StatusNotFound && (response.Method == http.MethodGet || response.Method == http.MethodHead) {
			return &NotFound{}
		}
		return &Refusal{response.StatusCode, reason(response)}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errdef.ErrNotFound):
		return &NotFound{}
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return &Refusal{Status: http.StatusUnauthorized}
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	text := address.ReplaceAllString(err.Error(), "(address)")
	switch { // oras-go has no types for these errors
	case strings.Contains(text, "mismatch"):
		return fmt.Errorf("%w: %s", errContent, text)
	case strings.Contains(text, "bearer realm"):
		return fmt.Errorf("%w: %s", errRealm, text)
	}
	if text != err.Error() {
		return &stripped{err, text}
	}
	return err
}

// reason returns a registry's reason for a refusal, short and printable. It returns ""
// for 401: details of authentication are not repeated.
func reason(response *errcode.ErrorResponse) string {
	if response.StatusCode == http.StatusUnauthorized {
		return ""
	}
	var all []string
	for _, e := range response.Errors {
		all = append(all, strings.Trim(e.Code+": "+e.Message, ": "))
	}
	text := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, address.ReplaceAllString(strings.Join(all, "; "), "(address)"))
	if runes := []rune(text); len(runes) > 200 {
		text = string(runes[:200]) + "…"
	}
	return text
}

// passes reports whether another attempt may succeed.
func (r *Repository) passes(err, e error) bool {
	if refusal, ok := errors.AsType[*Refusal](e); ok {
		return isPassing(refusal.Status) || isBehind(err)
	}
	if _, ok := errors.AsType[*silent](e); ok || errors.Is(err, errLost) {
		return true
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok && name.IsNotFound || isOurs(err) || isTLS(err) {
		return false
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return r.answered.Load() // it answered before and may be restarting
	}
	_, asked := errors.AsType[*url.Error](err)
	_, network := errors.AsType[net.Error](err)
	return asked || network || errors.Is(err, io.ErrUnexpectedEOF)
}

func isPassing(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported, http.StatusInsufficientStorage:
		return false
	}
	return status >= 500
}

// isBehind reports whether a registry does not know content sent earlier: an upload it
// started, or a blob of a manifest. Push sends blobs before manifests, so another
// attempt may succeed. One of several registries behind a name may be late, and a
// registry on plain files may be read while another publisher writes the same file.
func isBehind(err error) bool {
	response, ok := errors.AsType[*errcode.ErrorResponse](err)
	return ok && slices.ContainsFunc(response.Errors, func(e errcode.Error) bool {
		return e.Code == errcode.ErrorCodeBlobUploadUnknown || e.Code == errcode.ErrorCodeManifestBlobUnknown
	})
}

// isOurs reports whether the error was found on this side, in a file or by a check of
// this package. Another attempt would find it again.
func isOurs(err error) bool {
	_, file := errors.AsType[*fs.PathError](err)
	return file || errors.Is(err, errRedirect) || errors.Is(err, errRealm) || errors.Is(err, errChanged) || errors.Is(err, errContent)
}

func isTLS(err error) bool {
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	_, header := errors.AsType[tls.RecordHeaderError](err)
	return certificate || alert || header || errors.Is(err, http.ErrSchemeMismatch)
}

// fail wraps an error with the operation, its class and a hint. An interruption gets
// neither class nor hint.
func (r *Repository) fail(ctx context.Context, code diag.Code, err error, format string, args ...any) error {
	doing := fmt.Sprintf(format, args...)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
	}
	e := diag.Errorf(code, "%s: %w", doing, err)
	cost := "" // of a second try
	if code == diag.Publish {
		cost = "; uploaded files are not sent twice"
	}
	if hint := r.hint(err, cost); hint != "" {
		return e.WithHint("%s", hint)
	}
	return e
}

// hint returns the remedy of an error, or "". A remedy that says to try again ends with
// cost.
func (r *Repository) hint(err error, cost string) string {
	host := r.repo.Reference.Registry
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return hintOf(refusal.Status, host, cost)
	}
	if _, ok := errors.AsType[*Conflict](err); ok {
		return "builder never moves this tag: publish to another repository, or under another name; if the cell has another key because its lock was renewed, give its recipe a new version, or remove the published one with the registry's own tool"
	}
	_, network := errors.AsType[net.Error](err)
	network = network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return host + " uses plain HTTP: put TLS before it, or add --insecure to publish"
	case isTLS(err):
		return "this host does not trust the certificate of " + host + ": set SSL_CERT_FILE to the file with its authority"
	case errors.Is(err, errChanged):
		return "stop all writers of the file, and push again"
	case errors.Is(err, errRedirect):
		return notSentOn
	case errors.Is(err, errRealm):
		return "ask the owner of the registry for a token service with TLS and outside private networks"
	case errors.Is(err, errLost):
		return "the registry, or a proxy before it, loses uploads: ask its owner"
	case errors.Is(err, errContent):
		return "the registry, or a proxy before it, changes bytes: ask its owner"
	case network:
		return "check the connection from this host to " + host + ", and try again" + cost
	}
	return ""
}

// notSentOn is the hint for a redirect of a write.
const notSentOn = "an upload does not follow a redirect to another host: if that host is right, name it"

func hintOf(status int, host, cost string) string {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return notSentOn
	case http.StatusUnauthorized:
		return host + " accepts no credentials of docker's configuration: run docker login " + host
	case http.StatusForbidden:
		return "your login at " + host + " lacks this permission: ask the owner of the repository"
	case http.StatusNotFound:
		return host + " does not create repositories on push: create this one first, or correct its name"
	case http.StatusMethodNotAllowed:
		return host + " does not allow this operation: ask its owner"
	case http.StatusConflict:
		return "another publisher writes the same tag, or it must not be replaced: push again, or publish to another repository"
	case http.StatusRequestEntityTooLarge:
		return "a file is larger than the limit of " + host + " or of a proxy before it: ask its owner to raise it"
	case http.StatusTooManyRequests:
		return "wait and try again" + cost
	}
	if status >= 500 {
		return "the registry has a fault: try again later" + cost
	}
	return ""
}
