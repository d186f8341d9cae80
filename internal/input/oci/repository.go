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

// Scheme stands before a repository as users write it.
const Scheme = "oci://"

// silence is how long a registry may say nothing and take nothing. It includes
// the time that it needs to store what was sent.
const silence = 2 * time.Minute

// expectAbove is the size in bytes of a body that is only sent when the registry
// has said that it wants it: a refusal then costs nothing, and is seen as what it
// is and not as a connection that broke.
const expectAbove = 1 << 20

// Options say how a repository is spoken to. The zero value is for everyday use.
type Options struct {
	Insecure bool          // plain HTTP also to other hosts
	retry    retry.Policy  // the zero value is [retry.Default]
	silence  time.Duration // the longest that a registry may be silent; 0 is two minutes
}

// A Repository keeps packages in a registry. Its methods may be called at once.
type Repository struct {
	repo     *remote.Repository
	policy   retry.Policy
	silence  time.Duration
	insecure bool
	answered atomic.Bool // since it was opened
}

// OpenRepository returns the repository that a text such as
// oci://registry.example:5000/wheels/horovod names; nothing is asked of the
// registry. TLS is verified. Plain HTTP is spoken to this host, and to others only
// where the options allow it. Credentials are docker's.
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
		PlainHTTP: o.Insecure || isLocal(where.Host()),
		// The index of referrers that another publisher may be reading stays; not
		// every registry lets us delete it either.
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
	if strings.Contains(rest, "@") { // may hold a password, so it is not repeated
		return registry.Reference{}, diag.Errorf(diag.Usage, "reading the address of a repository: it holds a digest or a user's name").
			WithHint("%s; credentials are those of docker's configuration", hint)
	}
	where, err := registry.ParseReference(rest)
	if !ok || err != nil || where.Reference != "" {
		return registry.Reference{}, diag.Errorf(diag.Usage, "reading the address of a repository: %q is none", text).WithHint("%s", hint)
	}
	return where, nil
}

// client returns a client that gives credentials to one host and to nobody else.
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

// errRedirect is a redirect that is not followed.
var errRedirect = errors.New("the registry sends us where we do not go")

// redirect decides whether to follow. What is read may lie elsewhere: it has a
// digest, and no credentials go there. What is written goes to the registry alone.
func (r *Repository) redirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case len(via) > 5:
		return fmt.Errorf("%w: in circles", errRedirect)
	case first.Method != http.MethodGet && first.Method != http.MethodHead && req.URL.Host != first.URL.Host:
		return fmt.Errorf("%w: to another host with what is to be stored", errRedirect)
	case req.URL.Scheme == "https":
		return nil
	case req.URL.Scheme != "http" || !r.insecure && !isLocal(req.URL.Host):
		return fmt.Errorf("%w: to another host without TLS", errRedirect)
	}
	return nil
}

// A try is one attempt at an operation: what the registry asked us to wait, and a
// watch that ends the attempt when nothing moves any more.
type try struct {
	after   atomic.Int64 // nanoseconds
	watch   *time.Timer
	silence time.Duration
}

type tryKey struct{}

// moved says that something was sent or received.
func moved(ctx context.Context) {
	if t, ok := ctx.Value(tryKey{}).(*try); ok {
		t.watch.Reset(t.silence)
	}
}

// do tries f until it succeeds or there is no hope. Errors are plain faults
// without addresses.
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
		fault := plainFault(err)
		if fault != nil && r.passes(err, fault) {
			fault = retry.Temporary(fault, time.Duration(t.after.Load()))
		}
		return v, fault
	})
}

// transport notes what is said between the lines of HTTP.
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

// retryAfter returns how long a registry asks to be left alone, 0 where it does not.
func retryAfter(resp *http.Response, now time.Time) time.Duration {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	return retry.After(resp.Header.Get("Retry-After"), now)
}
