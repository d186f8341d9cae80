package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"builder/internal/base/regular"
	"builder/internal/base/retry"
)

// Small reads a file of unknown digest, such as an index of digests. It refuses a file
// of more than limit bytes. The error for a missing file is [fs.ErrNotExist].
func Small(ctx context.Context, source Place, limit int64) ([]byte, error) {
	data, err := small(ctx, source, limit)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", source, err)
	}
	return data, nil
}

func small(ctx context.Context, source Place, limit int64) ([]byte, error) {
	path, local, err := source.local()
	if err != nil {
		return nil, err
	}
	if local {
		f, err := regular.Follow(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return regular.All(f, limit)
	}
	return ask(ctx, http.MethodGet, source, func(resp *http.Response) ([]byte, error) {
		switch resp.StatusCode {
		case http.StatusOK:
			return regular.All(resp.Body, limit)
		case http.StatusNotFound, http.StatusGone:
			return nil, errors.Join(fs.ErrNotExist, retry.Status(resp))
		}
		return nil, retry.Status(resp)
	})
}
