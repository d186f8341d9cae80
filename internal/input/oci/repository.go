package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"builder/internal/base/diag"
	"builder/internal/base/retry"
	"builder/internal/base/web"
)

// Scheme is the prefix of a repository in user input.
const Scheme = "oci://"

// silence bounds the time without any byte sent or received. It includes the registry's
// time to store the content.
const silence = 2 * time.Minute

// Options configure the access to a repository. The zero value is the usual
// configuration.
type Options struct {
	Insecure bool          // allow plain HTTP to other hosts
	retry    retry.Policy  // the zero value is [retry.Default]
	silence  time.Duration // longest time without a byte; 0 means two minutes
}

// A Repository stores packages in a registry. Its methods are safe for concurrent use.
type Repository struct {
	repo   *remote.Repository
	policy retry.Policy
}

// OpenRepository returns the repository of an address such as
// oci://registry.example:5000/wheels/horovod. It sends no request. TLS certificates are
// verified. Plain HTTP is used for this host, and for other hosts only with
// [Options].Insecure. The credentials are docker's.
func OpenRepository(text string, o Options) (*Repository, error) {
	where, err := parsePlace(text)
	if err != nil {
		return nil, err
	}
	return connect(where, o)
}

// connect returns a repository. Its client sends credentials only to the registry: oras
// follows neither links nor upload locations to another host.
func connect(where registry.Reference, o Options) (*Repository, error) {
	if o.retry == (retry.Policy{}) {
		o.retry = retry.Default
	}
	if o.silence == 0 {
		o.silence = silence
	}
	store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return nil, diag.Errorf(diag.Usage, "reading docker's configuration: %w", err)
	}
	client := web.Client(redirect)
	client.Transport = &transport{client.Transport, o}
	return &Repository{policy: o.retry, repo: &remote.Repository{
		Client:    &auth.Client{Client: client, Cache: auth.NewCache(), Credential: credentials.Credential(store)},
		Reference: where,
		PlainHTTP: o.Insecure || web.Loopback(where.Host()),
		// Keep old lists of referrers: another publisher may be reading them, and some
		// registries refuse to delete them.
		SkipReferrersGC:      true,
		MaxMetadataBytes:     maxManifest,
		ReferrerListMaxPages: maxReferrers,
		TagListMaxPages:      maxTags,
	}}, nil
}

// String returns the repository as users write it.
func (r *Repository) String() string {
	return Scheme + r.repo.Reference.Registry + "/" + r.repo.Reference.Repository
}

func parsePlace(text string) (registry.Reference, error) {
	rest, ok := strings.CutPrefix(text, Scheme)
	hint := "write it as " + Scheme + "HOST/REPOSITORY, without a tag"
	if strings.Contains(rest, "@") { // may hold a password, so the message omits it
		return registry.Reference{}, diag.Errorf(diag.Usage, "reading the address of a repository: the address has a digest or a user name").
			WithHint("%s; credentials come from docker's configuration", hint)
	}
	where, err := registry.ParseReference(rest)
	if !ok || err != nil || where.Reference != "" {
		return registry.Reference{}, diag.Errorf(diag.Usage, "reading the address of a repository: %q is not an address", text).WithHint("%s", hint)
	}
	return where, nil
}

// try calls f until it succeeds or another attempt cannot help. The transport marks the
// answers worth another attempt. One more is that of a registry behind: it does not know
// an upload or a file sent earlier to another registry behind the same name, or reads a
// file that another publisher is writing.
func (r *Repository) try(ctx context.Context, f func(context.Context) error) error {
	_, err := retry.Do(ctx, r.policy, func(ctx context.Context) (struct{}, error) {
		err := f(ctx)
		said, _ := errors.AsType[errcode.Errors](err)
		if slices.ContainsFunc(said, func(e errcode.Error) bool {
			return e.Code == errcode.ErrorCodeBlobUploadUnknown || e.Code == errcode.ErrorCodeManifestBlobUnknown
		}) {
			err = retry.Temporary(err, 0)
		}
		return struct{}{}, retry.Dropped(err)
	})
	return err
}

// errRedirect is the error for a refused redirect.
var errRedirect = errors.New("the registry's redirect was refused")

// redirect decides whether to follow a redirect. Reads may go to another host, without
// credentials, because their content has a digest. Writes go to the registry only.
func redirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case len(via) > 5:
		return fmt.Errorf("%w: more than 5 redirects", errRedirect)
	case first.Method != http.MethodGet && first.Method != http.MethodHead && req.URL.Host != first.URL.Host:
		return fmt.Errorf("%w: an upload goes to no other host", errRedirect)
	}
	return nil
}

// errPlain is the error for an address without TLS.
var errPlain = errors.New("the registry leads to another host without TLS")

// transport refuses plain HTTP, also for tokens and redirects. It marks answers worth
// another attempt as temporary, and ends requests without traffic.
type transport struct {
	base http.RoundTripper
	Options
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" && !t.Insecure && !web.Loopback(req.URL.Host) {
		return nil, errPlain
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	late := retry.Temporary(fmt.Errorf("the registry sent nothing for %s", t.silence), 0)
	timer := time.AfterFunc(t.silence, func() { cancel(late) })
	moved := func(err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		timer.Reset(t.silence)
		return err
	}
	end := func() { timer.Stop(); cancel(nil) }
	req = req.WithContext(ctx)
	if req.Body != nil {
		req.Body = watched{req.Body, moved, func() {}}
	}
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		err = moved(err)
		end()
		return nil, err
	}
	if err := retry.Status(resp); retry.IsTemporary(err) {
		end()
		return nil, errors.Join(err, resp.Body.Close())
	}
	resp.Body = watched{resp.Body, moved, end}
	return resp, nil
}

// watched is a body that reports every read.
type watched struct {
	io.ReadCloser
	moved func(error) error
	end   func()
}

// Read implements [io.Reader].
func (w watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if err == nil || errors.Is(err, io.EOF) {
		_ = w.moved(nil)
		return n, err
	}
	return n, w.moved(err)
}

// Close implements [io.Closer].
func (w watched) Close() error {
	defer w.end()
	return w.ReadCloser.Close()
}
