package patch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"builder/internal/base/diag"
	"builder/internal/base/subst"
)

// A Tree is the source tree to patch. Paths are slash-separated and relative to its
// root.
type Tree interface {
	// ReadFile returns an error matching fs.ErrNotExist if the file does not exist.
	ReadFile(ctx context.Context, path string) ([]byte, error)
	WriteFile(ctx context.Context, path string, data []byte) error
	// Symlink makes a link in the source. It fails if target, an absolute path in the
	// image, does not exist.
	Symlink(ctx context.Context, target, link string) error
}

// State is the result of a patch.
type State string

// The states of a patch. The first three follow from conditions, the others from a
// tree.
const (
	NotNeeded       State = "not needed"       // a condition does not hold
	AlreadyUpstream State = "already upstream" // the version contains the change
	NotMeasured     State = "not measured"     // selected, but no tree was available
	Applied         State = "applied"
	AppliedAtOffset State = "applied at offset"
	Failed          State = "failed"
)

// States lists every state: first those seen on a tree, then those of patches that were
// not applied.
func States() []State {
	return []State{Failed, Applied, AppliedAtOffset, NotMeasured, AlreadyUpstream, NotNeeded}
}

// Result is the effect of a patch on a tree.
type Result struct {
	Patch string
	State State
	Edits []EditResult
}

// EditResult is the effect of one edit. Detail describes it: "matches once at line 30".
type EditResult struct {
	Kind   Kind
	File   string
	Detail string
}

// Apply makes all edits of a patch or none: it computes every edit before it writes the
// first. It returns all errors together, with class [diag.Patch] and the position of
// the edit.
func Apply(ctx context.Context, t Tree, p Patch, facts map[string]string) (Result, error) {
	w := &work{tree: t, facts: facts, texts: map[string][]byte{}, was: map[string][]byte{}, result: Result{Patch: p.Name, State: Applied}}
	var errs []error
	for _, e := range p.Edits {
		var err error
		switch e.Kind {
		case Symlink:
			err = w.symlink(ctx, e)
		case Replace:
			err = w.replace(ctx, e)
		case Append:
			err = w.append(ctx, e)
		case Diff:
			err = w.diff(ctx, e)
		default:
			err = fmt.Errorf("unknown kind %q", e.Kind)
		}
		for _, err := range diag.Split(err) {
			errs = append(errs, classed(err, e.At))
		}
	}
	for _, file := range w.order {
		if bytes.Equal(w.texts[file], w.was[file]) && len(errs) == 0 {
			errs = append(errs, classed(fmt.Errorf("%s: the edits of the patch cancel each other, and the file stays as it is", file), p.Edits[len(p.Edits)-1].At))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Result{}, err
	}
	for _, l := range w.links {
		if err := t.Symlink(ctx, l[0], l[1]); err != nil {
			return w.result, diag.Errorf(diag.Patch, "%s: %w", l[1], err).WithHint("check the facts of the image in images/")
		}
	}
	for _, file := range w.order {
		if err := t.WriteFile(ctx, file, w.texts[file]); err != nil {
			return w.result, fmt.Errorf("writing %s: %w", file, err)
		}
	}
	return w.result, nil
}

// classed gives an error a position, and the class Patch unless it is already a
// [diag.Error].
func classed(err error, at diag.Pos) error {
	var e *diag.Error
	if !errors.As(err, &e) {
		return &diag.Error{Pos: at, Code: diag.Patch, Err: err}
	}
	return &diag.Error{Pos: at, Code: e.Code, Err: err, Hint: e.Hint}
}

// work collects the changes to write.
type work struct {
	tree   Tree
	facts  map[string]string
	texts  map[string][]byte // edited files
	was    map[string][]byte // the same files as the tree has them
	order  []string
	links  [][2]string // target, link
	result Result
}

func (w *work) done(kind Kind, file, format string, args ...any) {
	w.result.Edits = append(w.result.Edits, EditResult{kind, file, fmt.Sprintf(format, args...)})
}

// read returns a file with all edits so far.
func (w *work) read(ctx context.Context, file string) ([]byte, error) {
	if text, ok := w.texts[file]; ok {
		return text, nil
	}
	text, err := w.tree.ReadFile(ctx, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: not in the source", file)
	}
	w.was[file] = text
	return text, err
}

func (w *work) set(file string, text []byte) {
	if _, ok := w.texts[file]; !ok {
		w.order = append(w.order, file)
	}
	w.texts[file] = text
}

func (w *work) symlink(ctx context.Context, e Edit) error {
	target, err := subst.Expand(e.Target, w.facts)
	if err != nil {
		return err
	}
	switch _, err := w.tree.ReadFile(ctx, e.Link); {
	case err == nil:
		return upstream("%s: already in the source", e.Link)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", e.Link, err)
	}
	w.links = append(w.links, [2]string{target, e.Link})
	w.done(Symlink, e.Link, "-> %s", target)
	return nil
}

// upstreamError is the error of an edit already present in the tree.
type upstreamError struct{ error }

func upstream(format string, args ...any) *diag.Error {
	return &diag.Error{
		Code: diag.Patch, Err: upstreamError{fmt.Errorf(format, args...)},
		Hint: "upstream may contain the patch already: narrow when, or state merged",
	}
}

// IsUpstream reports whether a patch failed because the tree already contains it.
func IsUpstream(err error) bool {
	_, ok := errors.AsType[upstreamError](err)
	return ok
}

func (w *work) replace(ctx context.Context, e Edit) error {
	text, err := w.read(ctx, e.File)
	if err != nil {
		return err
	}
	lines := matches(text, e.Search)
	if len(lines) != e.Count {
		said := fmt.Sprintf("%s: search text matches %s, not %d: %q", e.File, times(lines), e.Count, short(e.Search))
		if len(lines) == 0 {
			said += closest(text, e.Search)
		}
		if len(lines) == 0 && len(matches(text, e.Replace)) >= e.Count {
			err := upstream("%s", said)
			err.Hint = "the file already has the replacement; " + err.Hint
			return err
		}
		return diag.Errorf(diag.Patch, "%s", said)
	}
	w.set(e.File, bytes.ReplaceAll(text, []byte(e.Search), []byte(e.Replace)))
	w.done(Replace, e.File, "matches %s", times(lines))
	return nil
}

// matches returns the line number of each occurrence of search. An empty search never
// matches.
func matches(text []byte, search string) []int {
	var lines []int
	for at := 0; search != ""; {
		i := bytes.Index(text[at:], []byte(search))
		if i < 0 {
			break
		}
		at += i
		lines = append(lines, 1+bytes.Count(text[:at], []byte("\n")))
		at += len(search)
	}
	return lines
}

func times(lines []int) string {
	switch len(lines) {
	case 0:
		return "0 times"
	case 1:
		return fmt.Sprintf("once at line %d", lines[0])
	}
	return fmt.Sprintf("%d times at lines %s", len(lines), strings.Trim(fmt.Sprint(lines), "[]"))
}

// maxShown is the length of a text in a message, in bytes.
const maxShown = 80

func short(s string) string {
	if len(s) > maxShown {
		return s[:maxShown] + "…"
	}
	return s
}

func (w *work) append(ctx context.Context, e Edit) error {
	text, err := w.read(ctx, e.File)
	if err != nil {
		return err
	}
	if bytes.HasSuffix(text, []byte(e.Text)) {
		return upstream("%s: the file already ends with the text", e.File)
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		return fmt.Errorf("%s: the last line has no newline, so appended text would extend it", e.File)
	}
	w.set(e.File, slices.Concat(text, []byte(e.Text)))
	w.done(Append, e.File, "%d bytes", len(e.Text))
	return nil
}

func (w *work) diff(ctx context.Context, e Edit) error {
	files, err := parseDiff(e.Content)
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range files {
		errs = append(errs, w.diffFile(ctx, f))
	}
	return errors.Join(errs...)
}

func (w *work) diffFile(ctx context.Context, f *gitdiff.File) error {
	name := diffPath(f)
	text, err := w.read(ctx, name)
	if err != nil {
		return err
	}
	out, offsets, err := applyHunks(text, f.TextFragments)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	w.set(name, out)
	detail := fmt.Sprintf("%d hunks", len(f.TextFragments))
	if slices.ContainsFunc(offsets, func(n int) bool { return n != 0 }) {
		w.result.State = AppliedAtOffset
		detail += fmt.Sprintf(", offsets %s lines", strings.Trim(fmt.Sprint(offsets), "[]"))
	}
	w.done(Diff, name, "%s", detail)
	return nil
}

// applyHunks applies hunks. The old side of each must match exactly, either at its
// stated line or at exactly one other place after the previous hunk. It returns the
// offset of each hunk from its stated line.
func applyHunks(text []byte, hunks []*gitdiff.TextFragment) ([]byte, []int, error) {
	lines := bytes.SplitAfter(text, []byte("\n"))
	if len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	var out [][]byte
	var offsets []int
	from := 0 // first line after the last hunk
	for i, h := range hunks {
		before, after := sides(h)
		said := max(int(h.OldPosition)-1, 0)
		at, err := locate(lines, before, after, from, said)
		if err != nil {
			return nil, nil, fmt.Errorf("hunk %d (line %d): %w", i+1, h.OldPosition, err)
		}
		out = append(append(out, lines[from:at]...), after...)
		offsets = append(offsets, at-said)
		from = at + len(before)
	}
	return bytes.Join(append(out, lines[from:]...), nil), offsets, nil
}

// Files returns the files that the edit changes or makes.
func (e Edit) Files() []string {
	switch e.Kind {
	case Symlink:
		return []string{e.Link}
	case Diff:
		files, _ := parseDiff(e.Content) // validate refuses an invalid one
		var names []string
		for _, f := range files {
			names = append(names, diffPath(f))
		}
		return names
	}
	return []string{e.File}
}

// sides returns the old and the new lines of a hunk.
func sides(h *gitdiff.TextFragment) (before, after [][]byte) {
	for _, l := range h.Lines {
		if l.Old() {
			before = append(before, []byte(l.Line))
		}
		if l.New() {
			after = append(after, []byte(l.Line))
		}
	}
	return before, after
}

// locate returns the index of the old side of a hunk, at or after from.
func locate(lines, before, after [][]byte, from, said int) (int, error) {
	if len(before) == 0 {
		return 0, errors.New("no context to find it by")
	}
	found := places(lines, before, from)
	if slices.Contains(found, said) {
		return said, nil
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		err := diag.Errorf(diag.Patch, "the context is not in the file%s", closest(bytes.Join(lines[from:], nil), string(bytes.Join(before, nil))))
		for _, at := range places(lines, after, from) {
			err = upstream("already applied, at line %d", at+1)
		}
		return 0, err
	}
	return 0, fmt.Errorf("the context occurs %d times: add lines to it", len(found))
}

// places returns each index at or after from at which want occurs in lines. An empty
// want never occurs.
func places(lines, want [][]byte, from int) []int {
	var found []int
	for i := from; len(want) > 0 && i+len(want) <= len(lines); i++ {
		if slices.EqualFunc(lines[i:i+len(want)], want, bytes.Equal) {
			found = append(found, i)
		}
	}
	return found
}
