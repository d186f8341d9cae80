package reportpage

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
	"builder/internal/view/report"
	"builder/test/kit/browsertest"
	"builder/test/kit/check"
	"builder/test/kit/must"
	"builder/test/kit/pagetest"
)

var began = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// sample returns a run of n cells over two axes. The first failed, the second has no
// result, the others passed.
func sample(n int) report.Run {
	run := report.Run{Builder: "v1", Engine: report.Engine{Kind: "native", Version: "0.19"}, Started: began, Finished: began.Add(10 * time.Minute)}
	for i := range n {
		id := fmt.Sprintf("tool-%d", i)
		c := report.Cell{
			ID: id, Key: strings.Repeat("a", 64), Recipe: "tool", From: report.Build,
			Axes:      map[string]string{"rocm": fmt.Sprintf("%d.7", i%4), "python": fmt.Sprintf("3.%d", i/4), "arch": "gfx90a"},
			Artifacts: []artifact.Artifact{{Name: id + ".whl", SHA256: strings.Repeat("b", 64), Size: 12}},
			Verdicts:  []verdict.Verdict{{Gate: "import", Status: verdict.Pass, Evidence: "imported", Remedy: "nothing to be done"}},
			Steps: []report.Step{
				{Name: "build", Started: began.Add(time.Minute), Seconds: 240, Log: id + "/logs/build.log"},
				{Name: "gate import", Started: began.Add(5 * time.Minute), Seconds: 3, Log: id + "/logs/gate-import.log"},
			},
		}
		switch i {
		case 0:
			c.Verdicts = append(c.Verdicts, verdict.Verdict{Gate: "size", Status: verdict.Fail, Evidence: "<script>alert(1)</script>", Remedy: "make it smaller"})
		case 1:
			c.Artifacts, c.Verdicts, c.Steps = nil, nil, c.Steps[:1]
			c.Error = &report.CellError{Code: "build", Message: "make: *** [all] Error 2", Hint: "read the log"}
		}
		run.Cells = append(run.Cells, c)
	}
	return run
}

func write(t testing.TB, run report.Run, o Options) string {
	t.Helper()
	var b bytes.Buffer
	must.Succeed(t, Write(&b, run, o))
	return b.String()
}

func demand(t *testing.T, page string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		check.That(t, strings.Contains(page, want), "the page lacks %s", want)
	}
}

func TestPage(t *testing.T) {
	logs := fstest.MapFS{
		"tool-1/logs/build.log":       {Data: []byte("cc -c a.c\n\x1b[31mundefined reference to ibv_reg_mr\x1b[0m\n")},
		"tool-2/logs/gate-import.log": {Data: []byte("nobody wants to read this")},
		"tool-3/logs/gate-import.log": {Data: []byte("nobody wants to read of what was waived")},
	}
	run := sample(8)
	run.Cells[3].Verdicts[0] = verdict.Verdict{Gate: "import", Status: verdict.Waived, Waiver: &recipe.Waiver{Until: "2099-01-01"}}
	page := write(t, run, Options{Logs: logs})
	demand(t, page,
		"<title>2 of 8 cells failed: make: *** [all] Error 2 · builder</title>", "arch gfx90a · python 3.0 · rocm 0.7 · key", "took 10m0s",
		"&lt;script&gt;alert(1)&lt;/script&gt;", "make it smaller", "<h3>Error: build</h3>", "What to do:</strong> read the log",
		"End of tool-1/logs/build.log", "undefined reference to ibv_reg_mr", strings.Repeat("b", 64),
		`<details id="cell-1" open>`,
	)
	for _, never := range []string{"\x1b", "[31mundefined\x1b", "nobody wants", "nothing to be done", "http://", "https://", "<script>alert"} {
		check.That(t, !strings.Contains(page, never), "the page holds %q", never)
	}
}

// The page of a killed run mentions the kill.
func TestPageOfLittle(t *testing.T) {
	one := sample(1)
	one.Finished = time.Time{}
	page := write(t, one, Options{})
	demand(t, page, "not finished: the run was killed")
	demand(t, write(t, report.Run{Started: began, Finished: began}, Options{}), "The run has no cells")
}

// Neither the names nor the sizes of logs are trusted.
func TestHostileLogs(t *testing.T) {
	dir := t.TempDir()
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o600), os.Mkdir(filepath.Join(dir, "out"), 0o755))
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "out", "large.log"), bytes.Repeat([]byte("line\n"), 1<<20), 0o600))
	must.Succeed(t, os.Symlink("../secret", filepath.Join(dir, "out", "link.log")))
	root := must.Get(os.OpenRoot(filepath.Join(dir, "out")))(t)
	defer root.Close()
	run := sample(2)
	for path, want := range map[string]int{"../secret": 0, "/etc/passwd": 0, "": 0, "missing": 0, "link.log": 0, ".": 0, "large.log": 1} {
		run.Cells[1].Steps[0].Log = path
		page := write(t, run, Options{Logs: root.FS()})
		got := strings.Count(page, "<h3>End of ")
		check.That(t, got == want && len(page) <= 100<<10, "%q: %d excerpts, %d bytes", path, got, len(page))
	}
}

// The page is accessible without sight, without a mouse and with high contrast.
func TestPageForEveryone(t *testing.T) {
	logs := fstest.MapFS{"tool-1/logs/build.log": {Data: []byte("cc1plus: out of memory\n")}}
	for name, page := range map[string]string{
		"all there is": write(t, sample(4), Options{Logs: logs}),
		"a failure":    write(t, wheels(true), Options{LogDir: "out", Link: there}),
		"a pass":       write(t, wheels(false), Options{LogDir: "out", Link: there}),
		"one cell":     write(t, sample(1), Options{}),
		"no cell":      write(t, report.Run{Started: began, Finished: began}, Options{}),
	} {
		for _, problem := range pagetest.Faults(page) {
			t.Errorf("%s: %s", name, problem)
		}
	}
	css := style
	for _, problem := range slices.Concat(
		pagetest.Contrasts(css, pagetest.Text, "--ground", "--text", "--quiet", "--link", "--good", "--bad", "--open"),
		pagetest.Contrasts(css, pagetest.Text, "--raised", "--text", "--quiet", "--link", "--good", "--bad", "--open"),
	) {
		t.Error(problem)
	}
}

// A browser shows the answer of five hundred cells, and opens the cell in the address.
func TestInABrowser(t *testing.T) {
	logs := fstest.MapFS{
		"tool-1/logs/build.log":                                 {Data: []byte("cc1plus: out of memory\n")},
		wheels(true).Cells[0].ID + "/logs/gate-check-build.log": {Data: []byte("Available Frameworks:\n    [ ] TensorFlow\n    [ ] PyTorch\n    [ ] MXNet\n")},
	}
	pages := map[string]string{}
	for name, run := range map[string]report.Run{"failed": wheels(true), "passed": wheels(false), "many": sample(500), "few": sample(8)} {
		pages["/"+name] = write(t, run, Options{Logs: logs, LogDir: "out", Link: there})
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, pages[r.URL.Path]) }))
	defer server.Close()
	dom := browsertest.DOM(t, server.URL+"/many#cell-7")
	demand(t, dom, `<h1 class="error">2 of 500 cells failed`)
	check.That(t, regexp.MustCompile(`<details id="cell-7"[^>]* open`).MatchString(dom), "the cell that the address names is closed")
	for _, name := range []string{"failed", "passed", "few"} {
		browsertest.Picture(t, server.URL+"/"+name, "400,1600", name+"-400")
		browsertest.Picture(t, server.URL+"/"+name, "1280,1600", name+"-1280")
	}
}

// Each cell names the engine that built it.
func TestEngines(t *testing.T) {
	run := sample(2)
	run.Cells[0].Engine = "tcp://one:8080"
	demand(t, write(t, run, Options{}), "built by tcp://one:8080 · gates")
}
