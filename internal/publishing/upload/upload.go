// Package upload puts a wheel on a server with the upload protocol of Python indexes,
// such as devpi, pypiserver, Artifactory and Nexus. A program such as `uv publish` sends
// the wheel. The package reads the server's index before and after it.
//
// A name identifies one file. The package sends nothing if the index shows the same
// bytes. Other bytes under the name are an error, before the upload and after it,
// even if the server would accept them. An upload can therefore be repeated.
package upload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/base/retry"
	"builder/internal/base/web"
	"builder/internal/files/artifact"
	"builder/internal/files/wheel"
	"builder/internal/input/store"
)

// Prefix begins a destination of this package.
const Prefix = "pypi:"

// A Send sends the wheel at path to the address of an upload server. The path is that of
// a private copy with the verified bytes.
type Send func(ctx context.Context, address, path string) error

// A Server is an upload server.
type Server struct {
	URL string // address for uploads

	target *url.URL
	roots  []*url.URL // possible roots of the index
	send   Send
	policy retry.Policy
}

// errConflict means that the server has another file with the name of the wheel.
var errConflict = errors.New("the server has another file")

// Open parses a destination: pypi:URL, with an optional ?simple=URL for the root of the
// index, which may be relative. It contacts no server. insecure allows http to other
// hosts, with a readable password. All errors have class [diag.Usage].
func Open(text string, insecure bool, send Send) (*Server, error) {
	target, err := address(strings.TrimPrefix(text, Prefix), insecure)
	if err != nil {
		return nil, err
	}
	simple, named := strings.CutPrefix(target.RawQuery, "simple=")
	if !named && target.RawQuery != "" || strings.Contains(simple, "&") || target.Fragment != "" {
		return nil, diag.Errorf(diag.Usage, "the address of the upload server has an unsupported query or fragment").
			WithHint("only ?simple=URL is supported; %s", whereCredentials)
	}
	target.RawQuery, target.ForceQuery = "", false
	s := &Server{URL: target.String(), target: target, send: send, policy: retry.Default}
	if !named {
		// The usual places of pypiserver, Artifactory and Nexus, and of devpi.
		s.roots = []*url.URL{target.JoinPath("simple"), target.JoinPath("+simple")}
		return s, nil
	}
	simple, err = url.PathUnescape(simple) // not QueryUnescape, which turns the + in devpi's +simple/ into a space
	relative, err2 := url.Parse(simple)
	if err != nil || err2 != nil || simple == "" {
		return nil, diag.Errorf(diag.Usage, "the address of the index is malformed").WithHint("write pypi:https://HOST/PATH?simple=URL")
	}
	root, err := address(target.ResolveReference(relative).String(), insecure)
	if err == nil && (root.RawQuery != "" || root.Fragment != "") {
		err = diag.Errorf(diag.Usage, "the address of the index, %q, has a query or a fragment", store.Redact(root.String()))
	}
	s.roots = []*url.URL{root}
	return s, err
}

// address parses an address to which a password may be sent. Its errors do not quote an
// unparsable address, which may contain a password at any place.
func address(text string, insecure bool) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, diag.Errorf(diag.Usage, "the address of the upload server is malformed").
			WithHint("write pypi:https://HOST/PATH")
	}
	if u.User != nil {
		return nil, diag.Errorf(diag.Usage, "the address %q holds credentials, and every process of this host could read them", store.Redact(text)).
			WithHint("%s", whereCredentials)
	}
	if !insecure && !web.Private(u) {
		return nil, diag.Errorf(diag.Usage, "%q is not encrypted: others on the network could read and change the password and the wheel", store.Redact(text)).
			WithHint("write https://, or allow http with --insecure in a trusted network")
	}
	return u, nil
}

// Upload uploads the wheel, and reports whether the server had it before. After an
// upload, an index without the wheel or with other bytes is an error. Errors have class
// [diag.Publish].
func (s *Server) Upload(ctx context.Context, w artifact.Artifact) (existed bool, err error) {
	existed, err = s.upload(ctx, w)
	switch {
	case err == nil:
		return existed, nil
	case ctx.Err() != nil:
		return false, fmt.Errorf("uploading %s: %w", w.Name, context.Cause(ctx))
	}
	return false, diag.Errorf(diag.Publish, "uploading %s to %s: %w", w.Name, s.URL, err)
}

func (s *Server) upload(ctx context.Context, w artifact.Artifact) (existed bool, err error) {
	name, err := wheel.ParseName(w.Name)
	if err != nil {
		return false, err
	}
	page := wheel.NormalName(name.Distribution) + "/"
	if there, err := s.compare(ctx, page, w); there || err != nil {
		return there, err
	}
	if refused := s.sendCopy(ctx, w); refused != nil {
		// The answer may be lost, or somebody else uploaded the same bytes meanwhile.
		there, err := s.compare(ctx, page, w)
		if there || errors.Is(err, errConflict) {
			return false, err
		}
		return false, refused
	}
	return false, s.confirm(ctx, page, w)
}

// sendCopy sends a copy of the wheel whose path no other program knows. It sends nothing
// if the bytes are not those that were verified.
func (s *Server) sendCopy(ctx context.Context, w artifact.Artifact) error {
	dir, err := os.MkdirTemp("", "builder-upload-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, w.Name)
	if err := artifact.Copy(w, path); err != nil {
		return err
	}
	return s.send(ctx, s.URL, path)
}

// confirm waits until the index shows the wheel, because an index may be cached.
func (s *Server) confirm(ctx context.Context, page string, w artifact.Artifact) error {
	_, err := retry.Do(ctx, s.policy, func(ctx context.Context) (bool, error) {
		there, err := s.compare(ctx, page, w)
		if err == nil && !there {
			err = retry.Temporary(diag.Errorf(diag.Publish, "the server took the file, but its index does not show it").
				WithHint("name the index with ?simple=URL, or run the same command again later: it sends nothing that the index shows"), 0)
		}
		return there, err
	})
	if errors.Is(err, errConflict) {
		return fmt.Errorf("the server took the file, but its index shows another: %w", err)
	}
	return err
}

// compare reports whether the index shows the wheel. Another file under its name is
// [errConflict]. A missing project or file is no error.
func (s *Server) compare(ctx context.Context, page string, w artifact.Artifact) (bool, error) {
	for _, root := range s.roots {
		sums, err := retry.Do(ctx, s.policy, func(ctx context.Context) ([]string, error) {
			return s.listed(ctx, root.JoinPath(page), w.Name)
		})
		if err != nil {
			return false, fmt.Errorf("reading the index: %w", err)
		}
		for _, sum := range sums {
			if sum != w.SHA256 {
				return false, diag.Errorf(diag.Publish, "%w named %q: sha256 %.64s, ours has %s", errConflict, w.Name, cmp.Or(sum, "unknown"), w.SHA256).
					WithHint("give the new file another version or build tag, or find the origin of the published file; builder never replaces it")
			}
		}
		if len(sums) > 0 {
			return true, nil
		}
	}
	return false, nil
}
