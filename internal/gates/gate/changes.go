package gate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

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

func checkChanges(ctx context.Context, s Subject) verdict.Verdict {
	made, err := readArchive(s.Artifact, maxArchive)
	if err != nil {
		return verdict.Failed("%v", err)
	}
	if s.Source == nil {
		return verdict.Unmeasured("the source tree is not in the store").Because("build the cell here, or import its source: builder store import")
	}
	source, err := s.Source.patched(ctx)
	if err != nil {
		return verdict.Unmeasured("reading the source tree: %v", err)
	}
	seen := fmt.Sprintf("%d files, %d of them changed from %s", len(made.files), len(source.edits), s.Source.Name)
	if len(source.edits) > 0 {
		seen += ": " + strings.Join(source.edits, ", ")
	}
	return verdict.Judge(append(made.problems, source.differs(made.below())...), []string{seen})
}

// tree describes each file of a tree: its digest and whether it is a program, or its
// target as a link.
type tree map[string]string

// below returns the content of an archive, by names below its only directory.
func (c *contents) below() tree {
	t := tree{}
	add := func(name, is string) {
		_, name, _ = strings.Cut(name, "/")
		t[name] = is
	}
	for name, sum := range c.files {
		add(name, kindOf(sum, c.programs[name]))
	}
	for name, to := range c.links {
		add(name, "a link to "+to)
	}
	return t
}

func kindOf(sum string, program bool) string {
	if program {
		return "a program, sha256 " + sum
	}
	return "a file, sha256 " + sum
}

// patchedTree is the patched source tree with the changed lines.
type patchedTree struct {
	tree
	edited map[string]bool
	edits  []string // "file line 12", sorted
}

// patched applies the patches to the content of the archive.
func (s Upstream) patched(ctx context.Context) (patchedTree, error) {
	all, err := readNamed(s.Archive, s.Name, maxArchive)
	if err != nil {
		return patchedTree{}, err
	}
	names := sourcetree.Files(s.Patches)
	before, err := sourcetree.Read(s.Archive, func(name string) bool { return names[name] })
	if err != nil {
		return patchedTree{}, err
	}
	after := before.Clone()
	for _, p := range s.Patches {
		if _, err := patch.Apply(ctx, after, p, s.Facts); err != nil {
			return patchedTree{}, fmt.Errorf("patch %s: %w", p.Name, err)
		}
	}
	t := patchedTree{tree: all.below(), edited: names}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, err1 := before.ReadFile(ctx, name)
		is, err2 := after.ReadFile(ctx, name)
		if err1 != nil && !errors.Is(err1, fs.ErrNotExist) || err2 != nil {
			return patchedTree{}, errors.Join(err1, err2)
		}
		sum := sha256.Sum256(is)
		t.tree[name] = kindOf(hex.EncodeToString(sum[:]), all.programs[all.top+"/"+name])
		t.edits = append(t.edits, name+" "+changedLines(was, is))
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

// changedLines names the changed lines: each one if the number of lines is the same,
// otherwise the range from the first to the last.
func changedLines(was, is []byte) string {
	a, b := bytes.Split(was, []byte("\n")), bytes.Split(is, []byte("\n"))
	if len(a) == len(b) {
		var numbers []string
		for i := range a {
			if !bytes.Equal(a[i], b[i]) {
				numbers = append(numbers, fmt.Sprint(i+1))
			}
		}
		if len(numbers) == 1 {
			return "line " + numbers[0]
		}
		return "lines " + strings.Join(numbers, " ")
	}
	first, last := 0, len(b)
	for first < min(len(a), len(b)) && bytes.Equal(a[first], b[first]) {
		first++
	}
	for i := 1; last > first && i <= len(a)-first && bytes.Equal(a[len(a)-i], b[len(b)-i]); i++ {
		last--
	}
	if last == first {
		return fmt.Sprintf("after line %d", first)
	}
	return fmt.Sprintf("lines %d to %d", first+1, last)
}
