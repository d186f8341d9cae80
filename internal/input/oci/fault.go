package oci

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"builder/internal/base/diag"
	"builder/internal/base/retry"
)

// ErrAbsent means that a registry answers and does not have the image, tag or digest.
var ErrAbsent = errors.New("not in the registry")

// ErrSilent means that a registry cannot be reached.
var ErrSilent = errors.New("its registry does not answer")

// errContent is the error for content that contradicts its digest, its size or its
// manifest.
var errContent = errors.New("the registry returned wrong content")

// errTaken is the error for a tag on other content.
var errTaken = errors.New("the tag names other content")

// printable is an error with another text.
type printable struct {
	error
	text string
}

func (p *printable) Error() string { return p.text }
func (p *printable) Unwrap() error { return p.error }

var address = regexp.MustCompile(`"?https?://[^\s"]*"?`)

// plain returns an error of oras or net/http with a text that is safe to print: short,
// and without addresses, because that of a redirect may carry credentials.
func plain(err error) error {
	text := err.Error()
	copying, copied := errors.AsType[*oras.CopyError](err)
	request, asked := errors.AsType[*url.Error](err)
	response, refused := errors.AsType[*errcode.ErrorResponse](err)
	switch {
	case errors.Is(err, errdef.ErrNotFound), refused && response.StatusCode == http.StatusNotFound && response.Method == http.MethodGet:
		return ErrAbsent
	case isUnauthorized(err): // details of authentication are not repeated
		text = answered(http.StatusUnauthorized)
	case refused:
		text = answered(response.StatusCode)
		if len(response.Errors) > 0 {
			text += ": " + response.Errors.Error()
		}
	case asked:
		text = request.Err.Error()
	case copied:
		text = copying.Err.Error()
	}
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, address.ReplaceAllString(text, "(address)"))
	if runes := []rune(text); len(runes) > 1000 {
		text = string(runes[:1000]) + "…"
	}
	return &printable{err, text}
}

func answered(status int) string {
	return fmt.Sprintf("the registry answered %d %s", status, http.StatusText(status))
}

func isUnauthorized(err error) bool {
	response, refused := errors.AsType[*errcode.ErrorResponse](err)
	return refused && response.StatusCode == http.StatusUnauthorized || errors.Is(err, auth.ErrBasicCredentialNotFound)
}

func isTLS(err error) bool {
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	_, header := errors.AsType[tls.RecordHeaderError](err)
	return certificate || alert || header
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
	again := "try again"
	if code == diag.Publish {
		again += "; uploaded files are not sent twice"
	}
	return diag.Errorf(code, "%s: %w", doing, plain(err)).WithHint("%s", hintFor(err, r.repo.Reference.Registry, again))
}

// hintFor returns the remedy of an error of the registry host, or "".
func hintFor(err error, host, again string) string {
	_, network := errors.AsType[*net.OpError](err)
	response, refused := errors.AsType[*errcode.ErrorResponse](err)
	switch {
	case errors.Is(err, errTaken):
		return "builder never moves this tag: publish to another repository, or under another name; if the cell has another key because its lock was renewed, give its recipe a new version, or remove the published one with the registry's own tool"
	case isUnauthorized(err):
		return host + " accepts no credentials of docker's configuration: run docker login " + host
	case refused && response.StatusCode == http.StatusForbidden:
		return "your login at " + host + " lacks this permission: ask the owner of the repository"
	case refused && response.StatusCode == http.StatusNotFound:
		return host + " does not create repositories on push: create this one first, or correct its name"
	case refused:
		return "ask the owner of " + host
	case errors.Is(err, http.ErrSchemeMismatch):
		return host + " uses plain HTTP: put TLS before it, or add --insecure to publish"
	case isTLS(err):
		return "this host does not trust the certificate of " + host + ": set SSL_CERT_FILE to the file with its authority"
	case errors.Is(err, errContent), errors.Is(err, content.ErrMismatchedDigest):
		return "the registry, or a proxy before it, changes files: ask its owner"
	case network:
		return "check the connection from this host to " + host + ", and " + again
	case retry.IsTemporary(err):
		return "the registry is busy or has a fault: " + again
	}
	return ""
}
