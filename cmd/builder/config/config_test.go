package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"builder/cmd/builder/config"
	"builder/internal/base/diag"
	"builder/test/kit/check"
	"builder/test/kit/golden"
	"builder/test/kit/must"
	"builder/test/kit/recipetest"
)

// environment is a map of environment variables.
type environment map[string]string

func (e environment) lookup(name string) (string, bool) {
	value, ok := e[name]
	return value, ok
}

// host writes files below a temporary directory and returns a host with the working
// directory dir inside it.
func host(t *testing.T, dir string, files map[string]string) (config.Host, string) {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
	}
	work := filepath.Join(root, dir)
	must.Succeed(t, os.MkdirAll(work, 0o755))
	return config.Host{
		Dir: work, User: filepath.Join(root, "own"), Home: filepath.Join(root, "me"), Lookup: environment{}.lookup,
	}, root
}

func TestNearestCountsFirst(t *testing.T) {
	h, root := host(t, "a/b/c", map[string]string{
		"builder.yaml":             "jobs: 1\n", // not the nearest
		"a/builder.yaml":           "jobs: 2\n",
		"own/builder/builder.yaml": "jobs: 3\nmemory: 8GB\n",
	})
	c, err := config.Load(h)
	must.Succeed(t, err)
	want := []string{filepath.Join(root, "a/builder.yaml"), filepath.Join(root, "own/builder/builder.yaml")}
	check.That(t, slices.Equal(c.Files, want), "read %v, want %v", c.Files, want)
	if jobs, _ := c.Setting("jobs"); jobs.Value != "2" || jobs.Pos.Line != 1 || jobs.Pos.File != want[0] {
		t.Errorf("jobs is %+v", jobs)
	}
	if memory, _ := c.Setting("memory"); memory.Value != "8GB" || memory.Pos.File != want[1] {
		t.Errorf("memory is %+v", memory)
	}
}

func TestShown(t *testing.T) {
	h, _ := host(t, "a", map[string]string{"a/builder.yaml": "out: state\njobs: 2\nlocked: false\nccache: true\n"})
	c, err := config.Load(h)
	must.Succeed(t, err)
	got := map[string]config.Shown{}
	for _, s := range c.Shown(environment{"BUILDER_JOBS": "5", "BUILDER_ENGINE": ""}.lookup) {
		got[s.Key] = s
	}
	for key, want := range map[string]struct{ value, origin string }{
		"out":    {"state", config.FromFile},
		"jobs":   {"5", config.FromVariable},
		"engine": {"", config.FromDefault}, // an empty variable
		"locked": {"false", config.FromFile},
		"memory": {"", config.FromDefault},
	} {
		if e := got[key]; e.Value != want.value || e.Origin != want.origin {
			t.Errorf("%s is %q of %s, want %q of %s", key, e.Value, e.Origin, want.value, want.origin)
		}
	}
	check.That(t, len(got) == len(config.Keys()), "%d settings of %d keys", len(got), len(config.Keys()))
}

func TestPathsMeanTheSameFromEverywhere(t *testing.T) {
	h, root := host(t, "a/work", map[string]string{
		"a/named.yaml": "out: work/out\ntrust: [keys/a.pub, ~/b.pub, /c.pub, ../d.pub]\nfrom: [\"file:wheels\", \"file:/srv\", \"oci://h/r\", \"https://h/simple\", \"file:///x\"]\nmirror-debian: [\"file:deb\"]\nmirror-source: [\"a=src/a.git\", \"b=https://h/b.git\", \"c=/c\"]\n",
	})
	h.Lookup = environment{config.Override: "../named.yaml"}.lookup
	c, err := config.Load(h)
	must.Succeed(t, err)
	for key, want := range map[string][]string{
		"trust":         {root + "/a/keys/a.pub", root + "/me/b.pub", "/c.pub", root + "/d.pub"},
		"from":          {"file:" + root + "/a/wheels", "file:/srv", "oci://h/r", "https://h/simple", "file:///x"},
		"mirror-debian": {"file:" + root + "/a/deb"},
		"mirror-source": {"a=" + root + "/a/src/a.git", "b=https://h/b.git", "c=/c"},
		"out":           {"out"}, // below the working directory: relative to it
	} {
		if s, _ := c.Setting(key); s.Value != strings.Join(want, ",") {
			t.Errorf("%s is %s", key, s.Value)
		}
	}
}

func TestOverride(t *testing.T) {
	h, root := host(t, "a", map[string]string{"a/builder.yaml": "jobs: 2\n", "other.yaml": "jobs: 7\n"})
	h.Lookup = environment{config.Override: "../other.yaml"}.lookup
	c, err := config.Load(h)
	if s, _ := c.Setting("jobs"); err != nil || s.Value != "7" || !slices.Equal(c.Files, []string{root + "/other.yaml"}) {
		t.Errorf("got %+v, %v", c, err)
	}
	h.Lookup = environment{config.Override: ""}.lookup
	if c, err = config.Load(h); err != nil || len(c.Files) > 0 || len(c.Settings) > 0 {
		t.Errorf("no file is wanted: got %+v, %v", c, err)
	}
	h.Lookup = environment{config.Override: "gone.yaml"}.lookup
	if _, err = config.Load(h); diag.CodeOf(err) != diag.Usage {
		t.Errorf("a file that is named and lacks: %v", err)
	}
}

func TestNothingIsWritten(t *testing.T) {
	for _, text := range []string{"", "\n", "# jobs: 2\n\n  # more\n"} {
		h, _ := host(t, ".", map[string]string{"builder.yaml": text})
		if c, err := config.Load(h); err != nil || len(c.Settings) > 0 {
			t.Errorf("%q: got %+v, %v", text, c, err)
		}
	}
}

func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		"jbos: 2\n":                                  `builder.yaml:1:1: unknown key "jbos"`,
		"jobs: 0\n":                                  "builder.yaml:1:7: jobs: 0 is less than 1",
		"memory: much\n":                             `"much" is not a size`,
		"engine-patience: soon\n":                    `"soon" is not a time`,
		"engine-cache: 200%\n":                       `"200%" is not a share`,
		"engine-cache: much\n":                       "is not a size such as 40GB or a share",
		"trust: [\"a,b\"]\n":                         "a value cannot have a comma",
		"key: \"-----BEGIN PRIVATE KEY-----\"\n":     "looks like a secret",
		"engine: \"tcp://me:hush@host:1\"\n":         "looks like a secret",
		"from: [\"https://host/simple?key=hush\"]\n": "looks like a secret",
		"mirror-debian: [\"http://u:hush@h\"]\n":     "looks like a secret",
		"home: \"\"\n":                               "the value is empty",
		strings.Repeat("# x\n", 20000):               "larger than",
	} {
		h, _ := host(t, ".", map[string]string{"builder.yaml": text})
		_, err := config.Load(h)
		if err == nil || !strings.Contains(err.Error()+diag.All(err)[0].Hint, want) || strings.Contains(err.Error(), "hush") || diag.CodeOf(err) != diag.Usage {
			t.Errorf("%.40q: got %v, want %q", text, err, want)
		}
	}
}

// values holds one value of each form for a file of settings.
var values = map[string]string{
	"home": ".b", "recipes": "site", "out": "results", "jobs": "2", "memory": "8GB", "tests": "full", "progress": "plain",
	"fail-fast": "true", "locked": "true", "offline": "true", "ccache": "true", "step-limit": "1h",
}

// A checkout must not choose programs, keys, addresses and places: every key that is not
// listed as harmless is refused in a file that was found, whichever keys there are.
func TestAFoundFileDecidesNothingThatMatters(t *testing.T) {
	harmless := []string{"recipes", "out", "jobs", "memory", "fail-fast", "locked", "offline", "step-limit", "tests", "ccache", "progress"}
	check.Same(t, "a found file may set", harmless, config.FoundKeys())
	for _, key := range config.Keys() {
		value := values[key.Name]
		switch {
		case value != "":
		case strings.HasPrefix(key.Form, "list"):
			value = "[a=x]"
		case key.Form == "true or false":
			value = "true"
		case key.Form == "time":
			value = "1h"
		case key.Form == "size or share":
			value = "1GB"
		default:
			value = "x"
		}
		text := fmt.Sprintf("%s: %s\n", key.Name, value)
		h, _ := host(t, "a", map[string]string{"a/builder.yaml": text})
		_, err := config.Load(h)
		if slices.Contains(harmless, key.Name) {
			check.That(t, err == nil, "%s: %v", text, err)
			continue
		}
		hint := config.Variable(key.Name)
		if errs := diag.All(err); len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), "builder.yaml:1:") || !strings.Contains(errs[0].Error(), key.Name+": a file in or above the working directory cannot set this key") || !strings.Contains(errs[0].Hint, hint) {
			t.Errorf("%s: got %v", text, err)
		}
		h.Lookup = environment{config.Override: "builder.yaml"}.lookup
		if c, err := config.Load(h); err != nil || len(c.Settings) != 1 {
			t.Errorf("%s, in a file that the user names: %+v, %v", text, c, err)
		}
		h, _ = host(t, "b", map[string]string{"own/builder/builder.yaml": text})
		if c, err := config.Load(h); err != nil || len(c.Settings) != 1 {
			t.Errorf("%s, in the user's own file: %+v, %v", text, c, err)
		}
	}
}

// A checkout names only directories below its file, also through a link.
func TestAFoundFileStaysInItsDirectory(t *testing.T) {
	for value, want := range map[string]string{
		"results": "", "./a/b": "", ".": "", "near": "",
		"../results": "is outside", "/srv": "is outside", "~/Documents": "is outside", "a/../../x": "is outside",
		"far": "points outside", "far/new": "points outside", "file/new": "not a directory",
	} {
		h, root := host(t, "a/deep", map[string]string{"a/builder.yaml": "out: " + value + "\nrecipes: " + value + "\n", "a/file": "", "a/real/x": ""})
		must.Succeed(t, os.Symlink(t.TempDir(), root+"/a/far"), os.Symlink("real", root+"/a/near"))
		_, err := config.Load(h)
		if errs := diag.All(err); want == "" && err != nil || want != "" && (len(errs) != 2 || !strings.Contains(errs[0].Error(), want)) {
			t.Errorf("%s: got %v", value, err)
		}
	}
}

func TestEveryFaultOfEveryFileAtOnce(t *testing.T) {
	h, _ := host(t, ".", map[string]string{"builder.yaml": "jbos: 2\nmemory: x\n", "own/builder/builder.yaml": "engin: x\n"})
	_, err := config.Load(h)
	errs := diag.All(err)
	check.That(t, len(errs) == 3 && strings.Contains(errs[2].Hint, `"engine"`), "got %v", err)
}

// In a world-writable directory another user's file is not read. Only root can create
// such a file in a test.
func TestPlanted(t *testing.T) {
	h, root := host(t, "tmp/mine", map[string]string{"tmp/builder.yaml": "jobs: 2\n"})
	must.Succeed(t, os.Chmod(filepath.Join(root, "tmp"), 0o777|os.ModeSticky))
	if c, err := config.Load(h); err != nil || len(c.Settings) != 1 {
		t.Errorf("the user's own file: got %+v, %v", c, err)
	}
	if os.Getuid() != 0 {
		t.Skip("only root can give a file to another user")
	}
	must.Succeed(t, os.Chown(filepath.Join(root, "tmp/builder.yaml"), 12345, 12345))
	if c, err := config.Load(h); err == nil || len(c.Settings) > 0 || !strings.Contains(err.Error(), "another user owns") {
		t.Errorf("a file of another user: got %+v, %v", c, err)
	}
}

// Every key has a description and is in the schema.
func TestKeys(t *testing.T) {
	schema := string(recipetest.Schema(&config.File{}))
	golden.CheckFile(t, "../../../docs/builder.schema.json", []byte(schema))
	for _, key := range config.Keys() {
		check.That(t, key.About != "" && key.Form != "" && strings.Contains(schema, key.About),
			"key %s is not explained: %+v", key.Name, key)
	}
	n := reflect.TypeFor[config.File]().NumField()
	check.That(t, len(config.Keys()) == n, "%d keys of %d fields", len(config.Keys()), n)
	check.Same(t, "the variable of engine-patience", "BUILDER_ENGINE_PATIENCE", config.Variable("engine-patience"))
}
