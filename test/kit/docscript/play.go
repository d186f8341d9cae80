package docscript

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/golden"
	"builder/test/kit/markdown"
	"builder/test/kit/must"
)

// A Host runs the commands of a page: in a directory, called /home/you on pages, and
// with the given environment only.
type Host struct {
	Dir string
	Env []string
}

// you is the reader's directory on pages.
const you = "/home/you"

// Play runs the blocks of one kind on a page, in order, and compares the output of each
// command with the page. It also writes the files of the page. With -update it replaces
// the output on the page where it differs.
func (h Host) Play(t *testing.T, path string, kind Kind) {
	t.Helper()
	page := must.Get(markdown.Read(path))(t)
	blocks := must.Get(Of(page))(t)
	seen := h.seen(t, page, blocks, kind)
	if golden.Updating() {
		lines := slices.Clone(page.Lines)
		for i, b := range slices.Backward(blocks) { // backwards, so that line numbers stay valid
			lines = slices.Replace(lines, b.Line, b.Line+len(b.Lines), seen[i]...)
		}
		golden.CheckFile(t, path, []byte(strings.Join(lines, "\n")+"\n"))
	}
}

// seen returns the lines of all blocks, with the actual output in blocks that were run.
func (h Host) seen(t *testing.T, page markdown.Page, blocks []Block, kind Kind) [][]string {
	t.Helper()
	all := make([][]string, len(blocks))
	for n, b := range blocks {
		all[n] = b.Lines
		switch b.Kind {
		case Write:
			must.Succeed(t, h.write(b))
		case kind, Always:
			all[n] = nil
			for i, c := range b.Commands {
				want := 0
				if i == len(b.Commands)-1 {
					want = b.Exit
				}
				all[n] = append(all[n], h.show(t, page.Path, b, c, want)...)
			}
		}
	}
	return all
}

// show runs a command and returns its lines on the page: the command and its output.
func (h Host) show(t *testing.T, path string, b Block, c Command, exit int) []string {
	t.Helper()
	printed, code, err := h.Do(t.Context(), c.Text)
	must.Hold(t, err == nil, "%s:%d: %v", path, c.Line, err)
	shown := c.Shown
	if diff := b.differs(c, printed); diff != "" && golden.Updating() {
		shown = slices.Collect(strings.SplitSeq(strings.TrimSuffix(printed, "\n"), "\n"))
	} else if diff != "" {
		t.Errorf("%s:%d: %s\nthe page (-) differs from the output of the command (+); if the output is right, update the page with -update:\n%s", path, c.Line, c.Text, diff)
	}
	check.That(t, code == exit, "%s:%d: %s: exit code %d, want %d\n%s", path, c.Line, c.Text, code, exit, printed)
	return append(strings.Split("$ "+c.Text, "\n"), shown...)
}

// Do runs a command in the shell. It returns its output in the form of a page, and its
// exit code.
func (h Host) Do(ctx context.Context, command string) (printed string, code int, err error) {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Dir, cmd.Env = h.Dir, append([]string{}, h.Env...) // nil would inherit the environment of the test
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		code, err = exit.ExitCode(), nil
	}
	return strings.ReplaceAll(string(out), h.Dir, you), code, err
}

// write writes a block to the file named by its mark, below the host's directory.
func (h Host) write(b Block) error {
	if !filepath.IsLocal(b.About) {
		return fmt.Errorf("%s is outside the directory", b.About)
	}
	path := filepath.Join(h.Dir, b.About)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strings.Join(b.Lines, "\n")+"\n"), 0o644)
}
