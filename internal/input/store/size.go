package store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"builder/internal/base/retry"
	"builder/internal/base/web"
)

// Size asks a source for the size of its file without fetching it.
func Size(ctx context.Context, source Place) (int64, error) {
	n, err := size(ctx, source)
	if err != nil {
		return 0, fmt.Errorf("requesting the size of %s: %w", source, err)
	}
	return n, nil
}

func size(ctx context.Context, source Place) (int64, error) {
	path, local, err := source.local()
	switch {
	case err != nil:
		return 0, err
	case local:
		info, err := os.Stat(path)
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	}
	return ask(ctx, http.MethodHead, source, func(resp *http.Response) (int64, error) {
		if resp.StatusCode != http.StatusOK {
			return 0, retry.Status(resp)
		}
		if resp.ContentLength <= 0 {
			return 0, errors.New("the server sent no size")
		}
		return resp.ContentLength, nil
	})
}

// ask sends a request, with retries, and passes the answer to read.
func ask[T any](ctx context.Context, method string, source Place, read func(*http.Response) (T, error)) (T, error) {
	return retry.Do(ctx, retry.Default, func(ctx context.Context) (none T, err error) {
		req, err := http.NewRequestWithContext(ctx, method, string(source), http.NoBody)
		if err != nil {
			return none, web.WithoutAddress(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			return none, web.WithoutAddress(err)
		}
		defer resp.Body.Close()
		return read(resp)
	})
}
