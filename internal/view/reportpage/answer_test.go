package reportpage

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
	"builder/internal/view/report"
	"builder/test/kit/check"
)

// wheels returns a run of three cells of Horovod. If failed, the first was built
// without TensorFlow.
func wheels(failed bool) report.Run {
	run := report.Run{Builder: "devel", Engine: report.Engine{Kind: "native", Version: "v0.19.10"}, Started: began, Finished: began.Add(8 * time.Minute)}
	for i, python := range []string{"3.9", "3.10", "3.11"} {
		id := fmt.Sprintf("horovod-0.28.1+rocm5.7-tf2.13.0-cp%s-gfx90a", strings.ReplaceAll(python, ".", ""))
		c := report.Cell{
			ID: id, Key: strings.Repeat("9466468c", 8), Recipe: "horovod", From: report.Build,
			Axes: map[string]string{"version": "0.28.1", "rocm": "5.7", "tensorflow": "2.13.0", "arch": "gfx90a", "python": python},
		}
		at := began.Add(time.Duration(2*i) * time.Minute)
		step := func(name string, seconds float64) {
			c.Steps = append(c.Steps, report.Step{Name: name, Started: at, Seconds: report.Seconds(seconds), Log: id + "/logs/" + strings.ReplaceAll(name, " ", "-") + ".log"})
			at = at.Add(time.Duration(seconds * float64(time.Second)))
		}
		step("fetch", 13)
		step("packages", 30)
		step("build", 120)
		wheel := fmt.Sprintf("horovod-0.28.1+rocm5.7.tf2.13-cp%[1]s-cp%[1]s-linux_x86_64.whl", strings.ReplaceAll(python, ".", ""))
		c.Artifacts = []artifact.Artifact{{Name: wheel, Path: "out/" + id + "/" + wheel, SHA256: strings.Repeat("1c6874a7", 8), Size: 8421736}}
		for _, g := range [][2]string{{"wheel-format", "412 files, all in RECORD"}, {"native-deps", "9 libraries, all of the platform"}, {"glibc-floor", "GLIBC_2.29 of at most 2.31"}, {"import", "horovod.tensorflow imported"}, {"check-build", "tensorflow, mpi, rccl"}} {
			c.Verdicts = append(c.Verdicts, verdict.Verdict{Gate: g[0], Status: verdict.Pass, Evidence: g[1], Seconds: 3})
			step("gate "+g[0], 3)
		}
		if failed && i == 0 {
			last := &c.Verdicts[len(c.Verdicts)-1]
			last.Status, last.Evidence, last.Remedy = verdict.Fail, "TensorFlow was not found", "build with HOROVOD_WITH_TENSORFLOW=1: without it a missing TensorFlow is left out in silence"
		}
		run.Cells = append(run.Cells, c)
	}
	return run
}

// there links every file, as if the page were in out.
func there(path string) string { return strings.TrimPrefix(path, "out/") }

// The failure comes first: the headline, the gate with its remedy and log, and the next
// command.
func TestAnswerOfAFailure(t *testing.T) {
	page := write(t, wheels(true), Options{LogDir: "out", Link: there})
	id := "horovod-0.28.1+rocm5.7-tf2.13.0-cp39-gfx90a"
	order := []string{
		`<h1 class="fail">1 of 3 cells failed: check-build: TensorFlow was not found</h1>`,
		`<h2>Why</h2>`,
		`<span class="status fail">fail</span> check-build</h3>`,
		`<p class="text">TensorFlow was not found</p>`,
		`What to do:</strong> build with HOROVOD_WITH_TENSORFLOW=1`,
		`<a href="#cell-1">horovod-0.28.1&#43;rocm5.7-tf2.13.0-cp39-gfx90a</a> · log: <a href="horovod-0.28.1&#43;rocm5.7-tf2.13.0-cp39-gfx90a/logs/gate-check-build.log">gate-check-build.log</a>`,
		`<h2>Next</h2>`,
		`builder run horovod --arch gfx90a --python 3.9 --rocm 5.7 --tensorflow 2.13.0 --version 0.28.1`,
		`<h2>Cells</h2>`,
		`<th scope="row">check-build</th><td class="status fail">`, // before the gates that passed
		`<th scope="row">wheel-format</th>`,
	}
	at := 0
	for _, want := range order {
		next := strings.Index(page[at:], want)
		if next < 0 {
			t.Fatalf("the page lacks %s behind %s", want, page[at:min(len(page), at+200)])
		}
		at += next
	}
	head, _, _ := strings.Cut(page, "<h2>Cells</h2>")
	check.That(t, !strings.Contains(head, "pip install"), "the head of a page of a failed run installs something")
	check.That(t, !strings.Contains(page, "#ZgotmplZ") && strings.Contains(page, id[:12]), "an address was refused")
}

// A pass shows how to install the wheel and links to it.
func TestAnswerOfAPass(t *testing.T) {
	page := write(t, wheels(false), Options{LogDir: "out", Link: there})
	at := "horovod-0.28.1&#43;rocm5.7-tf2.13.0-cp39-gfx90a/horovod-0.28.1&#43;rocm5.7.tf2.13-cp39-cp39-linux_x86_64.whl"
	head, _, _ := strings.Cut(page, "<h2>Cells</h2>")
	for _, want := range []string{"<pre>pip install out/" + at + "\n</pre>", "<pre>uv pip install out/" + at + "\n</pre>"} {
		check.That(t, strings.Contains(head, want), "the head of the page lacks %s", want)
	}
	demand(t, page, `<h1 class="pass">3 of 3 cells passed</h1>`,
		"<pre>pip install out/"+at+"\n</pre>", "builder verify out/horovod-0.28.1",
		`<a href="`+at+`">`)
	check.That(t, !strings.Contains(page, "<h2>Why</h2>"), "a pass has reasons")
	unlinked := write(t, wheels(false), Options{})
	check.That(t, !strings.Contains(unlinked, ".whl\">") && !strings.Contains(unlinked, ".log\">"), "files that nobody found are links")
}

// Results other than wheels have other commands to install, or none.
func TestCommands(t *testing.T) {
	cell := func(id, name string) report.Cell {
		return report.Cell{
			ID: id, Recipe: "tool", Artifacts: []artifact.Artifact{{Name: name, Path: "my out/" + id + "/" + name}},
			Verdicts: []verdict.Verdict{{Gate: "import", Status: verdict.Pass}},
		}
	}
	nowhere := cell("tool-1", "tool.whl")
	nowhere.Artifacts[0].Path = ""
	pinned := cell("tool-1", "the_tool-1.0+cuda13-py3-none-any.whl")
	public := cell("tool-1", "tool-1.0-py3-none-any.whl")
	public.Artifacts[0].SHA256 = "aa"
	public.Artifacts = append(public.Artifacts, artifact.Artifact{Name: "tool-1.requirements.txt", Path: "my out/tool-1/tool-1.requirements.txt"})
	pinned.Artifacts = append(pinned.Artifacts, artifact.Artifact{Name: "tool-1.requirements.txt", Path: "my out/tool-1/tool-1.requirements.txt"})
	unknown := cell("tool-1", "tool.whl")
	unknown.Recipe, unknown.Verdicts = "", nil
	for name, want := range map[string]struct {
		cell  report.Cell
		lines string
	}{
		"wheel": {cell("tool-1", "tool.whl"), "uv pip install 'my out/tool-1/tool.whl'|pip install 'my out/tool-1/tool.whl'|builder verify 'my out/tool-1'|builder publish 'my out/tool-1' --to DEST"},
		"pinned": {pinned, "uv pip install --require-hashes --find-links 'my out/tool-1' -r 'my out/tool-1/tool-1.requirements.txt'|" +
			"pip install --require-hashes --find-links 'my out/tool-1' -r 'my out/tool-1/tool-1.requirements.txt'|" +
			"builder verify 'my out/tool-1'|builder publish 'my out/tool-1' --to DEST"},
		"public version": {public, "uv pip install --require-hashes --find-links 'my out/tool-1' -r 'my out/tool-1/tool-1.requirements.txt'|" +
			"builder verify 'my out/tool-1'|builder publish 'my out/tool-1' --to DEST"},
		"wheelhouse": {cell("stack/tools", "manifest.json"),
			"uv pip install --no-index --no-deps --require-hashes --find-links 'my out/stack/tools/wheelhouse' -r 'my out/stack/tools/requirements.txt'|" +
				"pip install --no-index --no-deps --require-hashes --find-links 'my out/stack/tools/wheelhouse' -r 'my out/stack/tools/requirements.txt'|" +
				"builder verify 'my out/stack/tools'|builder publish 'my out/stack/tools' --to DEST"},
		"archive":          {cell("tool-1", "tool.tar.gz"), "builder verify 'my out/tool-1'|builder publish 'my out/tool-1' --to DEST"},
		"nowhere":          {nowhere, ""},
		"failed":           {report.Cell{ID: "tool-1", Recipe: "tool", Axes: map[string]string{"rocm": "5.7", "arch": "a b"}}, "builder run tool --arch 'a b' --rocm 5.7"},
		"failed of a site": {report.Cell{ID: "tool-1", Recipe: "tool", Recipes: "our site"}, "builder run tool --recipes 'our site'"},
		"failed with --set": {
			report.Cell{ID: "tool-1", Recipe: "tool", Axes: map[string]string{"version": "1"}, Set: []string{"source.tool=/a b"}},
			"builder run tool --version 1 --set 'source.tool=/a b'",
		},
		"unknown": {unknown, ""},
	} {
		var lines []string
		for _, c := range commandsOf(want.cell) {
			lines = append(lines, c.Lines...)
		}
		check.Same(t, name, want.lines, strings.Join(lines, "|"))
	}
}
