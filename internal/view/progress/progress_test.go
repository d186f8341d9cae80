package progress_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"builder/internal/view/progress"
	"builder/internal/view/term"
	"builder/test/kit/check"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC
	os.Exit(m.Run())
}

const cell = "nccl-2.27.7+cuda12.9-sm90"

// onScreen runs f in a synctest bubble, where time advances only while all goroutines
// are blocked.
func onScreen(t *testing.T, width, height int, f func(p *progress.Display, s *screen)) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		s := newScreen(width, height)
		p := progress.New(s, progress.Options{Format: progress.Live, Size: s.size})
		defer p.Close()
		f(p, s)
	})
}

func see(t *testing.T, s *screen, want ...string) {
	t.Helper()
	synctest.Wait()
	check.Same(t, "the screen differs", strings.Join(want, "\n")+"\n", s.String())
	check.That(t, !s.cursorHidden(), "a frame left the cursor hidden")
}

func TestLive(t *testing.T) {
	onScreen(t, 60, 10, func(p *progress.Display, s *screen) {
		p.Note("2 cells\nof 12")
		p.Start(cell, "image")
		p.Done(cell, "image", 0, true, nil)
		p.Start(cell, "build")
		p.Start("other", "image")
		p.Line(cell, "[ 3%]\r[ 4%] cc \x1b[31ma.c\x1b[0m\n")
		time.Sleep(12*time.Second + 50*time.Millisecond)
		see(t, s,
			"2 cells",
			"of 12",
			"✓ "+cell+"  image   cached",
			"▸ nccl-2.27.7…da12.9-sm90  build    12s  [ 4%] cc a.c",
			"▸ other  image    12s")

		p.Done(cell, "build", 31200*time.Millisecond, false, nil)
		p.Done("other", "image", time.Second, false, errors.New("exit 1\nsecond line"))
		p.Start("third", "source")
		p.Close()
		see(t, s,
			"2 cells",
			"of 12",
			"✓ "+cell+"  image   cached",
			"✓ "+cell+"  build   done 31.2s",
			"✗ other  image   failed 1.0s: exit 1 second line",
			"- third  source  stopped 0.0s")
	})
}

func TestLiveFitsTheWidth(t *testing.T) {
	onScreen(t, 52, 10, func(p *progress.Display, s *screen) {
		p.Start(cell, "build")
		p.Line(cell, strings.Repeat("長い", 30))
		time.Sleep(1050 * time.Millisecond)
		see(t, s, "▸ nccl-2.27…a12.9-sm90  build     1s  長い長い長い…") // 51 columns
	})
}

func TestLiveResize(t *testing.T) {
	onScreen(t, 60, 10, func(p *progress.Display, s *screen) {
		p.Note("before")
		p.Start("a", "build")
		p.Start("b", "build")
		p.Line("a", strings.Repeat("x", 80))
		time.Sleep(1050 * time.Millisecond)
		for _, width := range []int{25, 50, 33} {
			s.resize(width, 10)
			time.Sleep(time.Second)
		}
		see(t, s,
			"before",
			"▸ a  build     4s  xxxxxxxxxxxx…",
			"▸ b  build     4s")
	})
}

func TestLiveIsQuietWhileNothingChanges(t *testing.T) {
	onScreen(t, 60, 10, func(p *progress.Display, s *screen) {
		p.Start(cell, "build")
		for range 1000 {
			p.Line(cell, "the same")
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		check.That(t, s.frames <= 15, "%d frames in 10 s, of which one each second differs", s.frames)
	})
}

func TestNothingHostileReachesTheTerminal(t *testing.T) {
	const evil = "\x1b]0;owned\x07\x1b[2J\x1b[1;1H\u009b31m\x1bc\x07\x00\u202eevil"
	for _, format := range progress.Formats() {
		synctest.Test(t, func(t *testing.T) {
			s := newScreen(60, 10)
			p := progress.New(s, progress.Options{Format: format, Size: s.size})
			p.Start(evil, evil)
			p.Line(evil, evil)
			time.Sleep(time.Minute)
			p.Done(evil, evil, 0, false, errors.New(evil))
			p.Note("%s", evil)
			p.Close()
			left := strings.NewReplacer("\x1b[?2026h", "", "\x1b[?2026l", "", "\x1b[?25l", "", "\x1b[?25h", "",
				"\x1b[1A", "", "\x1b[K", "", "\x1b[J", "", "\n", "", "\r", "").Replace(s.raw.String())
			check.That(t, term.Clean(left) == left, "%s: got %q", format, left)
		})
	}
}

func TestColourIsNeverAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		p := progress.New(&b, progress.Options{Format: progress.Live, Colour: true})
		p.Done("a", "build", time.Second, false, nil)
		p.Done("b", "build", time.Second, false, errors.New("x"))
		p.Close()
		for _, want := range []string{"\x1b[32m✓\x1b[m a  build   done", "✗\x1b[m b  build   failed"} {
			check.That(t, strings.Contains(b.String(), want), "%q is not in %q", want, b.String())
		}
	})
}

func TestProgressIsSafeForConcurrentUse(t *testing.T) {
	s := newScreen(80, 24)
	p := progress.New(s, progress.Options{Format: progress.Live, Size: s.size})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			name := fmt.Sprint("cell-", i)
			for range 50 {
				p.Start(name, "build")
				p.Line(name, "cc")
				p.Note("n")
				p.Done(name, "build", time.Second, false, nil)
			}
		})
	}
	all.Wait()
	p.Close()
	check.Same(t, "finished steps", 400, strings.Count(s.String(), "✓"))
}

func TestDetect(t *testing.T) {
	for _, c := range []struct {
		file, env string
		format    progress.Format
		colour    bool
	}{
		{"/dev/ptmx", "TERM=xterm", progress.Live, true},
		{"/dev/ptmx", "TERM=xterm GITHUB_ACTIONS=false", progress.Live, true},
		{"/dev/ptmx", "TERM=xterm GITHUB_ACTIONS=true", progress.GitHub, true},
		{"/dev/ptmx", "TERM=xterm NO_COLOR=1", progress.Live, false},
		{"/dev/ptmx", "TERM=dumb", progress.Plain, true},
		{"/dev/ptmx", "", progress.Plain, true},
		{os.DevNull, "TERM=xterm", progress.Plain, true},
	} {
		f, err := os.OpenFile(c.file, os.O_RDWR, 0)
		if err != nil {
			t.Skip(err)
		}
		defer f.Close()
		for _, name := range []string{"TERM", "GITHUB_ACTIONS", "NO_COLOR"} {
			t.Setenv(name, "")
		}
		for pair := range strings.FieldsSeq(c.env) {
			name, value, _ := strings.Cut(pair, "=")
			t.Setenv(name, value)
		}
		got, err := progress.Detect(f, progress.Auto)
		check.That(t, err == nil && got.Format == c.format && got.Colour == c.colour, "%s with %q: got %+v, %v", c.file, c.env, got, err)
		// A new pseudo-terminal has no size.
		check.That(t, c.format != progress.Live || term.Width(f) == 80, "%s: got width %d, want 80", c.file, term.Width(f))
	}
	t.Setenv("TERM", "xterm")
	_, err := progress.Detect(&bytes.Buffer{}, progress.Live)
	check.Fails(t, err, "not a terminal", "a buffer")
}
