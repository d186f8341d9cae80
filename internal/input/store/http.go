package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"builder/internal/base/retry"
	"builder/internal/base/web"
)

// client reads files, whose digests are known, from any address.
var client = web.Client(web.Options{Plain: true})

var errRange = errors.New("the server does not have the requested range")

// download appends the remaining bytes of source to p. resumed reports whether the
// beginning of p is from an earlier attempt.
func (s *Store) download(ctx context.Context, p *partial, b Blob, source Place, progress func(done, total int64)) (resumed bool, err error) {
	resp, at, err := s.request(ctx, source, p.size)
	if err == nil {
		defer resp.Body.Close()
	}
	if at != p.size {
		if err := p.restart(); err != nil {
			return false, err
		}
	}
	if err != nil {
		return false, err
	}
	if err := announced(resp, at, b); err != nil {
		if at == 0 {
			return false, errors.Join(err, p.restart())
		}
		return false, err
	}
	total := b.Size
	if total <= 0 && resp.ContentLength > 0 {
		total = at + resp.ContentLength
	}
	body := &watched{Reader: resp.Body, ctx: ctx, seen: func(n int) { progress(p.size+int64(n), total) }}
	if err := p.fill(body, b); err != nil {
		return false, interrupted(err)
	}
	if p.size < b.Size && isPage(resp) {
		return false, errors.Join(otherSize(resp, p.size, b), p.restart())
	}
	return at > 0, nil
}

// announced refuses an answer with a wrong announced size: another attempt would get
// the same file.
func announced(resp *http.Response, at int64, b Blob) error {
	size := at + resp.ContentLength
	switch {
	case resp.ContentLength < 0 || b.Size <= 0 || size == b.Size:
		return nil
	case size > b.Size:
		return &otherBytes{fmt.Errorf("%w the expected %d bytes", errTooLong, b.Size)}
	}
	return otherSize(resp, size, b)
}

// isPage reports whether an answer is HTML: a proxy's login or error page in place of
// the file.
func isPage(resp *http.Response) bool {
	return strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html")
}

func otherSize(resp *http.Response, size int64, b Blob) error {
	what := "a file"
	if isPage(resp) {
		what = "a web page"
	}
	return &otherBytes{fmt.Errorf("the server sent %s of %d bytes instead of the expected %d", what, size, b.Size)}
}

// request requests the bytes from offset on and returns the offset of the answer's
// first byte. A server may ignore the range.
func (s *Store) request(ctx context.Context, source Place, offset int64) (*http.Response, int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, string(source), http.NoBody)
	if err != nil {
		return nil, offset, web.WithoutAddress(err)
	}
	if offset > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, offset, web.WithoutAddress(err)
	}
	switch {
	case resp.StatusCode == http.StatusOK:
		return resp, 0, nil
	case resp.StatusCode == http.StatusPartialContent && begins(resp, offset):
		return resp, offset, nil
	}
	_ = resp.Body.Close()
	if offset > 0 && (resp.StatusCode == http.StatusRequestedRangeNotSatisfiable || resp.StatusCode == http.StatusPartialContent) {
		return nil, 0, retry.Temporary(errRange, 0)
	}
	return nil, offset, retry.Status(resp)
}

func begins(resp *http.Response, offset int64) bool {
	var first int64
	_, err := fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-", &first)
	return err == nil && first == offset
}

// interrupted marks the error of a body as temporary, because the rest can be requested.
// Errors of the local disk and oversized bodies are permanent.
func interrupted(err error) error {
	if _, ours := errors.AsType[*diskError](err); ours || errors.Is(err, errTooLong) {
		return err
	}
	return retry.Temporary(err, 0)
}

// watched is a reader that ends with its context and reports each read.
type watched struct {
	io.Reader
	ctx  context.Context
	seen func(n int)
}

// Read implements [io.Reader].
func (w *watched) Read(data []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	n, err := w.Reader.Read(data)
	if n > 0 {
		w.seen(n)
	}
	return n, err
}
