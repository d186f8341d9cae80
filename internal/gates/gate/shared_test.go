package gate

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"builder/internal/gates/verdict"
	"builder/test/kit/check"
)

// counted is a box that counts its commands and those that run at once.
type counted struct {
	commands *atomic.Int32
	now      *atomic.Int32
	most     *atomic.Int32
	wait     chan struct{}
}

func (c counted) Run(context.Context, Command) (Result, error) {
	c.commands.Add(1)
	now := c.now.Add(1)
	defer c.now.Add(-1)
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
	}
	<-c.wait
	return Result{Output: "answer"}, nil
}

// A shared box runs equal commands once, and no more at a time than its limit, together
// with the boxes beside it.
func TestShared(t *testing.T) {
	c := counted{&atomic.Int32{}, &atomic.Int32{}, &atomic.Int32{}, make(chan struct{})}
	box := Share(c, 2)
	beside := box.Beside(c)
	var wg sync.WaitGroup
	for _, name := range []string{"a", "b", "a", "c", "b"} {
		for _, b := range []Box{box, beside} {
			wg.Go(func() {
				r, err := b.Run(t.Context(), Command{Name: name, Files: map[string]string{"x": name}})
				check.That(t, err == nil && r.Output == "answer", "%s: %+v, %v", name, r, err)
			})
		}
	}
	close(c.wait)
	wg.Wait()
	check.That(t, c.commands.Load() == 6 && c.most.Load() <= 2,
		"%d commands ran, %d at once; want 6 and 2", c.commands.Load(), c.most.Load())
	interrupted, stop := context.WithCancel(t.Context())
	stop()
	full := Share(c, 1)
	full.limit <- struct{}{}
	_, err := full.Run(interrupted, Command{Name: "late"})
	check.That(t, err != nil, "a command ran after an interrupt")
}

// One process loads the frameworks for the questions and the ranks of all gates: its imports are
// counted. What one question does, even a crash, does not reach the others.
func TestQuestionsShareTheFramework(t *testing.T) {
	const framework = "import os\nwith open(os.environ['COUNT'], 'a') as f: f.write('x')\nGOOD\nclass version:\n    hip, cuda = None, '12.4'\n"
	for name, c := range map[string]struct {
		ops     string // source of the extension's module
		loads   string // source added to the framework
		imports int    // of the framework
		fails   string // gates that do not pass
	}{
		"a good wheel":                    {"GOOD", "", 1, ""},
		"the extension does not load":     {"raise ImportError('undefined symbol: x')", "", 1, "import built-flags"},
		"the extension crashes":           {"import os; os.abort()", "", 1, "import built-flags"},
		"the extension ends the process":  {"import os; os._exit(7)", "", 1, "import built-flags"},
		"the framework does not load":     {"GOOD", "raise ImportError('libtorch.so')", 7, "import platform built-flags"},
		"the framework crashes":           {"GOOD", "import os; os.abort()", 7, "import platform built-flags"},
		"the extension prints other JSON": {"GOOD\nprint('{\"answers\": [], \"nonce\": \"\"}')", "", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			count := filepath.Join(t.TempDir(), "count")
			t.Setenv("COUNT", count)
			s := onThisHost(t, map[string]string{"torch.py": framework + c.loads, "horovod/torch/mpi_ops.py": "import torch\n" + c.ops})
			s.Box = Share(s.Box, 1)
			write(t, filepath.Join(siteOf(s), "horovod/metadata.json"), []byte(`{"pytorch": "2.6.0"}`))
			var failed []string
			for _, g := range []Gate{importModule, platform, builtFlags} {
				if v := g.Check(t.Context(), s); v.Status != verdict.Pass {
					failed = append(failed, v.Gate)
				}
			}
			imports, _ := os.ReadFile(count)
			if got := strings.Join(failed, " "); got != c.fails || len(imports) != c.imports {
				t.Errorf("failed: %q, want %q; %d imports of the framework, want %d", got, c.fails, len(imports), c.imports)
			}
		})
	}
}

// siteOf returns the directory of packages of a subject on this host.
func siteOf(s Subject) string {
	h, _ := s.Box.(*Shared).box.(host)
	return h.site
}
