// Package patch defines edits of a source tree that prove their effect: a search must
// match exactly the stated number of times, the context of a diff must occur in exactly
// one place, a link must have an existing target. A patch with less than its promised
// effect is an error, and so is a patch already contained upstream.
//
// Conditions over axes and image facts alone determine the patches of a cell
// ([Select]). The effect of a patch depends only on the tree ([Apply]).
package patch

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"builder/internal/base/decode"
	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/plan/version"
)

// A Patch is one change and the condition under which it is needed.
type Patch struct {
	Name     string            `yaml:"name" json:"name"`
	Reason   string            `yaml:"reason" json:"reason" jsonschema:"description=why it is needed; plan shows it"`
	Upstream string            `yaml:"upstream" json:"upstream" jsonschema:"format=uri,description=pull request or issue upstream"`
	When     map[string]string `yaml:"when" json:"when" jsonschema:"description=axis or image fact to constraint; all must hold"`
	Merged   string            `yaml:"merged,omitempty" json:"merged,omitempty" jsonschema:"description=upstream versions that contain it already"`
	Edits    []Edit            `yaml:"edits" json:"edits" jsonschema:"minItems=1"`
}

// Kind is the kind of an edit.
type Kind string

// The kinds of edits.
const (
	Symlink Kind = "symlink" // a link in the source to a path in the image
	Replace Kind = "replace" // replace text a stated number of times
	Append  Kind = "append"  // add text at the end of a file
	Diff    Kind = "diff"    // apply a unified diff without fuzz
)

// An Edit is one change of one kind. Paths are relative to the source.
type Edit struct {
	Kind    Kind   `yaml:"kind" json:"kind" jsonschema:"enum=symlink,enum=replace,enum=append,enum=diff"`
	Link    string `yaml:"link,omitempty" json:"link,omitempty" jsonschema:"description=symlink: path in the source"`
	Target  string `yaml:"target,omitempty" json:"target,omitempty" jsonschema:"description=symlink: absolute path in the image; may name facts in double braces"`
	File    string `yaml:"file,omitempty" json:"file,omitempty" jsonschema:"description=replace and append: path in the source"`
	Search  string `yaml:"search,omitempty" json:"search,omitempty"`
	Replace string `yaml:"replace,omitempty" json:"replace,omitempty"`
	Count   int    `yaml:"count,omitempty" json:"count,omitempty" jsonschema:"minimum=1,description=replace: how often the search must match"`
	Text    string `yaml:"text,omitempty" json:"text,omitempty" jsonschema:"description=append: what is added"`
	Diff    string `yaml:"diff,omitempty" json:"diff,omitempty" jsonschema:"description=diff: file beside this one"`

	Content string   `yaml:"-" json:"content,omitempty" jsonschema:"-"` // of the file named by Diff
	At      diag.Pos `yaml:"-" json:"-" jsonschema:"-"`                 // where the edit is written, if it was read from a file
}

// Digest returns the sha256 of the patch's fields, including the content of diffs.
// Comments and line breaks in its YAML do not change it.
func (p Patch) Digest() string {
	data, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("patch: %q is not JSON: %v", p.Name, err)) // strings and integers only
	}
	return regular.Sum(data)
}

// Load reads the patches of a distribution in the order of their file names. Positions
// in error messages begin with dir.
func Load(fsys fs.FS, dir, distribution string) ([]Patch, error) {
	own, err := fs.Sub(fsys, distribution)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	return decode.Folder(own, path.Join(dir, distribution), func(name string, data []byte) (Patch, error) {
		p, err := parse(own, name, data)
		if err == nil && seen[p.Name] {
			err = diag.At(diag.Pos{File: name}, "another patch of %s has the name %q", distribution, p.Name)
		}
		seen[p.Name] = true
		return p, err
	})
}

// parse parses a patch and reads the diffs beside it in fsys.
func parse(fsys fs.FS, name string, data []byte) (Patch, error) {
	var p Patch
	f, err := decode.YAML(name, data, &p)
	if err != nil {
		return Patch{}, err
	}
	for i, e := range p.Edits {
		at := fmt.Sprintf("edits[%d]", i)
		p.Edits[i].At = f.At(at)
		if e.Kind == Diff && local(e.Diff) {
			content, err := fs.ReadFile(fsys, e.Diff)
			if err != nil {
				return Patch{}, diag.At(f.At(at+".diff"), "reading the diff: %w", err)
			}
			if !utf8.Valid(content) { // JSON, and with it the key, cannot hold it
				return Patch{}, diag.At(f.At(at+".diff"), "the diff is not UTF-8").WithHint("write the change of other bytes with an edit of kind replace, or in the build script")
			}
			p.Edits[i].Content = string(content)
		}
		for _, problem := range p.Edits[i].problems() {
			f.Add(at, "%s", problem)
		}
	}
	p.validate(f)
	return p, f.Err()
}

// validate adds the problems of a patch as written, without those of its edits.
func (p Patch) validate(f *decode.File) {
	if p.Upstream != "" && !strings.HasPrefix(p.Upstream, "https://") {
		f.Add("upstream", "upstream is not a link: %q", p.Upstream)
	}
	if p.When != nil && len(p.When) == 0 {
		f.Add("when", "when is missing: write the condition for the patch")
	}
	for _, name := range slices.Sorted(maps.Keys(p.When)) {
		if _, err := version.ParseConstraint(p.When[name]); err != nil {
			f.Add("when."+name, "%w", err)
		}
	}
	if _, err := version.ParseConstraint(p.Merged); p.Merged != "" && err != nil {
		f.Add("merged", "%w", err)
	}
}

// fieldsOf lists the fields of each kind. All others must be empty.
var fieldsOf = map[Kind][]string{
	Symlink: {"link", "target"},
	Replace: {"file", "search", "replace", "count"},
	Append:  {"file", "text"},
	Diff:    {"diff"},
}

func (e Edit) problems() []string {
	fields, ok := fieldsOf[e.Kind]
	if !ok {
		return nil // the tag of Kind refuses it
	}
	var p []string
	set := map[string]bool{
		"link": e.Link != "", "target": e.Target != "", "file": e.File != "", "search": e.Search != "",
		"replace": e.Replace != "", "count": e.Count != 0, "text": e.Text != "", "diff": e.Diff != "",
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		wanted := slices.Contains(fields, name)
		if set[name] && !wanted {
			p = append(p, fmt.Sprintf("%s is not a key of a %s", name, e.Kind))
		}
		if !set[name] && wanted && name != "replace" { // an empty replacement is valid
			p = append(p, fmt.Sprintf("a %s needs %s", e.Kind, name))
		}
	}
	for _, at := range []string{e.Link, e.File, e.Diff} {
		if at != "" && !local(at) {
			p = append(p, fmt.Sprintf("%q is outside the source", at))
		}
	}
	return append(p, e.contradictions()...)
}

func (e Edit) contradictions() []string {
	switch e.Kind {
	case Replace:
		if e.Count < 0 {
			return []string{"count must be at least 1"}
		}
		if e.Search == e.Replace && e.Search != "" {
			return []string{"search and replace are equal"}
		}
	case Symlink:
		if e.Target != "" && !strings.HasPrefix(e.Target, "/") && !strings.HasPrefix(e.Target, "{{") {
			return []string{"target is not an absolute path in the image"}
		}
	case Diff:
		if local(e.Diff) {
			return diffProblems(e.Content)
		}
	}
	return nil
}

func diffProblems(content string) []string {
	files, err := parseDiff(content)
	if err != nil {
		return []string{err.Error()}
	}
	var p []string
	for _, f := range files {
		if name := diffPath(f); !local(name) {
			p = append(p, fmt.Sprintf("the diff edits a file outside the source: %q", name))
		}
		if f.IsBinary || f.IsNew || f.IsDelete || f.IsRename || f.IsCopy {
			p = append(p, fmt.Sprintf("the diff of %s must edit text in place", diffPath(f)))
		}
	}
	return p
}

// parseDiff parses a unified diff in git's format. A text without a hunk, or a file
// without a change, is an error.
func parseDiff(content string) ([]*gitdiff.File, error) {
	files, _, err := gitdiff.Parse(strings.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("the diff is not valid: %w", err)
	}
	for _, f := range files {
		if len(f.TextFragments) == 0 && !f.IsBinary {
			return nil, fmt.Errorf("the diff of %s has no hunk", diffPath(f))
		}
		for i, h := range f.TextFragments {
			if before, after := sides(h); slices.EqualFunc(before, after, bytes.Equal) {
				return nil, fmt.Errorf("hunk %d (line %d) of the diff of %s changes nothing: its old and new lines are equal", i+1, h.OldPosition, diffPath(f))
			}
		}
	}
	if len(files) == 0 {
		return nil, errors.New("the file of the diff has none: git writes nothing for a file that it does not track, such as one of a .gitignore")
	}
	// Without the line "diff --git", the prefixes a/ and b/ are not reliable.
	if strings.Count("\n"+content, "\ndiff --git ") != len(files) {
		return nil, errors.New("the diff of each file must begin with \"diff --git\": make it with git diff")
	}
	return files, nil
}

func diffPath(f *gitdiff.File) string { return cmp.Or(f.NewName, f.OldName) }

// local reports whether a path stays inside the source.
func local(name string) bool {
	return fs.ValidPath(name) && name != "." && !strings.ContainsAny(name, "\\\x00\n")
}

// A Choice is the decision whether a patch applies to a cell, and its reason.
type Choice struct {
	Patch   Patch
	Applies bool
	State   State // [NotMeasured] if it applies, because no tree was read
	Because string
}

// Choose decides whether a patch applies. facts are the axes and image facts of the cell.
// A condition on an unstated fact is an error. Otherwise the patch would be left out
// silently.
func Choose(p Patch, facts map[string]string) (Choice, error) {
	if p.Merged != "" && version.Allows(p.Merged, facts["version"]) {
		return Choice{p, false, AlreadyUpstream, fmt.Sprintf("merged upstream: version %s is %s", facts["version"], p.Merged)}, nil
	}
	var reasons []string
	for _, name := range slices.Sorted(maps.Keys(p.When)) {
		value, stated := facts[name]
		if !stated {
			err := diag.Errorf(diag.Usage, "patch %s depends on %q, which is not an axis or a fact of the image", p.Name, name).
				WithHint("%s", diag.DidYouMean(name, slices.Sorted(maps.Keys(facts))))
			if len(p.Edits) > 0 {
				err.Pos.File = p.Edits[0].At.File
			}
			return Choice{}, err
		}
		if !version.Allows(p.When[name], value) {
			return Choice{p, false, NotNeeded, fmt.Sprintf("%s %s is not %s", name, value, p.When[name])}, nil
		}
		reasons = append(reasons, fmt.Sprintf("%s %s is %s", name, value, p.When[name]))
	}
	return Choice{p, true, NotMeasured, strings.Join(reasons, ", ")}, nil
}
