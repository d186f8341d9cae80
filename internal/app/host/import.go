package host

import (
	"context"
	"errors"
	"io"

	"builder/internal/build/carry"
	"builder/internal/input/store"
)

// Imported counts the imported files.
type Imported struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
	Known int   `json:"known"` // files already in the store
}

// Import reads the files exported by another machine into the store. On an error it still
// returns everything it imported, and joins all errors.
func Import(ctx context.Context, s Setup, paths []string) (done Imported, err error) {
	w, err := s.Open(ctx)
	if err != nil {
		return done, err
	}
	defer w.Close()
	take := func(b store.Blob, r io.Reader) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		added, err := w.Store.Receive(b, r)
		switch {
		case err != nil:
			return err
		case added:
			done.Files++
			done.Bytes += b.Size
		default:
			done.Known++
		}
		return nil
	}
	var errs []error
	for _, path := range paths {
		errs = append(errs, carry.Read(path, take))
	}
	return done, errors.Join(errs...)
}
