package catalogue

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/gates/gate"
	"builder/internal/input/pypi"
	"builder/internal/plan/lock"
	"builder/internal/plan/patch"
	"builder/internal/plan/recipe"
	"builder/test/kit/must"
)

// TestUnaccepted gives cells of a site whose parts take the place of built-in ones, and
// cells whose parts do not.
func TestUnaccepted(t *testing.T) {
	cat, site := ofSite(t)
	horovod := lock.Entry{Recipe: "horovod", Source: lock.SourcePin{File: pypi.File{Project: "horovod"}}, Patches: []patch.Patch{{Name: "findhip"}, {Name: "ours"}}}
	copied := horovod
	copied.Patches = cat.Patches["horovod"][:1]
	own := lock.Entry{Recipe: "own", Source: lock.SourcePin{File: pypi.File{Project: "own"}}, Expect: recipe.Expect{Packages: []string{"own"}}}
	fork := own
	fork.Expect.Packages = []string{"horovod"}
	renamed := own
	renamed.Source.Project = "nccl"
	onImage := own
	onImage.Image.Pin.Name = "debian-trixie"
	for _, c := range []struct {
		name   string
		bring  map[string]string
		cell   lock.Entry
		accept []string
		want   string // parts in the error; "" for none
	}{
		{"nothing of the site", nil, horovod, nil, ""},
		{"a recipe of its own", map[string]string{"recipe own": "of the site"}, own, nil, ""},
		{"a patch replaced", map[string]string{"patch horovod/findhip": replacesBuiltIn}, horovod, nil, "patch horovod/findhip"},
		{"a patch added to a built-in recipe", map[string]string{"patch horovod/ours": "of the site"}, horovod, nil, "patch horovod/ours"},
		{"a copy of builder's patch", map[string]string{"patch horovod/" + copied.Patches[0].Name: replacesBuiltIn}, copied, nil, ""},
		{"another patch than the cell's", map[string]string{"patch horovod/other": "of the site"}, horovod, nil, ""},
		{"a built-in image replaced below an own recipe", map[string]string{"recipe own": "of the site", "image debian-trixie": replacesBuiltIn}, onImage, nil, "image debian-trixie, recipe own"},
		{"the package of a built-in recipe", map[string]string{"recipe own": "of the site"}, fork, nil, "recipe own"},
		{"the source of a built-in recipe", map[string]string{"recipe own": "of the site"}, renamed, nil, "recipe own"},
		{"accepted", map[string]string{"patch horovod/findhip": replacesBuiltIn}, horovod, []string{"patch horovod/findhip"}, ""},
		{"one of two accepted", map[string]string{"patch horovod/findhip": replacesBuiltIn, "patch horovod/ours": "of the site"}, horovod, []string{"patch horovod/findhip"}, "patch horovod/ours"},
		{"all accepted", map[string]string{"patch horovod/findhip": replacesBuiltIn}, horovod, []string{"all"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			cat.Site, cat.bring = site, c.bring
			refused(t, Locks{Catalogue: cat}.Unaccepted([]lock.Entry{c.cell}, c.accept), c.want)
		})
	}
}

// ofSite returns the built-in data, and the directory of a site without a file.
func ofSite(t *testing.T) (Catalogue, string) {
	t.Helper()
	cat, err := Load("", Names{Gates: gate.Promises()})
	site := t.TempDir()
	must.Succeed(t, err, os.Mkdir(filepath.Join(site, "recipes"), 0o700))
	return cat, site
}

// refused checks the error for the parts of a site, or that there is none.
func refused(t *testing.T, err error, parts string) {
	t.Helper()
	switch {
	case parts == "" && err != nil:
		t.Errorf("refused: %v", err)
	case parts != "" && (err == nil || !strings.HasSuffix(err.Error(), "with: "+parts)):
		t.Errorf("got %v, want %s", err, parts)
	}
	for _, e := range diag.All(err) {
		if !strings.Contains(e.Hint, "--accept") {
			t.Errorf("the hint is %q", e.Hint)
		}
	}
}

// TestUnacceptedLock gives a site's lock that moves a built-in pin, repeats it, or adds
// one.
func TestUnacceptedLock(t *testing.T) {
	cat, site := ofSite(t)
	for _, c := range []struct {
		name, digest, project, want string
	}{
		{"moved", strings.Repeat("0", 64), "", "lock horovod"},
		{"repeated", "", "", ""},
		{"added", strings.Repeat("0", 64), "other", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			cat.Site = site
			l := Locks{Catalogue: cat}
			own, err := l.built("horovod")
			must.Succeed(t, err)
			pin := own.Sources[0]
			own.Images, own.Python, own.Sources = nil, nil, []lock.SourcePin{pin}
			if c.digest != "" {
				own.Sources[0].SHA256 = c.digest
			}
			if c.project != "" {
				own.Sources[0].Project = c.project
			}
			_, err = lock.Write(filepath.Join(site, "recipes", "horovod.lock.json"), own)
			must.Succeed(t, err)
			refused(t, l.Unaccepted([]lock.Entry{{Recipe: "horovod"}}, nil), c.want)
		})
	}
}
