package config_test

import (
	"os"
	"path/filepath"
	"reflect"
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

// A file beside the work is not read.
func TestOwnFile(t *testing.T) {
	h, root := host(t, "a/b/c", map[string]string{
		"a/builder.yaml":           "jobs: 2\n",
		"own/builder/builder.yaml": "jobs: 3\nmemory: 8GB\n",
	})
	c, err := config.Load(h)
	must.Succeed(t, err)
	if jobs, _ := c.Setting("jobs"); jobs.Value != "3" || jobs.Pos.Line != 1 || jobs.Pos.File != filepath.Join(root, "own/builder/builder.yaml") {
		t.Errorf("jobs is %+v", jobs)
	}
}

func TestShown(t *testing.T) {
	h, _ := host(t, "a", map[string]string{"own/builder/builder.yaml": "out: state\njobs: 2\nlocked: false\nccache: true\n"})
	c, err := config.Load(h)
	must.Succeed(t, err)
	got := map[string]config.Shown{}
	for _, s := range c.Shown(environment{"BUILDER_JOBS": "5", "BUILDER_ENGINE": ""}.lookup) {
		got[s.Key] = s
	}
	for key, want := range map[string]struct{ value, origin string }{
		"ccache": {"true", config.FromFile},
		"jobs":   {"5", config.FromVariable},
		"locked": {"false", config.FromFile},
	} {
		if e := got[key]; e.Value != want.value || e.Origin != want.origin {
			t.Errorf("%s is %q of %s, want %q of %s", key, e.Value, e.Origin, want.value, want.origin)
		}
	}
	check.That(t, len(got) == 4, "an empty variable or a default is a setting: %v", got)
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
	h, _ := host(t, "a", map[string]string{"own/builder/builder.yaml": "jobs: 2\n", "other.yaml": "jobs: 7\n"})
	h.Lookup = environment{config.Override: "../other.yaml"}.lookup
	c, err := config.Load(h)
	if s, _ := c.Setting("jobs"); err != nil || s.Value != "7" {
		t.Errorf("got %+v, %v", c, err)
	}
	h.Lookup = environment{config.Override: ""}.lookup
	if c, err = config.Load(h); err != nil || len(c.Settings) > 0 {
		t.Errorf("no file is wanted: got %+v, %v", c, err)
	}
	h.Lookup = environment{config.Override: "gone.yaml"}.lookup
	if _, err = config.Load(h); diag.CodeOf(err) != diag.Usage {
		t.Errorf("a file that is named and lacks: %v", err)
	}
}

func TestNothingIsWritten(t *testing.T) {
	for _, text := range []string{"", "\n", "# jobs: 2\n\n  # more\n"} {
		h, _ := host(t, "own/builder", map[string]string{"own/builder/builder.yaml": text})
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
		h, _ := host(t, "own/builder", map[string]string{"own/builder/builder.yaml": text})
		_, err := config.Load(h)
		if err == nil || !strings.Contains(err.Error()+diag.All(err)[0].Hint, want) || strings.Contains(err.Error(), "hush") || diag.CodeOf(err) != diag.Usage {
			t.Errorf("%.40q: got %v, want %q", text, err, want)
		}
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
