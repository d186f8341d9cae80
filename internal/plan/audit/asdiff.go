package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"builder/internal/base/diag"
	"builder/internal/plan/patch"
	"builder/internal/plan/sourcetree"
	"builder/internal/plan/version"
)

// AsDiff returns a patch as a unified diff with its reason on top, in the form upstream
// accepts. It diffs the newest available source to which the patch applies. A patch
// with a symbolic link is refused, because the link points into an image.
func AsDiff(ctx context.Context, p patch.Patch, cells []Cell, open Open) (string, error) {
	if i := slices.IndexFunc(p.Edits, func(e patch.Edit) bool { return e.Kind == patch.Symlink }); i >= 0 {
		return "", diag.Errorf(diag.Usage, "patch %s makes the link %s into an image, so upstream cannot use it", p.Name, p.Edits[i].Link).
			WithHint("choose a patch that edits files")
	}
	newest := slices.Clone(cells)
	slices.SortStableFunc(newest, func(a, b Cell) int { return version.Order(b.Version, a.Version) })
	for _, c := range newest {
		choice, err := patch.Choose(p, c.Facts)
		if err != nil || !choice.Applies || c.Source == "" {
			continue
		}
		before, err := open(c.Source)
		if err != nil {
			return "", err
		}
		if before == nil {
			continue
		}
		after := before.Clone()
		if _, err := patch.Apply(ctx, after, p, c.Facts); err != nil {
			return "", err
		}
		return unified(ctx, p, c.Version, before, after)
	}
	return "", diag.Errorf(diag.Patch, "patch %s: the store has no source for it", p.Name).WithHint("fetch the sources with `builder patch audit --fetch`")
}

func unified(ctx context.Context, p patch.Patch, release string, before, after *sourcetree.Tree) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nSee %s. Made from release %s.\n\n", p.Reason, p.Upstream, release)
	for _, name := range slices.Sorted(maps.Keys(sourcetree.Files([]patch.Patch{p}))) {
		is, err := before.ReadFile(ctx, name)
		if err != nil {
			return "", err
		}
		becomes, err := after.ReadFile(ctx, name)
		if err != nil {
			return "", err
		}
		_, hunks, _ := strings.Cut(string(diff.Diff("a/"+name, is, "b/"+name, becomes)), "\n")
		fmt.Fprintf(&b, "diff --git a/%s b/%s\n%s", name, name, hunks)
	}
	return b.String(), nil
}
