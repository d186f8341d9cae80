package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/base/retry"
)

// Fetch returns the path of b. If the store does not have b, Fetch downloads it from
// the first working source. Fetch calls progress, if not nil, with the downloaded and
// the expected bytes (total is 0 or less if unknown). done decreases if a transfer
// starts over.
//
// The error of a failed fetch lists the error of each source. A cancelled fetch keeps
// the downloaded bytes, and the next fetch continues.
func (s *Store) Fetch(ctx context.Context, b Blob, from []Place, progress func(done, total int64)) (string, error) {
	if err := b.problem(); err != nil {
		return "", err
	}
	if path, err := s.Use(b); err == nil {
		return path, nil
	}
	unlock, err := Lock(ctx, filepath.Join(s.dir, locks, b.SHA256), nil)
	if err != nil {
		if ctx.Err() != nil {
			return "", fmt.Errorf("fetching %s: %w", b.Name, err)
		}
		return "", unavailable(b, []error{&diskError{explain(s.dir, err)}})
	}
	defer unlock()
	if path, err := s.Use(b); err == nil { // another process was faster
		return path, nil
	}
	if progress == nil {
		progress = func(int64, int64) {}
	}
	t := transfer{s, b, progress}
	var errs []error
	for _, source := range from {
		err := t.get(ctx, source)
		switch {
		case err == nil:
			return slotOf(s.dir, b.SHA256).blob, nil
		case ctx.Err() != nil:
			return "", fmt.Errorf("fetching %s: %w", b.Name, context.Cause(ctx))
		}
		errs = append(errs, &refusal{source, explain(s.dir, err)})
		if _, ours := errors.AsType[*diskError](err); ours {
			break
		}
	}
	return "", unavailable(b, errs)
}

// A transfer brings a blob into a store.
type transfer struct {
	to       *Store
	blob     Blob
	progress func(done, total int64)
}

// get fetches the blob from one source. It copies a file of this host instead of linking
// it, because its owner may change it later.
func (t transfer) get(ctx context.Context, source Place) error {
	path, local, err := source.local()
	if err != nil {
		return err
	}
	if !local {
		_, err = retry.Do(ctx, t.to.policy, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, t.attempt(ctx, source)
		})
		return err
	}
	f, err := regular.Follow(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = take(t.to.dir, t.blob, &watched{f, ctx, 0, func(done int64) { t.progress(done, t.blob.Size) }})
	return err
}

// attempt continues the partial download of the blob with one request.
func (t transfer) attempt(ctx context.Context, source Place) error {
	b := t.blob
	p, err := openPartial(filepath.Join(t.to.dir, partials, b.SHA256))
	if err != nil {
		return &diskError{err}
	}
	defer p.close()
	if b.Size > 0 && p.size > b.Size {
		if err := p.restart(); err != nil {
			return err
		}
	}
	if b.Size <= 0 || p.size < b.Size {
		if err := t.download(ctx, p, source); err != nil {
			// Keeping the bytes would not help a full disk, and an empty partial is
			// useless.
			if _, ours := errors.AsType[*diskError](err); ours || p.size == 0 {
				p.remove()
			}
			return err
		}
	}
	return p.accept(b, slotOf(t.to.dir, b.SHA256))
}

// refusal is the error of one source.
type refusal struct {
	source Place
	err    error
}

func (r *refusal) Error() string { return r.source.String() + ": " + Redact(r.err.Error()) }
func (r *refusal) Unwrap() error { return r.err }

// explain adds the cause to errors of the disk of the store at dir.
func explain(dir string, err error) error {
	if errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("the store in %s is not writable: %w", dir, err)
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("the disk of %s is full: %w", dir, err)
	}
	return err
}

// unavailable joins the errors of all sources in one error.
func unavailable(b Blob, errs []error) error {
	hint := "name another place for the same bytes with --set source.NAME=PATH|URL, or a mirror with BUILDER_MIRROR_DEBIAN or BUILDER_MIRROR_MAVEN"
	if _, ours := errors.AsType[*diskError](errors.Join(errs...)); ours {
		hint = "free space with `builder store gc --keep SIZE`, or set BUILDER_HOME to a writable directory with free space"
	}
	if _, other := errors.AsType[*otherBytes](errors.Join(errs...)); other {
		hint += "; if the file there is the right one, correct its sha256 and size where you wrote them, or move the pin with `builder lock`"
	}
	what := fmt.Sprintf("fetching %s (sha256 %s)", b.Name, b.SHA256)
	switch len(errs) {
	case 0:
		return diag.Errorf(diag.Fetch, "%s: no place to fetch it from", what).WithHint("%s", hint)
	case 1:
		return diag.Errorf(diag.Fetch, "%s: %w", what, errs[0]).WithHint("%s", hint)
	}
	for i, err := range errs {
		errs[i] = fmt.Errorf("  %w", err)
	}
	return diag.Errorf(diag.Fetch, "%s: all %d places failed\n%w", what, len(errs), errors.Join(errs...)).WithHint("%s", hint)
}
