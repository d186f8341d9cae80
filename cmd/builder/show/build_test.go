package show

import (
	"bytes"
	"strings"
	"testing"

	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
	"builder/internal/view/report"
	"builder/internal/view/term"
	"builder/test/kit/check"
)

// The end of a run names the digest and the signer of a wheel, the page, and the next command
// if all cells passed.
func TestRun(t *testing.T) {
	cell := report.Cell{
		ID: "tool-1", Signers: []string{"a2V5"}, Verdicts: []verdict.Verdict{{Gate: "import", Status: verdict.Pass}},
		Artifacts: []artifact.Artifact{{Name: "tool.whl", Path: "o/tool-1/tool.whl", SHA256: "aa"}, {Name: "more.txt", Path: "o/tool-1/more.txt", SHA256: "bb"}},
	}
	ended := func(cells ...report.Cell) string {
		var out, notes bytes.Buffer
		Run(term.Printer{Stdout: &out, Stderr: &notes}, report.Run{Cells: cells}, "o")
		_, rows, _ := strings.Cut(out.String(), "o/")
		return rows
	}
	want := "tool-1/tool.whl\n  sha256:aa, signed by a2V5\no/tool-1/more.txt\npage: o/report.html\n"
	check.Same(t, "all passed", want+"next: uv pip install o/tool-1/tool.whl\n", ended(cell))
	check.Same(t, "one failed", want, ended(cell, report.Cell{ID: "tool-2", Error: &report.CellError{Code: "build"}}))
}
