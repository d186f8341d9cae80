package image_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"builder/internal/base/diag"
	"builder/internal/plan/image"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

const family = `images:
  - name: rocm-{{rocm}}
    summary: ROCm {{rocm}}
    registry: registry.example/rocm:{{tag}}
    digest: "{{digest}}"
    python: /usr/bin/python3
    env: {PATH: "/opt/{{rocm}}/bin:/usr/bin"}
    provides:
      rocm: {is: "{{rocm}}", probe: "cat /opt/rocm/version"}
      rccl: {is: "{{rccl}}", probe: "cat /opt/rocm/rccl"}
    for:
      - {rocm: "6.1", tag: "6.1.2", rccl: "2.18.6", digest: ""}
      - {rocm: "7.0", tag: "7.0", rccl: "", digest: "sha256:` + "DIGEST" + `"}
`

func loadFamily(old, replaced string) ([]image.Image, error) {
	text := strings.Replace(family, "DIGEST", strings.Repeat("ab", 32), 1)
	return image.Load(fstest.MapFS{"rocm.yaml": {Data: []byte(strings.Replace(text, old, replaced, 1))}}, "images")
}

func TestOneImageForEachRow(t *testing.T) {
	all, err := loadFamily("", "")
	must.Hold(t, err == nil && len(all) == 2, "%d images, %v", len(all), err)
	a, b := all[0], all[1]
	check.That(t, a.Name == "rocm-6.1" && a.Registry == "registry.example/rocm:6.1.2" && a.Digest == "" && a.Env["PATH"] == "/opt/6.1/bin:/usr/bin",
		"got %+v", a)
	check.That(t, a.Facts()["rccl"] == "2.18.6" && b.Digest == "sha256:"+strings.Repeat("ab", 32), "got %+v and %+v", a, b)
	// A fact left empty is not stated, and rows share no data.
	_, stated := b.Provides["rccl"]
	check.That(t, !stated && b.Facts()["rocm"] == "7.0" && b.Env["PATH"] != a.Env["PATH"], "got %+v", b)
}

const debianFamily = `images:
  - name: "{{suite}}-c"
    summary: Debian
    debian:
      suites:
        - {name: "{{suite}}", components: [main, "{{more}}"]}
      packages: ["gcc-{{gcc}}"]
    python: /usr/bin/python3
    env: {PATH: /usr/bin}
    provides: {}
    for:
      - {suite: trixie, more: contrib, gcc: "14"}
      - {suite: sid, more: non-free, gcc: "15"}
`

func TestRowsNameSuites(t *testing.T) {
	all, err := image.Load(fstest.MapFS{"d.yaml": {Data: []byte(debianFamily)}}, "images")
	must.Hold(t, err == nil && len(all) == 2, "%d images, %v", len(all), err)
	for i, want := range []string{"trixie-c trixie main contrib gcc-14", "sid-c sid main non-free gcc-15"} {
		d := all[i].Debian
		check.Same(t, "Join", want, strings.Join(slices.Concat([]string{all[i].Name, d.Suites[0].Name}, d.Suites[0].Components, d.Packages), " "))
	}
	// Without rows a placeholder is no suite, and neither is a text with spaces.
	rows := strings.Index(debianFamily, "    for:")
	for _, text := range []string{debianFamily[:rows], strings.Replace(debianFamily, "suite: sid", `suite: "sid main"`, 1)} {
		_, err := image.Load(fstest.MapFS{"d.yaml": {Data: []byte(text)}}, "images")
		check.That(t, diag.CodeOf(err) == diag.Usage && strings.Contains(err.Error(), "images/d.yaml:2:5") && strings.Contains(err.Error(), "is not the name of a suite"),
			"got %v", err)
	}
}

func TestFaultsOfRows(t *testing.T) {
	for name, c := range map[string]struct{ old, replaced, want string }{
		"a name missing from all rows": {"{{tag}}", "{{gat}}", `unknown name "gat"`},
		"a name missing from one row":  {`tag: "7.0", `, "", `unknown name "tag"`},
		"an unused value":              {`tag: "7.0"`, `tag: "7.0", ubuntu: "22.04"`, `no text uses {{ubuntu}} of the row`},
		"two rows with one name":       {`rocm: "7.0"`, `rocm: "6.1"`, `image "rocm-6.1" is also in`},
		"an invalid digest":            {`digest: ""`, `digest: "sha256:1"`, "digest must be sha256: and 64"},
	} {
		_, err := loadFamily(c.old, c.replaced)
		check.That(t, diag.CodeOf(err) == diag.Usage && strings.Contains(err.Error(), c.want) && strings.Contains(err.Error(), "images/rocm.yaml"),
			"%s: got %v", name, err)
	}
}
