package gate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"builder/internal/base/regular"
	"builder/internal/gates/verdict"
	"builder/internal/plan/patch"
	"builder/internal/plan/recipe"
	"builder/internal/plan/sourcetree"
)

// An Upstream is the source of an archive: the original tree and the patches.
type Upstream struct {
	Archive string            // path of the original tree's archive, pinned by the lock
	Name    string            // its name; the suffix gives the compression
	Patches []patch.Patch     // in the order of application
	Facts   map[string]string // values for the patches
}

var changes = Gate{
	Name:   "changes",
	Asks:   "the archive holds the source tree, changed only by the patches",
	Remedy: "the recipe's script changed, dropped or added files: make each change with a patch, and give its reason there",
	Wants:  func(e recipe.Expect) bool { return e.Tree != "" },
	check:  checkChanges,
}

// sourceless is the verdict without a source tree.
var sourceless = verdict.Unmeasured("the source tree is not in the store").Because("build the cell here, or import its source: builder store import")

func checkChanges(ctx context.Context, s Subject) verdict.Verdict {
	made, err := readArchive(s.Artifact, s.Artifact, maxArchive)
	if err != nil {
		return verdict.Failed("%v", err)
	}
	if s.Source == nil {
		return sourceless
	}
	source, err := s.Source.patched(ctx)
	if err != nil {
		return verdict.Unmeasured("reading the source tree: %v", err)
	}
	edits := slices.Sorted(maps.Keys(source.edited))
	seen := fmt.Sprintf("%d files, %d of them changed from %s: %s", len(made.files), len(edits), s.Source.Name, cmp.Or(listed(edits, 40), "none"))
	return verdict.Judge(append(made.problems, source.differs(made.below())...), []string{seen})
}

// tree describes each file of a tree: its digest and whether it is a program, or its
// target as a link.
type tree map[string]string

// below returns the content of an archive, by names below its only directory.
func (c *contents) below() tree {
	t := tree{}
	for name, sum := range c.files {
		t[strings.TrimPrefix(name, c.top+"/")] = kindOf(sum, c.programs[name])
	}
	for name, to := range c.links {
		t[strings.TrimPrefix(name, c.top+"/")] = "a link to " + to
	}
	return t
}

func kindOf(sum string, program bool) string {
	if program {
		return "a program, sha256 " + sum
	}
	return "a file, sha256 " + sum
}

// patchedTree is the patched source tree.
type patchedTree struct {
	tree
	edited map[string]bool // files that the patches change
}

// tree reads files of the source and applies the patches.
func (s Upstream) tree(ctx context.Context, wanted func(name string) bool) (*sourcetree.Tree, error) {
	tree, err := sourcetree.Read(s.Archive, wanted)
	if err != nil {
		return nil, err
	}
	for _, p := range s.Patches {
		if _, err := patch.Apply(ctx, tree, p, s.Facts); err != nil {
			return nil, fmt.Errorf("patch %s: %w", p.Name, err)
		}
	}
	return tree, nil
}

// patched applies the patches to the content of the archive.
func (s Upstream) patched(ctx context.Context) (patchedTree, error) {
	all, err := readArchive(s.Archive, s.Name, maxArchive)
	if err != nil {
		return patchedTree{}, err
	}
	names := sourcetree.Files(s.Patches)
	source, err := s.tree(ctx, func(name string) bool { return names[name] })
	if err != nil {
		return patchedTree{}, err
	}
	t := patchedTree{tree: all.below(), edited: names}
	for name := range names {
		is, err := source.ReadFile(ctx, name)
		if err != nil {
			return patchedTree{}, err
		}
		t.tree[name] = kindOf(regular.Sum(is), all.programs[all.top+"/"+name])
	}
	return t, nil
}

// differs compares the tree of an archive with the patched source tree.
func (t patchedTree) differs(made tree) []string {
	var problems []string
	all := maps.Clone(t.tree)
	maps.Copy(all, made)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		want, known := t.tree[name]
		have, there := made[name]
		switch {
		case have == want:
		case !there:
			problems = append(problems, name+" of the source is missing")
		case !known:
			problems = append(problems, name+" is neither in the source nor made by a patch")
		case t.edited[name]:
			problems = append(problems, fmt.Sprintf("%s is %s; after the patches it must be %s", name, have, want))
		default:
			problems = append(problems, fmt.Sprintf("%s is %s; in the source it is %s, and no patch changes it", name, have, want))
		}
	}
	return problems
}
