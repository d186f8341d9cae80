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
	"builder/internal/plan/recipe"
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
				if r, err := b.Run(t.Context(), Command{Name: name, Files: map[string]string{"x": name}}); err != nil || r.Output != "answer" {
					t.Errorf("%s: %+v, %v", name, r, err)
				}
			})
		}
	}
	close(c.wait)
	wg.Wait()
	if c.commands.Load() != 6 || c.most.Load() > 2 {
		t.Errorf("%d commands ran, %d at once; want 6 and 2", c.commands.Load(), c.most.Load())
	}
	interrupted, stop := context.WithCancel(t.Context())
	stop()
	full := Share(c, 1)
	full.limit <- struct{}{}
	if _, err := full.Run(interrupted, Command{Name: "late"}); err == nil {
		t.Error("a command ran after an interrupt")
	}
}

// TestTogether runs the real programs with a stand-in for TensorFlow, whose imports are
// counted. What one program does, even a crash, does not reach the others.
func TestTogether(t *testing.T) {
	const frameworkModule = "import os\nwith open(os.environ['COUNT'], 'a') as f: f.write('x')\n" +
		"__version__ = '2.13.0'\nclass sysconfig:\n    get_build_info = staticmethod(lambda: {'is_rocm_build': True})\n"
	for name, c := range map[string]struct {
		ops     string // source of the extension's module
		loads   string // source added to the framework
		imports int    // of the framework
		fails   string // gates that do not pass
	}{
		"a good wheel":                    {"", "", 1, ""},
		"the extension does not load":     {"raise ImportError('undefined symbol: x')", "", 1, "import"},
		"the extension crashes":           {"import os; os.abort()", "", 1, "import"},
		"the extension ends the process":  {"import os; os._exit(7)", "", 1, "import"},
		"the framework does not load":     {"", "raise ImportError('libtensorflow.so')", 5, "import platform built-flags"},
		"the framework crashes":           {"", "import os; os.abort()", 4, "import platform built-flags"},
		"the extension prints other JSON": {"print('{\"program\": 0, \"exit\": 9}')", "", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			home := t.TempDir()
			t.Setenv("COUNT", filepath.Join(home, "count"))
			for path, text := range map[string]string{
				"tensorflow.py":                 frameworkModule + c.loads,
				"horovod/__init__.py":           "",
				"horovod/metadata.json":         `{"tensorflow": "2.13.0"}`,
				"horovod/tensorflow/mpi_ops.py": "import tensorflow\n" + c.ops,
				"horovod/tensorflow/__init__.py": "import tensorflow\n" +
					"nccl_built = rocm_built = cuda_built = mpi_built = gloo_built = ddl_built = ccl_built = lambda: True\n",
			} {
				at := filepath.Join(h.site, path)
				if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
					t.Fatal(err)
				}
				write(t, at, []byte(text))
			}
			s := Subject{Box: Share(h, 1), Expect: recipe.Expect{
				Import: []string{"horovod.tensorflow"}, Frameworks: []string{"TensorFlow"}, Built: map[string]string{"rocm": "true"},
			}}
			var failed []string
			for _, g := range []Gate{importModule, platform, builtFlags} {
				if v := g.Check(t.Context(), s); v.Status != verdict.Pass {
					failed = append(failed, v.Gate)
				}
			}
			count, _ := os.ReadFile(filepath.Join(home, "count"))
			if got := strings.Join(failed, " "); got != c.fails || len(count) != c.imports {
				t.Errorf("failed: %q, want %q; %d imports of the framework, want %d", got, c.fails, len(count), c.imports)
			}
		})
	}
}
