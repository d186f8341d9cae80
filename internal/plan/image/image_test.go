package image_test

import (
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"builder/images"
	"builder/internal/base/diag"
	"builder/internal/plan/image"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

const (
	digest = "sha256:92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0"

	good = `images:
  - name: deb
    summary: a Debian
    debian:
      suites:
        - {name: trixie, components: [main]}
        - {name: bookworm, components: [main, contrib], priority: 100}
      packages: [g++, cmake]
    python: /usr/bin/python3
    setup: |
      ln -s a b
    env: {PATH: /usr/bin}
    provides:
      rocm: {is: "5.7", probe: "echo 5.7"}
      rocm-path: {is: /usr, probe: "echo /usr"}
  - name: reg
    summary: a registry's
    registry: registry.example:5000/dev/base:1.2
    digest: ` + digest + `
    python: /usr/bin/python3
    env: {PATH: /usr/bin}
    provides: {}
`
)

func files(texts map[string]string) fs.FS {
	fsys := fstest.MapFS{}
	for name, text := range texts {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

func TestLoad(t *testing.T) {
	got := must.Get(image.Load(files(map[string]string{"a.yaml": good, "schema.json": "{", "sub/b.yaml": "not read"}), "images"))(t)
	want := []image.Image{
		{
			Name: "deb", Summary: "a Debian", Python: "/usr/bin/python3", Setup: "ln -s a b\n", Env: map[string]string{"PATH": "/usr/bin"},
			Debian: &image.Debian{
				Suites: []image.Suite{
					{Name: "trixie", Components: []string{"main"}},
					{Name: "bookworm", Components: []string{"main", "contrib"}, Priority: 100},
				},
				Packages: []string{"g++", "cmake"},
			},
			Provides: map[string]image.Fact{
				"rocm": {Is: "5.7", Probe: "echo 5.7"}, "rocm-path": {Is: "/usr", Probe: "echo /usr"},
			},
		},
		{
			Name: "reg", Summary: "a registry's", Registry: "registry.example:5000/dev/base:1.2", Digest: digest,
			Python: "/usr/bin/python3", Env: map[string]string{"PATH": "/usr/bin"}, Provides: map[string]image.Fact{},
		},
	}
	check.Same(t, "images", want, got)
	none, err := image.Load(fstest.MapFS{}, "images")
	check.That(t, err == nil && none == nil, "an empty folder: %v, %v", none, err)
}

// Every error has a position in its file.
func TestLoadRefuses(t *testing.T) {
	change := func(old, fresh string) string {
		must.Hold(t, strings.Count(good, old) != 0, "%q is not in the example", old)
		return strings.Replace(good, old, fresh, 1)
	}
	for name, c := range map[string]struct{ text, want string }{
		"unknown key":             {change("setup:", "setpu:"), `images/a.yaml:10:5: unknown key "setpu"`},
		"no name":                 {change("name: deb", `name: ""`), `images/a.yaml:2:11: images.name is missing`},
		"no summary":              {change("    summary: a Debian\n", ""), `images/a.yaml:2:5: images.summary is missing`},
		"no facts":                {change("    provides: {}\n", ""), "images.provides is missing"},
		"suite of no name":        {change("{name: bookworm, ", "{"), "suites.name is missing"},
		"empty suite":             {change("[main]", "[]"), "suites.components is empty: write at least one"},
		"neither":                 {change("    registry: registry.example:5000/dev/base:1.2\n    digest: "+digest+"\n", ""), `images/a.yaml:16:5: image "reg": write exactly one of debian and registry`},
		"both":                    {change("    python:", "    registry: a/b:1\n    python:"), `images/a.yaml:2:5: image "deb": write exactly one of debian and registry`},
		"no suite":                {change("suites:\n        - {name: trixie, components: [main]}\n        - {name: bookworm, components: [main, contrib], priority: 100}", "suites: []"), "debian.suites is empty: write at least one"},
		"no tag":                  {change("base:1.2", "base"), `images/a.yaml:16:5: image "reg": registry has no tag`},
		"short digest":            {change(digest, digest[:70]), `image "reg": digest must be sha256: and 64 hexadecimal digits`},
		"digest of another image": {change("    python:", "    digest: "+digest+"\n    python:"), `image "deb": digest is set without registry`},
		"relative python":         {change("/usr/bin/python3", "python3"), `image "deb": python is not an absolute path`},
		"no PATH":                 {change("{PATH: /usr/bin}", "{LANG: C}"), `image "deb": env has no PATH`},
		"no probe":                {change(`, probe: "echo 5.7"`, ""), `image "deb": fact rocm needs both is and probe`},
		"fact for a shell":        {change("rocm:", `"$(reboot)":`), `image "deb": the name of a fact must be a word such as rocm-path, not "$(reboot)"`},
		"fact in braces":          {change("rocm:", `"a}}b":`), `image "deb": the name of a fact must be a word such as rocm-path, not "a}}b"`},
		"surrounding space":       {change(`"5.7"`, `"5.7 "`), `image "deb": fact rocm has white space around it`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := image.Load(files(map[string]string{"a.yaml": c.text}), "images")
			must.Hold(t, err != nil && strings.Contains(err.Error(), c.want), "got %v, want %s", err, c.want)
			for _, e := range diag.All(err) {
				check.That(t, e.Code == diag.Usage, "class %v: %v", e.Code, e)
			}
		})
	}
}

func TestLoadReportsAllFaultsOfAllFiles(t *testing.T) {
	bad := "images:\n  - {name: x, summary: y, python: python, provides: {}}\n"
	_, err := image.Load(files(map[string]string{"a.yaml": bad, "b.yaml": "images: [{titel: y}]\n", "c.yaml": good}), "images")
	var got []string
	for _, e := range diag.All(err) {
		got = append(got, e.Error())
	}
	want := []string{
		`images/a.yaml:2:5: image "x": env has no PATH: steps get only the variables of env`,
		`images/a.yaml:2:5: image "x": python is not an absolute path`,
		`images/a.yaml:2:5: image "x": write exactly one of debian and registry`,
		`images/b.yaml:1:11: unknown key "titel"`,
	}
	check.Same(t, "faults", want, got)
}

func TestLoadRefusesASecondImageOfAName(t *testing.T) {
	_, err := image.Load(files(map[string]string{"a.yaml": good, "b.yaml": good}), "images")
	if err == nil || !strings.Contains(err.Error(), `images/b.yaml: image "deb" is also in images/a.yaml`) ||
		!strings.Contains(err.Error(), `images/b.yaml: image "reg" is also in images/a.yaml`) {
		t.Errorf("got %v", err)
	}
}

func TestLoadReportsWhatCannotBeRead(t *testing.T) {
	fsys := fstest.MapFS{"a.yaml": &fstest.MapFile{Mode: fs.ModeDir | 0o755}}
	_, err := image.Load(fsys, "images")
	check.That(t, err != nil, "a folder is no catalogue")
}

func TestFacts(t *testing.T) {
	all := must.Get(image.Load(files(map[string]string{"a.yaml": good}), "images"))(t)
	facts := all[0].Facts()
	check.Same(t, "facts", map[string]string{"rocm": "5.7", "rocm-path": "/usr"}, facts)
	facts["rocm"] = "6.1"
	check.That(t, all[0].Provides["rocm"].Is == "5.7", "the image changed with its facts")
	none := (image.Image{}).Facts()
	check.That(t, none != nil && len(none) == 0, "facts of an image that states none: %v", none)
}

func TestFind(t *testing.T) {
	all := []image.Image{{Name: "debian-trixie"}, {Name: "debian-trixie-runtime"}}
	got, err := image.Find(all, "debian-trixie-runtime")
	check.That(t, err == nil && got.Name == "debian-trixie-runtime", "got %q, %v", got.Name, err)
	_, err = image.Find(all, "debian-trixy")
	check.That(t, diag.CodeOf(err) == diag.Usage && strings.HasPrefix(diag.All(err)[0].Hint, `did you mean "debian-trixie"?`), "got %v", err)
}

// The embedded images load, and each states the facts required for a build.
func TestEmbeddedImages(t *testing.T) {
	all := must.Get(image.Load(images.FS, "images"))(t)
	must.Hold(t, len(all) != 0, "there is none")
	for _, img := range all {
		check.That(t, img.Provides["python"].Is != "" && img.Provides["glibc"].Is != "", "%s states no Python or no glibc", img.Name)
		check.That(t, strings.Contains(img.Provides["python"].Probe, img.Python),
			"%s: the probe of Python asks another than %s", img.Name, img.Python)
		if img.Debian != nil {
			if names := img.Debian.Packages; len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
				t.Errorf("%s names a package twice: %v", img.Name, names)
			}
		}
	}
}

// A probe is inserted into $( ( ... ) ). One that breaks out would break the whole
// script.
func TestEmbeddedScriptsAreShell(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("needs sh")
	}
	all := must.Get(image.Load(images.FS, "images"))(t)
	for _, img := range all {
		scripts := map[string]string{"setup": img.Setup}
		for name, fact := range img.Provides {
			scripts["probe of "+name] = fmt.Sprintf("x=\"$( (%s) )\"\n", fact.Probe)
		}
		for name, script := range scripts {
			cmd := exec.Command(sh, "-n")
			cmd.Stdin = strings.NewReader(script)
			out, err := cmd.CombinedOutput()
			check.That(t, err == nil, "%s: %s: %v: %s", img.Name, name, err, out)
		}
	}
}
