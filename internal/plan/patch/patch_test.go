package patch_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"builder/internal/base/diag"
	"builder/internal/plan/patch"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// tree is a source in memory. image lists the paths present in the image.
type tree struct {
	files  map[string]string
	links  map[string]string
	image  []string
	writes int
}

func (t *tree) ReadFile(_ context.Context, name string) ([]byte, error) {
	if text, ok := t.files[name]; ok {
		return []byte(text), nil
	}
	return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
}

func (t *tree) WriteFile(_ context.Context, name string, data []byte) error {
	t.writes++
	t.files[name] = string(data)
	return nil
}

func (t *tree) Symlink(_ context.Context, target, link string) error {
	if !slices.Contains(t.image, target) {
		return fmt.Errorf("the image has no %s", target)
	}
	t.links[link] = target
	return nil
}

func source() *tree {
	return &tree{
		files: map[string]string{
			"a.h":  "#include <rccl.h>\nint a;\n",
			"b.mk": "CXXFLAGS += -O3\n",
			"c.cc": "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
			"d.mk": "no end",
			"e.mk": "",
		},
		links: map[string]string{}, image: []string{"/usr/lib/hip/FindHIP.cmake"},
	}
}

func with(edits ...patch.Edit) patch.Patch { return patch.Patch{Name: "p", Edits: edits} }

func replace(search, with string, count int) patch.Edit {
	return patch.Edit{Kind: patch.Replace, File: "a.h", Search: search, Replace: with, Count: count}
}

const (
	headOfC = "diff --git a/c.cc b/c.cc\n--- a/c.cc\n+++ b/c.cc\n"
	hunkOf5 = "@@ -4,3 +4,3 @@\n 4\n-5\n+five\n 6\n"
	diffOf5 = headOfC + hunkOf5
)

func TestApply(t *testing.T) {
	src := source()
	got, err := patch.Apply(t.Context(), src, with(
		replace("<rccl.h>", "<rccl/rccl.h>", 1),
		patch.Edit{Kind: patch.Append, File: "b.mk", Text: "LDFLAGS += -libverbs\n"},
		patch.Edit{Kind: patch.Symlink, Link: "cmake/FindHIP.cmake", Target: "{{findhip}}/FindHIP.cmake"},
		patch.Edit{Kind: patch.Diff, Diff: "x.patch", Content: diffOf5},
		patch.Edit{Kind: patch.Append, File: "e.mk", Text: "X = 1\n"},
	), map[string]string{"findhip": "/usr/lib/hip"})
	must.Hold(t, err == nil && got.State == patch.Applied && len(got.Edits) == 5, "got %+v, %v", got, err)
	if src.files["a.h"] != "#include <rccl/rccl.h>\nint a;\n" || !strings.HasSuffix(src.files["b.mk"], "-libverbs\n") ||
		src.links["cmake/FindHIP.cmake"] != "/usr/lib/hip/FindHIP.cmake" || !strings.Contains(src.files["c.cc"], "4\nfive\n6") || src.files["e.mk"] != "X = 1\n" {
		t.Errorf("got %+v", src)
	}
	check.That(t, got.Edits[0].Detail == "matches once at line 1", "got %+v", got.Edits[0])
}

func TestWhatDoesNotActIsAnError(t *testing.T) {
	hunk := func(text string) patch.Edit {
		return patch.Edit{Kind: patch.Diff, Diff: "x", Content: headOfC + text}
	}
	long := strings.Repeat("x", 80)
	for name, c := range map[string]struct {
		edit       patch.Edit
		says, hint string
	}{
		"absent":                 {replace("banana", "x", 1), "matches 0 times, not 1", ""},
		"absent, removed":        {replace("banana", "", 1), "matches 0 times, not 1", ""},
		"nothing":                {replace("", "x", 1), "matches 0 times, not 1", ""},
		"absent, long":           {replace(long, "y", 1), "not 1: \"" + long + "\"", ""},
		"absent, longer":         {replace(long+"x", "y", 1), "not 1: \"" + long + "…\"", ""},
		"already there":          {replace("<nccl.h>", "<rccl.h>", 1), "matches 0 times", "the file already has the replacement"},
		"misspelt":               {replace("#include <rcl.h>", "<r", 1), `, the closest is line 1: "#include <rccl.h>"`, "the file already has the replacement"},
		"twice":                  {replace("c", "x", 1), "matches 3 times at lines 1 1 1, not 1", ""},
		"twice, longer text":     {replace("c", "int", 1), "matches 3 times", ""},
		"too few":                {replace("int", "x", 2), "matches once at line 2, not 2", ""},
		"no file":                {patch.Edit{Kind: patch.Replace, File: "gone.h", Search: "a", Replace: "b", Count: 1}, "gone.h: not in the source", ""},
		"append twice":           {patch.Edit{Kind: patch.Append, File: "b.mk", Text: "CXXFLAGS += -O3\n"}, "the file already ends with the text", "upstream"},
		"append to words":        {patch.Edit{Kind: patch.Append, File: "d.mk", Text: "x\n"}, "the last line has no newline", ""},
		"link there":             {patch.Edit{Kind: patch.Symlink, Link: "a.h", Target: "/usr/lib/hip/FindHIP.cmake"}, "already in the source", "upstream"},
		"link to a missing file": {patch.Edit{Kind: patch.Symlink, Link: "x", Target: "/opt/rocm/x"}, "the image has no /opt/rocm/x", "facts"},
		"unknown fact":           {patch.Edit{Kind: patch.Symlink, Link: "x", Target: "{{banana}}/x"}, `unknown name "banana"`, "known"},
		"hunk without a match":   {hunk("@@ -4,3 +4,3 @@\n 4\n-x\n+five\n 6\n"), "c.cc: hunk 1 (line 4): the context is not in the file", ""},
		"line without a match":   {hunk("@@ -4,1 +3,0 @@\n-x\n"), "the context is not in the file", ""},
		"empty hunk":             {hunk("@@ -4,0 +5,1 @@\n+x\n"), "no context to find it by", ""},
		"hunk applied":           {hunk("@@ -4,3 +4,3 @@\n 4\n-five\n+5\n 6\n"), "already applied, at line 4", "upstream"},
		"equal hunk":             {hunk("@@ -4,3 +4,3 @@\n-4\n+4\n 5\n 6\n"), "hunk 1 (line 4) of the diff of c.cc changes nothing", ""},
		"hunk too early":         {hunk("@@ -4,1 +4,1 @@\n-4\n+four\n@@ -5,1 +5,1 @@\n-3\n+three\n"), "hunk 2 (line 5): the context is not in the file", ""},
	} {
		src := source()
		before := fmt.Sprint(src.files)
		_, err := patch.Apply(t.Context(), src, with(c.edit), nil)
		var e *diag.Error
		if all := diag.All(err); len(all) == 1 {
			e = all[0]
		}
		if e == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(e.Hint, c.hint) || (e.Hint == "") != (c.hint == "") {
			t.Errorf("%s: got %v, hint %+v", name, err, e)
			continue
		}
		check.That(t, fmt.Sprint(src.files) == before && len(src.links) == 0, "%s: the source was touched", name)
	}
}

// A patch acts only if each file that it edits differs at the end.
func TestEditsThatCancelAreAnError(t *testing.T) {
	back := patch.Edit{Kind: patch.Diff, Diff: "x", Content: headOfC + strings.NewReplacer("-5\n+five", "-five\n+5").Replace(hunkOf5)}
	for name, edits := range map[string][]patch.Edit{
		"replace": {replace("rccl.h", "x.h", 1), replace("x.h", "rccl.h", 1)},
		"diff":    {{Kind: patch.Diff, Diff: "x", Content: diffOf5}, back},
		"beside":  {{Kind: patch.Append, File: "e.mk", Text: "X = 1\n"}, replace("rccl.h", "x.h", 1), replace("x.h", "rccl.h", 1)},
	} {
		src := source()
		_, err := patch.Apply(t.Context(), src, with(edits...), nil)
		check.That(t, err != nil && strings.Contains(err.Error(), "the edits of the patch cancel each other") && src.writes <= 0,
			"%s: got %v, %d writes", name, err, src.writes)
	}
}

// Problems in several files of a diff are reported as separate errors.
func TestEveryFileOfADiff(t *testing.T) {
	bad := hunkOf5 + "@@ -7,1 +7,1 @@\n-x\n+y\n"
	diff := headOfC + bad + strings.ReplaceAll(headOfC, "c.cc", "a.h") + bad + strings.ReplaceAll(headOfC, "c.cc", "gone") + bad
	_, err := patch.Apply(t.Context(), source(), with(patch.Edit{Kind: patch.Diff, Content: diff}), nil)
	want := []string{"c.cc: hunk 2 (line 7): the context", "a.h: hunk 1 (line 4): the context", "gone: not in the source"}
	all := diag.All(err)
	must.Hold(t, len(all) == len(want), "got %v", err)
	for i, err := range all {
		check.That(t, err.Code == diag.Patch && strings.HasPrefix(err.Error(), want[i]), "got %v, want %q", err, want[i])
	}
}

func TestAllOrNothing(t *testing.T) {
	src := source()
	_, err := patch.Apply(t.Context(), src, with(replace("<rccl.h>", "<x>", 1), replace("banana", "x", 1), replace("kiwi", "x", 1)), nil)
	check.That(t, err != nil && src.writes == 0 && len(diag.Split(err)) == 2, "%d writes, %v", src.writes, err)
}

func TestOffset(t *testing.T) {
	src := source()
	src.files["c.cc"] = "new\nnew\n" + src.files["c.cc"]
	got, err := patch.Apply(t.Context(), src, with(patch.Edit{Kind: patch.Diff, Content: diffOf5}), nil)
	check.That(t, err == nil && got.State == patch.AppliedAtOffset && strings.Contains(got.Edits[0].Detail, "offsets 2 lines"),
		"got %+v, %v", got, err)
	src = source()
	src.files["c.cc"] = "x\n4\n5\n6\n" + src.files["c.cc"]
	_, err = patch.Apply(t.Context(), src, with(patch.Edit{Kind: patch.Diff, Content: diffOf5}), nil)
	check.Fails(t, err, "the context occurs 2 times", "an ambiguous place")
}

// An edit without effect names its line in the file of the patch.
func TestAnEditNamesItsLine(t *testing.T) {
	text := good + "  - {kind: replace, file: a.h, search: rccl.g, replace: b, count: 1}\n"
	ps, err := patch.Load(fstest.MapFS{"d/1.yaml": {Data: []byte(text)}}, "patches", "d")
	must.Succeed(t, err)
	ps[0].Edits[0].Search = "rccl.h"
	_, err = patch.Apply(t.Context(), source(), ps[0], nil)
	all := diag.All(err)
	check.That(t, len(all) == 1 && all[0].Code == diag.Patch && strings.HasPrefix(all[0].Error(), "patches/d/1.yaml:7:5: a.h: search text matches 0 times"),
		"%v", err)
}

const good = `name: p
reason: r
upstream: https://example.invalid/1
when: {rocm: ">=5.2"}
edits:
  - {kind: replace, file: a.h, search: a, replace: b, count: 1}
`

func TestLoadNamesEveryFault(t *testing.T) {
	must.Get(patch.Load(fstest.MapFS{"d/1.yaml": {Data: []byte(good)}}, "patches", "d"))(t)
	head, _, _ := strings.Cut(good, "  - {")
	edit := func(text string) string { return head + "  - {" + text + "}\n" }
	for name, c := range map[string]struct{ yaml, says string }{
		"no reason":     {strings.Replace(good, "reason: r", `reason: ""`, 1), "patches/d/1.yaml:2:9: reason is missing"},
		"no upstream":   {strings.Replace(good, "upstream: https://example.invalid/1\n", "", 1), "upstream is missing"},
		"no link":       {strings.Replace(good, "https://", "see ", 1), "upstream is not a link"},
		"no when":       {strings.Replace(good, `when: {rocm: ">=5.2"}`+"\n", "", 1), "when is missing"},
		"bad merged":    {strings.Replace(good, "edits:", "merged: \">=x\"\nedits:", 1), "patches/d/1.yaml:5:9"},
		"no edit":       {strings.TrimSuffix(head, "edits:\n") + "edits: []\n", "edits is empty: write at least one"},
		"bad when":      {strings.Replace(good, ">=5.2", ">=x", 1), "patches/d/1.yaml:4:14"},
		"kind":          {edit("kind: sed, file: a"), `edits.kind: "sed" is not`},
		"few":           {edit("kind: replace, file: a, search: x, replace: y, count: -1"), "count must be at least 1"},
		"no change":     {edit("kind: replace, file: a, search: x, replace: x, count: 1"), "search and replace are equal"},
		"escape":        {edit("kind: replace, file: ../a, search: x, replace: y, count: 1"), "is outside the source"},
		"absolute":      {edit("kind: append, file: /etc/passwd, text: x"), "is outside the source"},
		"relative link": {edit("kind: symlink, link: a, target: b"), "not an absolute path"},
		"outer diff":    {edit("kind: diff, diff: ../x.patch"), `"../x.patch" is outside the source`},
		"no diff file":  {edit("kind: diff, diff: x.patch"), "reading the diff"},
		"empty diff":    {edit("kind: diff, diff: empty.patch"), "the file of the diff has none"},
		"other bytes":   {edit("kind: diff, diff: bytes.patch"), "the diff is not UTF-8"},
		"prose":         {edit("kind: diff, diff: prose.patch"), "the file of the diff has none"},
		"idle hunk":     {edit("kind: diff, diff: idle.patch"), "no changes"},
		"equal hunk":    {edit("kind: diff, diff: equal.patch"), "hunk 1 (line 1) of the diff of x changes nothing"},
		"diff escapes":  {edit("kind: diff, diff: escape.patch"), "edits a file outside the source"},
		"not by git":    {edit("kind: diff, diff: plain.patch"), "must begin with"},
		"new file":      {edit("kind: diff, diff: new.patch"), "the diff of x must edit text in place"},
		"file removed":  {edit("kind: diff, diff: removed.patch"), "the diff of x must edit text in place"},
		"file renamed":  {edit("kind: diff, diff: renamed.patch"), "the diff of y must edit text in place"},
		"only renamed":  {edit("kind: diff, diff: only.patch"), "the diff of y has no hunk"},
		"file copied":   {edit("kind: diff, diff: copied.patch"), "the diff of y must edit text in place"},
		"binary":        {edit("kind: diff, diff: binary.patch"), "the diff of x must edit text in place"},
	} {
		fsys := fstest.MapFS{"d/1.yaml": {Data: []byte(c.yaml)}}
		for name, text := range map[string]string{
			"empty":   "",
			"bytes":   "-\xfe",
			"prose":   "please change it\n",
			"plain":   "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n",
			"idle":    "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n x\n",
			"equal":   "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-x\n+x\n y\n",
			"escape":  "diff --git a/../../etc/passwd b/../../etc/passwd\n--- a/../../etc/passwd\n+++ b/../../etc/passwd\n@@ -1,1 +1,1 @@\n-x\n+y\n",
			"new":     "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+y\n",
			"removed": "diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
			"renamed": "diff --git a/x b/y\nsimilarity index 50%\nrename from x\nrename to y\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-x\n+y\n",
			"only":    "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n",
			"copied":  "diff --git a/x b/y\nsimilarity index 50%\ncopy from x\ncopy to y\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-x\n+y\n",
			"binary":  "diff --git a/x b/x\nindex 1234567..89abcde 100644\nBinary files a/x and b/x differ\n",
		} {
			fsys["d/"+name+".patch"] = &fstest.MapFile{Data: []byte(text)}
		}
		_, err := patch.Load(fsys, "patches", "d")
		check.That(t, err != nil && strings.Contains(err.Error(), c.says) && diag.CodeOf(err) == diag.Usage && len(diag.All(err)) == 1,
			"%s: got %v", name, err)
	}
}

// Each kind requires all of its fields, except an empty replacement, and rejects all
// others.
func TestFieldsOfKinds(t *testing.T) {
	values := map[string]string{
		"link": "a", "target": "\"{{rocm}}/b\"", "file": "a", "search": "x", "replace": "y", "count": "1", "text": "x", "diff": "x.patch",
	}
	load := func(kind string, fields []string) (patch.Patch, error) {
		head, _, _ := strings.Cut(good, "  - {")
		var text strings.Builder
		text.WriteString(head + "  - {kind: append, file: first, text: x}\n  - {kind: " + kind)
		for _, name := range fields {
			text.WriteString(", " + name + ": " + values[name])
		}
		fsys := fstest.MapFS{"d/1.yaml": {Data: []byte(text.String() + "}\n")}, "d/x.patch": {Data: []byte(diffOf5 + strings.ReplaceAll(diffOf5, "c.cc", "d.cc"))}}
		all, err := patch.Load(fsys, "patches", "d")
		if err != nil {
			return patch.Patch{}, err
		}
		return all[0], nil
	}
	for kind, own := range map[string][]string{
		"symlink": {"link", "target"}, "replace": {"file", "search", "replace", "count"}, "append": {"file", "text"}, "diff": {"diff"},
	} {
		p, err := load(kind, own)
		check.That(t, err == nil && (p.Edits[1].Content != "") == (kind == "diff"), "%s: %+v, %v", kind, p, err)
		for name := range values {
			fields, says := slices.Concat(own, []string{name}), name+" is not a key of a "+kind
			if i := slices.Index(own, name); i >= 0 {
				fields, says = slices.Delete(slices.Clone(own), i, i+1), "a "+kind+" needs "+name
			}
			_, err := load(kind, fields)
			if name == "replace" && kind == "replace" {
				check.That(t, err == nil, "what is found cannot be removed: %v", err)
				continue
			}
			check.That(t, len(diag.All(err)) == 1 && strings.Contains(err.Error(), says), "want %q, got %v", says, err)
		}
	}
}

func TestTwoPatchesOfOneName(t *testing.T) {
	fsys := fstest.MapFS{"d/1.yaml": {Data: []byte(good)}, "d/2.yaml": {Data: []byte(strings.Replace(good, "name: p", "name: q", 1))}}
	if all, err := patch.Load(fsys, "patches", "d"); err != nil || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}
	fsys["d/3.yaml"] = fsys["d/1.yaml"]
	_, err := patch.Load(fsys, "patches", "d")
	check.That(t, err != nil && err.Error() == `patches/d/3.yaml: another patch of d has the name "p"`, "got %v", err)
}

func TestChoose(t *testing.T) {
	p := patch.Patch{Name: "p", When: map[string]string{"gcc": ">=13", "rocm": ">=5.2"}, Merged: ">0.28.1"}
	for name, c := range map[string]struct {
		facts   map[string]string
		applies bool
		because string
	}{
		"needed":  {map[string]string{"gcc": "14.2", "rocm": "5.7", "version": "0.28.1"}, true, "gcc 14.2 is >=13, rocm 5.7 is >=5.2"},
		"old gcc": {map[string]string{"gcc": "11.4", "rocm": "6.1", "version": "0.28.1"}, false, "gcc 11.4 is not >=13"},
		"merged":  {map[string]string{"gcc": "14.2", "rocm": "6.1", "version": "0.29"}, false, "merged upstream"},
	} {
		got, err := patch.Choose(p, c.facts)
		check.That(t, err == nil && got.Applies == c.applies && strings.Contains(got.Because, c.because),
			"%s: got %+v, %v", name, got, err)
	}
	bare := patch.Patch{Name: "p", Merged: "0.29"}
	if got, err := patch.Choose(bare, nil); err != nil || !got.Applies {
		t.Errorf("merged in a version, and none is stated: got %+v, %v", got, err)
	}
	_, err := patch.Choose(p, map[string]string{"rocm": "5.7", "version": "0.28.1"})
	check.Fails(t, err, `depends on "gcc"`, "a fact that nobody states")
}

func TestDigestIsOfTheMeaning(t *testing.T) {
	load := func(text string) patch.Patch {
		all := must.Get(patch.Load(fstest.MapFS{"d/1.yaml": {Data: []byte(text)}}, "patches", "d"))(t)
		return all[0]
	}
	check.That(t, load(good).Digest() == load("# a comment\n"+good).Digest(), "a comment changes the digest")
	check.That(t, load(good).Digest() != load(strings.Replace(good, "replace: b", "replace: c", 1)).Digest(),
		"another replacement does not change the digest")
}

// If git apply accepts a diff, Apply produces the same result.
func TestAgreesWithGitApply(t *testing.T) {
	git := must.Get(exec.LookPath("git"))(t)
	text := source().files["c.cc"]
	for name, c := range map[string]struct{ before, hunks string }{
		"as written": {text, hunkOf5},
		"offset":     {"a\nb\n" + text, hunkOf5},
		"no newline": {strings.TrimSuffix(text, "\n"), hunkOf5},
		"at the end": {"a\n" + text, "@@ -7,3 +7,3 @@\n 7\n 8\n-9\n+nine\n"},
		"two places": {text + text, "@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n@@ -13,3 +13,3 @@\n 4\n-5\n+five\n 6\n"},
	} {
		diff := headOfC + c.hunks
		dir := t.TempDir()
		must.Succeed(t, os.WriteFile(filepath.Join(dir, "c.cc"), []byte(c.before), 0o644))
		cmd := exec.Command(git, "apply", "-")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(diff)
		out, err := cmd.CombinedOutput()
		must.Hold(t, err == nil, "%s: %v: %s", name, err, out)
		want := must.Get(os.ReadFile(filepath.Join(dir, "c.cc")))(t)
		src := &tree{files: map[string]string{"c.cc": c.before}}
		if _, err := patch.Apply(t.Context(), src, with(patch.Edit{Kind: patch.Diff, Content: diff}), nil); err != nil || src.files["c.cc"] != string(want) {
			t.Errorf("%s: got %q, %v; git apply gives %q", name, src.files["c.cc"], err, want)
		}
	}
}

func TestFiles(t *testing.T) {
	for _, e := range []patch.Edit{{Kind: patch.Diff, Content: diffOf5}, {Kind: patch.Append, File: "c.cc"}, {Kind: patch.Symlink, Link: "c.cc"}} {
		check.Same(t, string(e.Kind), []string{"c.cc"}, e.Files())
	}
}

func FuzzDiff(f *testing.F) {
	f.Add(diffOf5, "1\n2\n3\n4\n5\n6\n")
	f.Add("diff --git a/c.cc b/c.cc\n--- a/c.cc\n+++ b/c.cc\n@@ -0,0 +1 @@\n+x\n", "")
	f.Fuzz(func(t *testing.T, diff, text string) {
		src := &tree{files: map[string]string{"c.cc": text}, links: map[string]string{}}
		_, err := patch.Apply(context.Background(), src, with(patch.Edit{Kind: patch.Diff, Content: diff}), nil)
		check.That(t, err == nil || src.writes <= 0, "it failed and wrote")
	})
}

// unreadable is a tree with one file that cannot be read.
type unreadable struct{ *tree }

func (t unreadable) ReadFile(ctx context.Context, name string) ([]byte, error) {
	if name == "x" {
		return nil, fs.ErrPermission
	}
	return t.tree.ReadFile(ctx, name)
}

// A link must not be reported as merged upstream because its place cannot be read.
func TestSymlinkInTheWayCannotBeRead(t *testing.T) {
	p := with(patch.Edit{Kind: patch.Symlink, Link: "x", Target: "/usr/lib/hip/FindHIP.cmake"})
	_, err := patch.Apply(t.Context(), unreadable{source()}, p, nil)
	check.That(t, errors.Is(err, fs.ErrPermission) && !strings.Contains(err.Error(), "upstream"), "got %v", err)
}
