package progress_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"builder/internal/base/diag"
	"builder/internal/view/progress"
	"builder/test/kit/check"
)

// horovod returns an id longer than half a screen.
func horovod(rocm string) string { return "horovod-0.28.1+rocm" + rocm + "-tf2.13.0-cp311-gfx90a" }

// begin reports three cells: the first is from the store, the second is being built and
// the third has not started.
func begin(p *progress.Display) {
	p.Run([]string{horovod("5.7"), horovod("6.1"), horovod("6.2")})
	p.CellDone(horovod("5.7"), "pass", true, 0, "from store")
	p.Start(horovod("6.1"), "fetch")
	time.Sleep(10 * time.Second)
	p.Done(horovod("6.1"), "fetch", 10*time.Second, false, nil)
	p.Start(horovod("6.1"), "build")
	p.Line(horovod("6.1"), "[ 4%] Building CXX object horovod/common/operations.cc.o")
	p.Line(horovod("6.1"), "          ^~~~~")
	time.Sleep(20*time.Second + 50*time.Millisecond)
}

func TestRunOnAWideTerminal(t *testing.T) {
	onScreen(t, 80, 24, func(p *progress.Display, s *screen) {
		begin(p)
		see(t, s,
			"✓ pass            0.0s  "+horovod("5.7")+"  from store",
			"▸ rocm6.1  build    30s  [ 4%] Building CXX object horovod/common/operations.c…",
			"= 1 of 3 cells done, 1 running, 1 waiting, 30s")
		p.Done(horovod("6.1"), "build", 20*time.Second, false, errors.New("exit 1"))
		time.Sleep(time.Second) // the line stays until the cell is done
		see(t, s,
			"✓ pass            0.0s  "+horovod("5.7")+"  from store",
			"▸ rocm6.1  build    31s",
			"= 1 of 3 cells done, 1 running, 1 waiting, 31s")
		p.CellDone(horovod("6.1"), "error", false, 30*time.Second, "build")
		see(t, s,
			"✓ pass            0.0s  "+horovod("5.7")+"  from store",
			"✗ error          30.0s  "+horovod("6.1")+"  build",
			"= 2 of 3 cells done (1 failed), 0 running, 1 waiting, 31s")
	})
}

func TestMoreCellsThanRows(t *testing.T) {
	onScreen(t, 60, 5, func(p *progress.Display, s *screen) {
		var cells []string
		for i := range 9 {
			cells = append(cells, fmt.Sprint("cell-", i))
		}
		p.Run(cells)
		for _, id := range cells {
			p.Start(id, "build")
		}
		time.Sleep(3*time.Second + 50*time.Millisecond)
		want := []string{"▸ 0  build     3s", "▸ 1  build     3s", "… and 7 more", "= 0 of 9 cells done, 9 running, 0 waiting, 3s"}
		see(t, s, want...)
		for _, size := range [][2]int{{20, 3}, {60, 2}, {30, 1}, {60, 5}} {
			s.resize(size[0], size[1])
			time.Sleep(200 * time.Millisecond)
		}
		check.Same(t, "after resizing", strings.Join(want, "\n"), strings.TrimSuffix(s.tail(4), "\n"))
	})
}

// tail returns the last n lines.
func (s *screen) tail(n int) string {
	synctest.Wait()
	lines := strings.SplitAfter(strings.TrimRight(s.String(), "\n"), "\n")
	return strings.Join(lines[len(lines)-n:], "")
}

// logged runs f with a display on a buffer and returns the output.
func logged(t *testing.T, options progress.Options, f func(p *progress.Display)) string {
	t.Helper()
	var b bytes.Buffer
	synctest.Test(t, func(*testing.T) {
		p := progress.New(&b, options)
		f(p)
		p.Close()
	})
	return b.String()
}

func same(t *testing.T, got string, want ...string) {
	t.Helper()
	check.Same(t, "the log differs", strings.Join(want, "\n")+"\n", got)
}

func TestPlain(t *testing.T) {
	same(t, logged(t, progress.Options{}, func(p *progress.Display) {
		begin(p)
		p.Start(horovod("6.2"), "memory")
		time.Sleep(49*time.Second + 100*time.Millisecond)
		p.Note("see %s", "out")
		p.CellDone(horovod("6.1"), "pass", true, 70*time.Second, "")
		p.Done(horovod("6.2"), "memory", 49*time.Second, true, nil)
		p.Close()
	}),
		"00:00:00 "+horovod("5.7")+" pass 0.0s: from store",
		"00:00:00 "+horovod("6.1")+" fetch started",
		"00:00:10 "+horovod("6.1")+" fetch done 10.0s",
		"00:00:10 "+horovod("6.1")+" build started",
		"00:00:30 "+horovod("6.2")+" memory started",
		"00:00:40 "+horovod("6.1")+" build running 30.0s: [ 4%] Building CXX object horovod/common/operations.cc.o",
		"00:01:00 "+horovod("6.2")+" memory running 30.1s",
		"00:01:10 "+horovod("6.1")+" build running 1m0s: [ 4%] Building CXX object horovod/common/operations.cc.o",
		"00:01:19 see out",
		"00:01:19 "+horovod("6.1")+" pass 1m10s",
		"00:01:19 "+horovod("6.2")+" memory cached")
}

// In a run of one cell, the first step and the end name it. A step that says nothing new
// is mentioned at growing intervals.
func TestPlainOfOneCell(t *testing.T) {
	same(t, logged(t, progress.Options{}, func(p *progress.Display) {
		p.Run([]string{"tool-1"})
		p.Start("tool-1", "fetch")
		time.Sleep(time.Second)
		p.Done("tool-1", "fetch", time.Second, false, nil)
		p.Start("tool-1", "engine")
		time.Sleep(14*time.Minute + 100*time.Millisecond)
		p.Line("tool-1", "linking")
		time.Sleep(4*time.Minute + 50*time.Second) // not 5: a line would be due at the end of the step
		p.Done("tool-1", "engine", 19*time.Minute, false, nil)
		p.Start("tool-1", "gate import")
		p.Done("tool-1", "gate import", 0, false, nil)
		p.CellDone("tool-1", "pass", true, 20*time.Minute, "")
	}),
		"00:00:00 tool-1 fetch started",
		"00:00:01 tool-1 fetch done 1.0s",
		"00:00:01 engine started",
		"00:00:31 engine running 30.0s",
		"00:01:01 engine running 1m0s",
		"00:02:01 engine running 2m0s",
		"00:04:01 engine running 4m0s",
		"00:08:01 engine running 8m0s",
		"00:13:01 engine running 13m0s",
		"00:14:01 engine running 14m0s: linking",
		"00:18:51 engine done 19m0s",
		"00:18:51 gate import started",
		"00:18:51 gate import done 0.0s",
		"00:18:51 tool-1 pass 20m0s")
}

func TestVerbose(t *testing.T) {
	two := func(p *progress.Display) {
		p.Run([]string{"tool-1", "tool-2"})
		p.Start("tool-1", "build")
		p.Line("tool-1", "cc \x1b[31ma.c\x1b[0m")
		p.Line("tool-1", "    ^~~")
		p.Done("tool-1", "build", time.Second, false, nil)
		p.Line("tool-1", "of nobody")
	}
	same(t, logged(t, progress.Options{Verbose: true}, two),
		"00:00:00 tool-1 build started", "00:00:00 tool-1 | cc a.c", "00:00:00 tool-1 | ^~~", "00:00:00 tool-1 build done 1.0s")
	synctest.Test(t, func(t *testing.T) {
		s := newScreen(60, 10)
		p := progress.New(s, progress.Options{Format: progress.Live, Size: s.size, Verbose: true})
		two(p)
		p.Close()
		see(t, s, "1 | cc a.c", "1 | ^~~")
	})
}

func TestGitHub(t *testing.T) {
	got := logged(t, progress.Options{Format: progress.GitHub}, func(p *progress.Display) {
		p.Run([]string{"a", "b"})
		p.Start("a", "build")
		p.Start("b", "build")
		p.Line("a", "cc a.c")
		p.Line("b", "cc b.c")
		p.Line("a", "  ::set-env name=PATH::/evil")
		p.Line("a", "x ##[add-matcher]evil.json")
		p.Line("b", "##[add-matcher]evil.json")
		p.Note("::warning::evil")
		time.Sleep(31 * time.Second)
		p.Done("a", "build", 31*time.Second, false, errors.New("exit 1"))
		p.CellDone("a", "error", false, 31*time.Second, "build")
		for i := range 600 {
			p.Line("b", fmt.Sprint("line ", i))
		}
		p.Done("b", "build", 31*time.Second, false, nil)
		_ = p.End(diag.Errorf(diag.Build, "building a: step build:\nexit 1, 100%%").WithHint("mend it"))
	})
	lines := strings.Split(got, "\n")
	group := slices.Index(lines, "::group::b build done 31.0s")
	diff := cmp.Diff([]string{"::group::b build done 31.0s", "(102 earlier lines are in the log of the step)", "line 100"}, lines[group:group+3])
	check.That(t, group >= 0 && diff == "", "a long log (-want +got):\n%s", diff)
	same(t, strings.Join(lines[:group], "\n")+"\n",
		"| ::warning::evil",
		"a build running 30.0s: x # #[add-matcher]evil.json",
		"b build running 30.0s: # #[add-matcher]evil.json",
		"::group::a build failed 31.0s: exit 1", "cc a.c", "| ::set-env name=PATH::/evil", "x # #[add-matcher]evil.json", "::endgroup::",
		"a error 31.0s: build")
	if want := "::error title=build::building a: step build:%0Aexit 1, 100%25  hint: mend it\n"; !strings.HasSuffix(got, "::endgroup::\n"+want) {
		t.Errorf("it ends with %q", got[len(got)-200:])
	}
}

func TestLabels(t *testing.T) {
	for _, c := range []struct{ ids, want []string }{
		{[]string{horovod("5.7")}, []string{"horovod-0.28…-cp311-gfx90a"}},
		{[]string{"a-1+x-z", "a-2+x-z"}, []string{"1", "2"}},
		{[]string{"nccl-2", "nccl-2-debug"}, []string{"2", "2-debug"}},
		{[]string{"nccl", "nccl-debug"}, []string{"nccl", "nccl-debug"}},
		{[]string{"nccl", "rccl"}, []string{"nccl", "rccl"}},
	} {
		onScreen(t, 66, 10, func(p *progress.Display, s *screen) {
			p.Run(c.ids)
			for _, id := range c.ids {
				p.Start(id, "build")
			}
			var got []string
			for line := range strings.Lines(s.tail(len(c.ids) + 1)) {
				if strings.HasPrefix(line, "▸") {
					got = append(got, strings.Fields(line)[1])
				}
			}
			check.Same(t, fmt.Sprintf("%v", c.ids), c.want, got)
		})
	}
}
