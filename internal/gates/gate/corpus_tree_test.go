package gate

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/internal/gates/verdict"
	"builder/internal/plan/patch"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// original is a source tree and its patches.
type original struct {
	entries []member
	patches []patch.Patch
}

// write writes the archive as in the store, under a name without a suffix.
func (o *original) write(t *testing.T) *Upstream {
	if o == nil {
		return nil
	}
	path := filepath.Join(t.TempDir(), "0f1e2d")
	write(t, path, tarOf(t, o.entries...))
	return &Upstream{Archive: path, Name: strings.SplitN(o.entries[0].Name, "/", 2)[0] + ".tar", Patches: o.patches, Facts: map[string]string{"rocm": "6.1"}}
}

// The lines of GPT-SoVITS 20250606v2pro that choose a backend.
const (
	s1Stock   = `        strategy=DDPStrategy(process_group_backend="nccl" if platform.system() != "Windows" else "gloo")`
	s1Patched = `        strategy=DDPStrategy(process_group_backend="gloo")`
	s2Stock   = `        backend="gloo" if os.name == "nt" or not torch.cuda.is_available() else "nccl",`
	s2Patched = `        backend="gloo",`
)

func toGloo(name, file, search string) patch.Patch {
	return patch.Patch{Name: name, Edits: []patch.Edit{{Kind: patch.Replace, File: file, Search: search, Replace: `"gloo"`, Count: 1}}}
}

// soVITS returns GPT-SoVITS with its two patches, reduced to the patched files.
func soVITS() *specimen {
	files := func(top, s1, s2 string) []member {
		program := file(top+"/install.sh", "#!/bin/sh\n")
		program.Mode = 0o755
		return []member{
			file(top+"/GPT_SoVITS/s1_train.py", "import platform\n\n"+s1+"\n"),
			file(top+"/GPT_SoVITS/s2_train.py", "import os\n"+s2+"\n\n"), file(top+"/LICENSE", "MIT\n"), program,
		}
	}
	const tree = "gpt-sovits-20250606v2pro+rocm6.1"
	return &specimen{
		expect:  recipe.Expect{Version: "20250606v2pro+rocm6.1", Tree: tree + ".tar.gz"},
		archive: archived{name: tree + ".tar.gz", entries: append([]member{dir(tree + "/"), dir(tree + "/GPT_SoVITS/")}, files(tree, s1Patched, s2Patched)...)},
		source: &original{files("gpt-sovits-20250606v2pro", s1Stock, s2Stock), []patch.Patch{
			toGloo("s1-gloo", "GPT_SoVITS/s1_train.py", `"nccl" if platform.system() != "Windows" else "gloo"`),
			toGloo("s2-gloo", "GPT_SoVITS/s2_train.py", `"gloo" if os.name == "nt" or not torch.cuda.is_available() else "nccl"`),
		}},
	}
}

func TestTreeThatDiffersByItsPatches(t *testing.T) {
	verdicts := soVITS().verdicts(t)
	must.Hold(t, verdict.Refusals("it", verdicts) == nil && len(verdicts) == 1, "got %+v", verdicts)
	const want = "4 files, 2 of them changed from gpt-sovits-20250606v2pro.tar: GPT_SoVITS/s1_train.py GPT_SoVITS/s2_train.py"
	check.That(t, verdicts[0].Gate == "changes" && verdicts[0].Evidence == want, "got %+v\nwant %s", verdicts[0], want)
}

// badTrees lists archives that differ from the patched source tree.
func badTrees() []bad {
	edit := func(name string, change func(*member)) func(*specimen) {
		return func(s *specimen) {
			i := slices.IndexFunc(s.archive.entries, func(m member) bool { return strings.HasSuffix(m.Name, name) })
			change(&s.archive.entries[i])
		}
	}
	text := func(name, to string) func(*specimen) { return edit(name, func(m *member) { *m = file(m.Name, to) }) }
	row := func(what, says string, change func(*specimen)) bad {
		return bad{what: what, of: soVITS, change: change, gate: "changes", says: says, do: "make each change with a patch"}
	}
	blind := func(what, says, do string, change func(*specimen)) bad {
		return bad{what: what, of: soVITS, change: change, gate: "changes", blind: true, says: says, do: do}
	}
	const top = "gpt-sovits-20250606v2pro+rocm6.1/"
	return []bad{
		row("a tree without its patches", "GPT_SoVITS/s1_train.py is a file, sha256", text("s1_train.py", "import platform\n\n"+s1Stock+"\n")),
		row("a tree with one more edit in a patched file", "; after the patches it must be a file, sha256", text("s2_train.py", "import sys\n"+s2Patched+"\n\n")),
		row("a tree with an edit in another file", "LICENSE is a file, sha256", text("LICENSE", "GPL\n")),
		row("a tree that lost a file", "LICENSE of the source is missing", func(s *specimen) {
			s.archive.entries = slices.DeleteFunc(s.archive.entries, func(m member) bool { return strings.HasSuffix(m.Name, "LICENSE") })
		}),
		row("a tree with the remains of a build", "__pycache__/x.pyc is neither in the source nor made by a patch", func(s *specimen) {
			s.archive.entries = append(s.archive.entries, file(top+"__pycache__/x.pyc", "x"))
		}),
		row("a tree whose program cannot be started", "install.sh is a file, sha256", edit("install.sh", func(m *member) { m.Mode = 0o644 })),
		row("a tree with a link in place of a file", "LICENSE is a link to install.sh", edit("LICENSE", func(m *member) { *m = link(m.Name, "install.sh") })),
		row("a tree owned by the packing user", "belongs to 1000:1000", edit("LICENSE", func(m *member) { m.Uid, m.Gid = 1000, 1000 })),
		row("a truncated tree", "unexpected EOF", func(s *specimen) { s.archive.damage = func(b []byte) []byte { return b[:len(b)-20] } }),
		blind("a tree whose source is not in the store", "the source tree is not in the store", "builder store import", func(s *specimen) { s.source = nil }),
		blind("a tree of another source than its patches", "patch s2-gloo", "correct the cause and run the gate again", func(s *specimen) {
			s.source.entries[1] = file("gpt-sovits-20250606v2pro/GPT_SoVITS/s2_train.py", "import os\n")
		}),
	}
}

// With the lock of an older source every file differs. The evidence must stay bounded.
func TestFaultsOfATreeAreNotEndless(t *testing.T) {
	s := soVITS()
	for range 60 {
		s.source.entries = append(s.source.entries, file("gpt-sovits-20250606v2pro/docs/"+strings.Repeat("x", len(s.source.entries)), ""))
	}
	v := changes.Check(t.Context(), s.subject(t))
	check.That(t, v.Status == verdict.Fail && strings.Count(v.Evidence, "; ") == 20 && strings.HasSuffix(v.Evidence, "and 40 more"),
		"got %+v", v)
}
