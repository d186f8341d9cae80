package store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"builder/internal/base/regular"
	"builder/internal/base/retry"
)

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
