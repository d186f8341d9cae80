package pipelines

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"dagger.io/dagger"

	"builder/internal/base/diag"
	"builder/internal/plan/patch"
)

// containerTree is the source in a container as a [patch.Tree]. Each write creates a
// new container.
type containerTree struct{ ctr *dagger.Container }

var _ patch.Tree = (*containerTree)(nil)

func (t *containerTree) ReadFile(ctx context.Context, name string) ([]byte, error) {
	at := path.Join(sourceDir, name)
	kind, err := t.ctr.Stat(at).FileType(ctx) // opening a pipe would block
	if err != nil && strings.Contains(err.Error(), "no such file") {
		return nil, fmt.Errorf("%s: %w", name, os.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	if kind != dagger.FileTypeRegular {
		return nil, diag.Errorf(diag.Build, "%s is no regular file in the source", name)
	}
	text, err := t.ctr.File(at).Contents(ctx)
	return []byte(text), err
}

// WriteFile replaces a file and keeps its mode.
func (t *containerTree) WriteFile(ctx context.Context, name string, data []byte) error {
	at := path.Join(sourceDir, name)
	mode, err := t.ctr.File(at).Stat().Permissions(ctx)
	if err != nil {
		return fmt.Errorf("asking for its mode: %w", err)
	}
	opts := dagger.ContainerWithNewFileOpts{Owner: guestOwner}
	if mode != 0o644 { // the engine's default; naming it would change the cache key
		opts.Permissions = mode
	}
	t.ctr = t.ctr.WithNewFile(at, string(data), opts)
	return nil
}

func (t *containerTree) Symlink(ctx context.Context, target, link string) error {
	dir, base := path.Split(target)
	entries, err := t.ctr.Directory(dir).Entries(ctx)
	if err != nil || !slices.ContainsFunc(entries, func(e string) bool { return strings.TrimSuffix(e, "/") == base }) {
		return fmt.Errorf("the image has no %s", target)
	}
	t.ctr = t.ctr.WithSymlink(target, path.Join(sourceDir, link))
	return nil
}
