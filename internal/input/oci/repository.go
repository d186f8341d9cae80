package oci

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"builder/internal/base/diag"
	"builder/internal/base/retry"
	"builder/internal/base/web"
)

// Scheme is the prefix of a repository in user input.
const Scheme = "oci://"

// silence bounds the time without any byte sent or received. It includes the registry's
// time to store the content.
const silence = 2 * time.Minute

// expectAbove is a size in bytes. A larger body is sent only after the registry agreed
// to receive it (Expect: 100-continue). A refusal then costs no upload and does not
// look like a broken connection.
const expectAbove = 1 << 20

// Options configure the access to a repository. The zero value is the usual
// configuration.
type Options struct {
	Insecure bool          // allow plain HTTP to other hosts
	retry    retry.Policy  // the zero value is [retry.Default]
	silence  time.Duration // longest time without a byte; 0 means two minutes
}

// A Repository stores packages in a registry. Its methods are safe for concurrent use.
type Repository struct {
	repo     *remote.Repository
	policy   retry.Policy
	silence  time.Duration
	insecure bool
	answered atomic.Bool // whether the registry has answered
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
	r := &Repository{policy: o.retry, silence: o.silence, insecure: o.Insecure}
	if r.policy == (retry.Policy{}) {
		r.policy = retry.Default
	}
	if r.silence == 0 {
		r.silence = silence
	}
	r.repo = &remote.Repository{
		Reference: where,
		PlainHTTP: o.Insecure || web.Loopback(where.Host()),
		// Keep old lists of referrers: another publisher may be reading them, and some
		// registries refuse to delete them.
		SkipReferrersGC:      true,
		MaxMetadataBytes:     maxManifest,
		ReferrerListMaxPages: maxReferrers,
		TagListMaxPages:      maxTags,
	}
	if r.repo.Client, err = r.client(where.Host()); err != nil {
		return nil, err
	}
	return r, nil
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

// client returns a client that sends credentials to one host only.
func (r *Repository) client(host string) (*auth.Client, error) {
	store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return nil, diag.Errorf(diag.Usage, "reading docker's configuration: %w", err)
	}
	known := credentials.Credential(store)
	client := web.Client(r.redirect)
	client.Transport = &transport{r, client.Transport}
	return &auth.Client{
		Client: client,
		Cache:  auth.NewCache(),
		Credential: func(ctx context.Context, asked string) (auth.Credential, error) {
			if asked != host {
				return auth.EmptyCredential, nil
			}
			return known(ctx, asked)
		},
	}, nil
}

// errRedirect is the error for a refused redirect.
var errRedirect = errors.New("the registry's redirect was refused")

// redirect decides whether to follow a redirect. Reads may go to another host, without
// credentials, because their content has a digest. Writes go to the registry only.
func (r *Repository) redirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case len(via) > 5:
		return fmt.Errorf("%w: more than 5 redirects", errRedirect)
	case first.Method != http.MethodGet && first.Method != http.MethodHead && req.URL.Host != first.URL.Host:
		return fmt.Errorf("%w: an upload goes to no other host", errRedirect)
	case req.URL.Scheme == "https":
		return nil
	case req.URL.Scheme != "http" || !r.insecure && !web.Loopback(req.URL.Host):
		return fmt.Errorf("%w: the other host has no TLS", errRedirect)
	}
	return nil
}

// A try is one attempt of an operation. It holds the delay requested by the registry
// and a timer to end the attempt after too long without a byte.
type try struct {
	after   atomic.Int64 // nanoseconds
	watch   *time.Timer
	silence time.Duration
}

type tryKey struct{}

// moved records that bytes were sent or received.
func moved(ctx context.Context) {
	if t, ok := ctx.Value(tryKey{}).(*try); ok {
		t.watch.Reset(t.silence)
	}
}

// do calls f until it succeeds or another attempt cannot help. It removes addresses
// from errors.
func do[T any](ctx context.Context, r *Repository, f func(context.Context) (T, error)) (T, error) {
	return retry.Do(ctx, r.policy, func(ctx context.Context) (T, error) {
		t := &try{silence: r.silence}
		watched, cancel := context.WithCancelCause(context.WithValue(ctx, tryKey{}, t))
		defer cancel(nil)
		late := &silent{r.silence}
		t.watch = time.AfterFunc(r.silence, func() { cancel(late) })
		defer t.watch.Stop()
		v, err := f(watched)
		if err != nil && errors.Is(context.Cause(watched), late) {
			err = late
		}
		e := plainFault(err)
		if e != nil && r.passes(err, e) {
			e = retry.Temporary(e, time.Duration(t.after.Load()))
		}
		return v, e
	})
}

// transport records requested delays and traffic of HTTP requests.
type transport struct {
	of   *Repository
	base http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.ContentLength > expectAbove {
		req = req.Clone(req.Context())
		req.Header.Set("Expect", "100-continue")
	}
	moved(req.Context())
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	moved(req.Context())
	t.of.answered.Store(true)
	if current, ok := req.Context().Value(tryKey{}).(*try); ok {
		current.after.Store(int64(retryAfter(resp, time.Now())))
	}
	return resp, nil
}

// retryAfter returns the delay requested by a registry, or 0.
func retryAfter(resp *http.Response, now time.Time) time.Duration {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	return retry.After(resp.Header.Get("Retry-After"), now)
}
