package image_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"builder/internal/base/diag"
	"builder/internal/plan/image"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

const cpythonText = `cpythons:
  - version: 3.12.1
    maven: org/x/cpython.jar
    folder: org/x
    size: 26
    sha256: "` + sha + `"
    floor: "2.30"
`

const sha = "a135fcf4dc01adebf7ea439252276fc3196db80f7e0dd3da0b61f1ec489b68bd"

func TestCPythons(t *testing.T) {
	fsys := fstest.MapFS{"cpython.yaml": {Data: []byte(cpythonText)}}
	all, err := image.LoadCPythons(fsys, "images")
	must.Hold(t, err == nil && len(all) == 1, "%+v, %v", all, err)
	images, err := image.Load(fsys, "images")
	check.That(t, err == nil && len(images) == 0, "%+v, %v", images, err)
	c := all[0]
	check.Same(t, "places", strings.Join(c.URLs([]string{"https://a/m2/", "https://b"}), " "), "https://a/m2/org/x/cpython.jar https://b/org/x/cpython.jar")
	before := image.Image{Name: "i", Python: "/usr/bin/python3", Provides: map[string]image.Fact{"python": {Is: "3.11"}}, Site: true}
	after := before.With(c)
	check.That(t, after.Python == "/opt/cpython/bin/python3.12" && after.Facts()["python"] == "3.12" && !after.Site, "got %+v", after)
	check.Same(t, "the fact of the image", before.Facts()["python"], "3.11")
}

func TestFaultsOfCPythons(t *testing.T) {
	for name, c := range map[string]struct{ old, replaced, want string }{
		"no release":          {"3.12.1", `"3.12"`, "version is not a release such as 3.12.1"},
		"no place":            {"    maven: org/x/cpython.jar\n", "", "write exactly one of maven and url"},
		"two places":          {"    folder", "    url: https://h/p.tar.gz\n    folder", "write exactly one of maven and url"},
		"a path outside":      {"org/x/cpython.jar", "../cpython.jar", "maven is not the path of a .jar"},
		"plain http":          {"maven: org/x/cpython.jar", "url: http://h/p.tar.gz", "url is not the https address"},
		"a folder outside":    {"folder: org/x", "folder: ../x", "folder is not a folder"},
		"no digest":           {sha, "", "sha256 is missing"},
		"an image among them": {"cpythons:", "images: [{name: x, summary: y, registry: 'r/i:1', python: /p, env: {PATH: /bin}, provides: {}}]\ncpythons:", "images stand in another file"},
		"an unknown key":      {"folder:", "fodler:", "fodler"},
	} {
		_, err := image.LoadCPythons(fstest.MapFS{"cpython.yaml": {Data: []byte(strings.Replace(cpythonText, c.old, c.replaced, 1))}}, "images")
		check.That(t, diag.CodeOf(err) == diag.Usage && strings.Contains(err.Error(), c.want) && strings.Contains(err.Error(), "images/cpython.yaml"), "%s: got %v", name, err)
	}
	_, err := image.Load(fstest.MapFS{"a.yaml": {Data: []byte(cpythonText)}}, "images")
	check.That(t, err != nil && strings.Contains(err.Error(), "cpythons stand in cpython.yaml"), "got %v", err)
}
