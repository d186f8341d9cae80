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
	run := wheels(false)
	run.Cells[0].Signers = []string{"U2lnbmVy"}
	run.Cells[0].NotAsked = []string{"GPUs: builder gate out/a.whl --gpus all --attach"}
	page := write(t, run, Options{LogDir: "out", Link: there})
	at := "horovod-0.28.1&#43;rocm5.7-tf2.13.0-cp39-gfx90a/horovod-0.28.1&#43;rocm5.7.tf2.13-cp39-cp39-linux_x86_64.whl"
	head, _, _ := strings.Cut(page, "<h2>Cells</h2>")
	for _, want := range []string{`<pre class="copy">pip install out/` + at + "</pre>", `<pre class="copy">uv pip install out/` + at + "</pre>"} {
		check.That(t, strings.Contains(head, want), "the head of the page lacks %s", want)
	}
	demand(t, page, `<h1 class="pass">3 of 3 cells passed</h1>`,
		`<pre class="copy">pip install out/`+at+"</pre>", "builder verify out/horovod-0.28.1",
		`<a href="`+at+`">`)
	demand(t, head, `<span class="quiet">8.4 MB · signed by U2lnbmVy</span>`, `<span>sha256</span> <code class="copy">1c6874a7`,
		"<h2>Not asked</h2>\n<p class=\"why\">GPUs:</p>\n"+`<div class="line"><pre class="copy">builder gate out/a.whl --gpus all --attach</pre></div>`)
	check.That(t, !strings.Contains(page, "<h2>Why</h2>"), "a pass has reasons")
	unlinked := write(t, wheels(false), Options{})
	check.That(t, !strings.Contains(unlinked, ".whl\">") && !strings.Contains(unlinked, ".log\">"), "files that nobody found are links")
}

// A build that fails shows the first error of its compiler and the shell at it.
func TestAnswerOfABuildThatFails(t *testing.T) {
	run := sample(2)
	run.Cells = run.Cells[1:]
	run.Cells[0].Error.Cause = []string{"a.c:1:10: fatal error: <nosuch.h>", "    1 | #include"}
	run.Cells[0].Error.Shell = "builder debug shell tool-1"
	page := write(t, run, Options{})
	demand(t, page,
		`<h1 class="error">1 cell failed: a.c:1:10: fatal error: &lt;nosuch.h&gt;</h1>`,
		"<pre>a.c:1:10: fatal error: &lt;nosuch.h&gt;\n    1 | #include\n</pre>",
		`<p class="why">Open a shell where it failed:</p>`+"\n"+`<div class="line"><pre class="copy">builder debug shell tool-1</pre></div>`)
	check.That(t, !strings.Contains(page, "<h2>Made</h2>") && !strings.Contains(page, "<h2>Not asked</h2>"), "a failure made something")
}
