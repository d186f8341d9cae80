package gate

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/wheeltest"
)

// A pattern without a file may be wrong. The evidence then names the libraries of the
// wheel, and the remedy speaks of Horovod only if the recipe builds for a framework.
func TestMissingExtensionNamesTheLibraries(t *testing.T) {
	const speedups = "simplejson/_speedups.cpython-311-x86_64-linux-gnu.so"
	many := []string{"simplejson/versioned.so.2"}
	for i := range 6 {
		many = append(many, fmt.Sprintf("simplejson/%d.so", i))
	}
	for _, c := range []struct {
		libraries  []string
		frameworks []string
		says       string
	}{
		{[]string{speedups}, nil, "0 files match simplejson/speedups*.so, expected 1; the wheel holds " + speedups},
		{nil, nil, "0 files match simplejson/speedups*.so, expected 1; the wheel holds no library"},
		{many, []string{"tensorflow"}, "the wheel holds simplejson/versioned.so.2 simplejson/0.so simplejson/1.so simplejson/2.so simplejson/3.so and 2 more"},
	} {
		w := wheeltest.Wheel{Name: "simplejson-3.20.1-cp311-cp311-linux_x86_64.whl", Files: []wheeltest.File{{Name: "simplejson/__init__.py"}}}
		for _, name := range c.libraries {
			w.Files = append(w.Files, wheeltest.File{Name: name})
		}
		v := extensionPresent.Check(context.Background(), Subject{
			Artifact: w.Write(t), Expect: recipe.Expect{Extensions: []string{"simplejson/speedups*.so"}, Frameworks: c.frameworks},
		})
		check.That(t, strings.HasSuffix(v.Evidence, c.says), "evidence %q, want %q", v.Evidence, c.says)
		if !strings.Contains(v.Remedy, "the pattern in expect.extensions") || !strings.Contains(v.Remedy, "compiler or configure error") ||
			strings.Contains(v.Remedy, "Horovod") != (c.frameworks != nil) {
			t.Errorf("remedy %q", v.Remedy)
		}
	}
}
