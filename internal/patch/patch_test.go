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

	"builder/internal/diag"
	"builder/internal/patch"
)

// tree is a source in memory; files below image are what the image has.
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
		},
		links: map[string]string{}, image: []string{"/usr/lib/hip/FindHIP.cmake"},
	}
}

func with(edits ...patch.Edit) patch.Patch { return patch.Patch{Name: "p", Edits: edits} }

func replace(search, with string, count int) patch.Edit {
	return patch.Edit{Kind: patch.Replace, File: "a.h", Search: search, Replace: with, Count: count}
}

const diffOf5 = "diff --git a/c.cc b/c.cc\n--- a/c.cc\n+++ b/c.cc\n@@ -4,3 +4,3 @@\n 4\n-5\n+five\n 6\n"

func TestApply(t *testing.T) {
	src := source()
	got, err := patch.Apply(t.Context(), src, with(
		replace("<rccl.h>", "<rccl/rccl.h>", 1),
		patch.Edit{Kind: patch.Append, File: "b.mk", Text: "LDFLAGS += -libverbs\n"},
		patch.Edit{Kind: patch.Symlink, Link: "cmake/FindHIP.cmake", Target: "{{findhip}}/FindHIP.cmake"},
		patch.Edit{Kind: patch.Diff, Diff: "x.patch", Content: diffOf5},
	), map[string]string{"findhip": "/usr/lib/hip"})
	if err != nil || got.State != patch.Applied || len(got.Edits) != 4 {
		t.Fatalf("got %+v, %v", got, err)
	}
	if src.files["a.h"] != "#include <rccl/rccl.h>\nint a;\n" || !strings.HasSuffix(src.files["b.mk"], "-libverbs\n") ||
		src.links["cmake/FindHIP.cmake"] != "/usr/lib/hip/FindHIP.cmake" || !strings.Contains(src.files["c.cc"], "4\nfive\n6") {
		t.Errorf("got %+v", src)
	}
	if got.Edits[0].Detail != "matches once at line 1" {
		t.Errorf("got %+v", got.Edits[0])
	}
}

func TestTwoEditsOfOneFile(t *testing.T) {
	src := source()
	_, err := patch.Apply(t.Context(), src, with(replace("rccl.h", "x.h", 1), replace("x.h", "y.h", 1)), nil)
	if err != nil || !strings.Contains(src.files["a.h"], "y.h") {
		t.Errorf("got %q, %v", src.files["a.h"], err)
	}
}

func TestWhatDoesNotActIsAnError(t *testing.T) {
	hunk := func(text string) patch.Edit { return patch.Edit{Kind: patch.Diff, Diff: "x", Content: text} }
	for name, c := range map[string]struct {
		edit       patch.Edit
		says, hint string
	}{
		"absent":          {replace("banana", "x", 1), "matches 0 times, 1 wanted", ""},
		"already there":   {replace("<nccl.h>", "<rccl.h>", 1), "matches 0 times", "the replacement stands there already"},
		"twice":           {replace("c", "x", 1), "matches 3 times at lines 1 1 1, 1 wanted", ""},
		"too few":         {replace("int", "x", 2), "matches once at line 2, 2 wanted", ""},
		"no file":         {patch.Edit{Kind: patch.Replace, File: "gone.h", Search: "a", Replace: "b", Count: 1}, "gone.h: the source has no such file", ""},
		"append twice":    {patch.Edit{Kind: patch.Append, File: "b.mk", Text: "CXXFLAGS += -O3\n"}, "it ends so already", "upstream"},
		"link there":      {patch.Edit{Kind: patch.Symlink, Link: "a.h", Target: "/usr/lib/hip/FindHIP.cmake"}, "the source has it already", "upstream"},
		"link to nothing": {patch.Edit{Kind: patch.Symlink, Link: "x", Target: "/opt/rocm/x"}, "the image has no /opt/rocm/x", "facts"},
		"unknown fact":    {patch.Edit{Kind: patch.Symlink, Link: "x", Target: "{{banana}}/x"}, `nothing is called "banana"`, ""},
		"hunk nowhere":    {hunk("diff --git a/c.cc b/c.cc\n--- a/c.cc\n+++ b/c.cc\n@@ -4,3 +4,3 @@\n 4\n-x\n+five\n 6\n"), "its context is nowhere", ""},
		"hunk applied":    {hunk("diff --git a/c.cc b/c.cc\n--- a/c.cc\n+++ b/c.cc\n@@ -4,3 +4,3 @@\n 4\n-five\n+5\n 6\n"), "already applied, at line 4", "upstream"},
	} {
		src := source()
		before := fmt.Sprint(src.files)
		_, err := patch.Apply(t.Context(), src, with(c.edit), nil)
		var fault *diag.Error
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), c.says) || !strings.Contains(fault.Hint, c.hint) {
			t.Errorf("%s: got %v, hint %+v", name, err, fault)
			continue
		}
		if fmt.Sprint(src.files) != before || len(src.links) > 0 {
			t.Errorf("%s: the source was touched", name)
		}
	}
}

func TestAllOrNothing(t *testing.T) {
	src := source()
	_, err := patch.Apply(t.Context(), src, with(replace("<rccl.h>", "<x>", 1), replace("banana", "x", 1), replace("kiwi", "x", 1)), nil)
	if err == nil || src.writes != 0 || len(diag.Split(err)) != 2 {
		t.Errorf("%d writes, %v", src.writes, err)
	}
}

func TestOffset(t *testing.T) {
	src := source()
	src.files["c.cc"] = "new\nnew\n" + src.files["c.cc"]
	got, err := patch.Apply(t.Context(), src, with(patch.Edit{Kind: patch.Diff, Content: diffOf5}), nil)
	if err != nil || got.State != patch.AppliedAtOffset || !strings.Contains(got.Edits[0].Detail, "offsets 2 lines") {
		t.Errorf("got %+v, %v", got, err)
	}
	src = source()
	src.files["c.cc"] = "x\n4\n5\n6\n" + src.files["c.cc"]
	if _, err := patch.Apply(t.Context(), src, with(patch.Edit{Kind: patch.Diff, Content: diffOf5}), nil); err == nil || !strings.Contains(err.Error(), "2 places") {
		t.Errorf("an ambiguous place: got %v", err)
	}
}

const good = `name: p
reason: r
upstream: https://example.invalid/1
when: {rocm: ">=5.2"}
edits:
  - {kind: replace, file: a.h, search: a, replace: b, count: 1}
`

func TestLoadNamesEveryFault(t *testing.T) {
	if _, err := patch.Load(fstest.MapFS{"d/1.yaml": {Data: []byte(good)}}, "patches", "d"); err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(good, "  - {")
	edit := func(text string) string { return head + "  - {" + text + "}\n" }
	for name, c := range map[string]struct{ yaml, says string }{
		"no reason":     {strings.Replace(good, "reason: r", `reason: ""`, 1), "patches/d/1.yaml:2:9: reason is missing"},
		"no upstream":   {strings.Replace(good, "upstream: https://example.invalid/1\n", "", 1), "upstream is missing"},
		"no link":       {strings.Replace(good, "https://", "see ", 1), "upstream is not a link"},
		"no when":       {strings.Replace(good, `when: {rocm: ">=5.2"}`+"\n", "", 1), "when is missing"},
		"bad when":      {strings.Replace(good, ">=5.2", ">=x", 1), "patches/d/1.yaml:4:14"},
		"kind":          {edit("kind: sed, file: a"), `kind "sed" is not`},
		"foreign field": {edit("kind: append, file: a, text: x, count: 2"), "count has no place in a append"},
		"no count":      {edit("kind: replace, file: a, search: x, replace: y"), "a replace needs count"},
		"no change":     {edit("kind: replace, file: a, search: x, replace: x, count: 1"), "it changes nothing"},
		"escape":        {edit("kind: replace, file: ../a, search: x, replace: y, count: 1"), "leads out of the source"},
		"absolute":      {edit("kind: append, file: /etc/passwd, text: x"), "leads out of the source"},
		"relative link": {edit("kind: symlink, link: a, target: b"), "not an absolute path"},
		"no diff file":  {edit("kind: diff, diff: x.patch"), "reading the diff"},
		"empty diff":    {edit("kind: diff, diff: empty.patch"), "there is no diff"},
		"prose":         {edit("kind: diff, diff: prose.patch"), "there is no diff"},
		"idle hunk":     {edit("kind: diff, diff: idle.patch"), ""},
		"diff escapes":  {edit("kind: diff, diff: escape.patch"), "leads out of the source"},
	} {
		fsys := fstest.MapFS{
			"d/1.yaml": {Data: []byte(c.yaml)}, "d/empty.patch": {}, "d/prose.patch": {Data: []byte("please change it\n")},
			"d/idle.patch":   {Data: []byte("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n x\n")},
			"d/escape.patch": {Data: []byte("diff --git a/../../etc/passwd b/../../etc/passwd\n--- a/../../etc/passwd\n+++ b/../../etc/passwd\n@@ -1,1 +1,1 @@\n-x\n+y\n")},
		}
		_, err := patch.Load(fsys, "patches", "d")
		if err == nil || !strings.Contains(err.Error(), c.says) || diag.CodeOf(err) != diag.Usage {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestSelect(t *testing.T) {
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
		got, err := patch.Select([]patch.Patch{p}, c.facts)
		if err != nil || got[0].Applies != c.applies || !strings.Contains(got[0].Because, c.because) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
	_, err := patch.Select([]patch.Patch{p}, map[string]string{"rocm": "5.7", "version": "0.28.1"})
	if err == nil || !strings.Contains(err.Error(), `depends on "gcc"`) {
		t.Errorf("a fact that nobody states: got %v", err)
	}
}

func TestDigestIsOfTheMeaning(t *testing.T) {
	load := func(text string) patch.Patch {
		all, err := patch.Load(fstest.MapFS{"d/1.yaml": {Data: []byte(text)}}, "patches", "d")
		if err != nil {
			t.Fatal(err)
		}
		return all[0]
	}
	if load(good).Digest() != load("# a comment\n"+good).Digest() {
		t.Error("a comment changes the digest")
	}
	if load(good).Digest() == load(strings.Replace(good, "replace: b", "replace: c", 1)).Digest() {
		t.Error("another replacement does not change the digest")
	}
}

// Where git apply accepts a diff, the result is the same.
func TestAgreesWithGitApply(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	for name, before := range map[string]string{
		"as written": source().files["c.cc"],
		"offset":     "a\nb\n" + source().files["c.cc"],
		"no newline": strings.TrimSuffix(source().files["c.cc"], "\n"),
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "c.cc"), []byte(before), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(git, "apply", "-")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(diffOf5)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		want, err := os.ReadFile(filepath.Join(dir, "c.cc"))
		if err != nil {
			t.Fatal(err)
		}
		src := &tree{files: map[string]string{"c.cc": before}}
		if _, err := patch.Apply(t.Context(), src, with(patch.Edit{Kind: patch.Diff, Content: diffOf5}), nil); err != nil || src.files["c.cc"] != string(want) {
			t.Errorf("%s: got %q, %v; git apply gives %q", name, src.files["c.cc"], err, want)
		}
	}
}

func FuzzDiff(f *testing.F) {
	f.Add(diffOf5, "1\n2\n3\n4\n5\n6\n")
	f.Add("diff --git a/c.cc b/c.cc\n--- a/c.cc\n+++ b/c.cc\n@@ -0,0 +1 @@\n+x\n", "")
	f.Fuzz(func(t *testing.T, diff, text string) {
		src := &tree{files: map[string]string{"c.cc": text}, links: map[string]string{}}
		if _, err := patch.Apply(context.Background(), src, with(patch.Edit{Kind: patch.Diff, Content: diff}), nil); err != nil && src.writes > 0 {
			t.Error("it failed and wrote")
		}
	})
}
