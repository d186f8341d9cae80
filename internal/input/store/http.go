package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"builder/internal/base/regular"
	"builder/internal/base/retry"
	"builder/internal/base/web"
)

// client reads files, whose digests are known, from any address.
var client = web.Client(web.Options{Plain: true})

var errRange = errors.New("the server does not have the requested range")

// download appends the remaining bytes of source to p.
func (t transfer) download(ctx context.Context, p *partial, source Place) error {
	b := t.blob
	resp, err := request(ctx, t.to.client, http.MethodGet, source, p.size)
	if errors.Is(err, errRange) {
		return errors.Join(err, p.restart())
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if p.size > 0 && resp.StatusCode == http.StatusOK { // the server ignored the range
		if err := p.restart(); err != nil {
			return err
		}
	}
	if err := announced(resp, p.size, b); err != nil {
		return err
	}
	total := b.Size
	if total <= 0 && resp.ContentLength > 0 {
		total = p.size + resp.ContentLength
	}
	err = p.fill(&watched{resp.Body, ctx, p.size, func(done int64) { t.progress(done, total) }}, b)
	if err != nil {
		return interrupted(err)
	}
	if p.size < b.Size && isPage(resp) {
		return errors.Join(otherSize(resp, p.size, b), p.restart())
	}
	return nil
}

// announced refuses an answer with a wrong announced size: another attempt would get
// the same file.
func announced(resp *http.Response, at int64, b Blob) error {
	size := at + resp.ContentLength
	switch {
	case resp.ContentLength < 0 || b.Size <= 0 || size == b.Size:
		return nil
	case size > b.Size:
		return tooLong(b.Size)
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
	return anotherFile("the server sent %s of %d bytes instead of the expected %d", what, size, b.Size)
}

// request requests a file, from an offset on. A server may ignore the offset and answer
// with the status OK. Any answer without the file is an error, [fs.ErrNotExist] if the
// server does not have it.
func request(ctx context.Context, client *http.Client, method string, source Place, offset int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, string(source), http.NoBody)
	if err != nil {
		return nil, web.WithoutAddress(err)
	}
	if offset > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, web.WithoutAddress(err)
	}
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusPartialContent && begins(resp, offset) {
		return resp, nil
	}
	_ = resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusRequestedRangeNotSatisfiable, http.StatusPartialContent:
		if offset > 0 {
			return nil, retry.Temporary(errRange, 0)
		}
	case http.StatusNotFound, http.StatusGone:
		return nil, fmt.Errorf("%w: %w", retry.Status(resp), fs.ErrNotExist)
	}
	return nil, retry.Status(resp)
}

func begins(resp *http.Response, offset int64) bool {
	var first int64
	_, err := fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-", &first)
	return err == nil && first == offset
}

// interrupted marks the error of a body as temporary, because the rest can be requested.
// Errors of the local disk and oversized bodies are permanent.
func interrupted(err error) error {
	_, ours := errors.AsType[*diskError](err)
	if _, other := errors.AsType[*otherBytes](err); ours || other {
		return err
	}
	return retry.Temporary(err, 0)
}

// watched is a reader that ends with its context and reports each read.
type watched struct {
	io.Reader
	ctx  context.Context
	done int64 // bytes so far
	seen func(done int64)
}

// Read implements [io.Reader].
func (w *watched) Read(data []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	n, err := w.Reader.Read(data)
	if n > 0 {
		w.done += int64(n)
		w.seen(w.done)
	}
	return n, err
}

// Size asks a source for the size of its file without fetching it.
func Size(ctx context.Context, source Place) (int64, error) {
	n, err := ask(ctx, http.MethodHead, source, func(path string) (int64, error) {
		info, err := os.Stat(path)
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	}, func(resp *http.Response) (int64, error) {
		if resp.ContentLength <= 0 {
			return 0, errors.New("the server sent no size")
		}
		return resp.ContentLength, nil
	})
	if err != nil {
		return 0, fmt.Errorf("requesting the size of %s: %w", source, err)
	}
	return n, nil
}

// Small reads a file of unknown digest, such as an index of digests. It refuses a file
// of more than limit bytes. The error for a missing file is [fs.ErrNotExist].
func Small(ctx context.Context, source Place, limit int64) ([]byte, error) {
	data, err := ask(ctx, http.MethodGet, source, func(path string) ([]byte, error) {
		return regular.ReadFollowed(path, limit)
	}, func(resp *http.Response) ([]byte, error) {
		return regular.All(resp.Body, limit)
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", source, err)
	}
	return data, nil
}

// errSlow bounds the whole answer, because a hostile server may send a byte at a time.
var errSlow = retry.Temporary(errors.New("the answer took longer than a minute"), 0)

// ask passes the path of a source to local, or the answer of its server to read. It
// repeats requests.
func ask[T any](ctx context.Context, method string, source Place, local func(string) (T, error), read func(*http.Response) (T, error)) (none T, err error) {
	path, here, err := source.local()
	switch {
	case err != nil:
		return none, err
	case here:
		return local(path)
	}
	return retry.Do(ctx, retry.Default, func(ctx context.Context) (none T, err error) {
		ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errSlow)
		defer cancel()
		resp, err := request(ctx, client, method, source, 0)
		if err != nil {
			return none, err
		}
		defer resp.Body.Close()
		return read(resp)
	})
}
