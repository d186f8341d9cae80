package e2e

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"builder/test/kit/must"
	"builder/test/kit/ocitest"
)

// venvImage builds on an image of a registry whose interpreter is a virtual environment
// at /opt/venv, where builder makes its own, as in AMD's PyTorch images for ROCm 7.0. The
// build and the gates use the packages of the image.
func venvImage(b *tool) {
	site, _ := b.steady()
	steady := []string{"steady", "--recipes", site, "--turn", "1", "--pace", "swift"}
	bare := filepath.Join(b.t.TempDir(), "bare")
	b.want(0, slices.Concat([]string{"run"}, steady, []string{"--out", "out-bare"})...)
	b.want(0, "debug", "shell", "steady", "--out", "out-bare", "--to", bare)
	root := filepath.Join(bare, "rootfs")
	for _, dir := range []string{"build", "opt/builder"} {
		must.Succeed(b.t, os.RemoveAll(filepath.Join(root, dir)))
	}
	registry := httptest.NewServer(ocitest.New(true))
	defer registry.Close()
	digest := b.pushed(root, registry.URL+"/v2/small/python", "1")

	image := fmt.Sprintf(`images:
  - name: steady
    summary: Debian 13 with a virtual environment of Python 3.11
    registry: %s/small/python:1
    digest: %q
    python: /opt/venv/bin/python
    site: true
    env: {PATH: /opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}
    provides:
      python: {is: "3.11", probe: "/opt/venv/bin/python -c 'import sys; print(\"%%d.%%d\" %% sys.version_info[:2])'"}
`, strings.TrimPrefix(registry.URL, "http://"), digest)
	path := filepath.Join(site, "recipes", "steady.yaml")
	recipe := contentOf(b, path)
	recipe = strings.Replace(recipe, "  pip wheel", "  python -m pip wheel", 1)
	recipe = strings.Replace(recipe, `build: ["pip==24.0", "wheel==0.45.1", "setuptools==69.5.1"]`, "build: []", 1)
	recipe = strings.Replace(recipe, "\nexpect:\n", `
expect:
  behaviour:
    - name: packages
      about: environment of the artifact, and of a package of the image
      run: |
        exec python -c 'import json, markupsafe, setuptools, sys; print(json.dumps({"own": str(markupsafe.__file__.startswith(sys.prefix)), "image": setuptools.__file__.split("/lib/")[0]}))'
      says: {own: "True", image: /opt/venv}
`, 1)
	for name, text := range map[string]string{path: recipe, filepath.Join(site, "images", "steady.yaml"): image} {
		must.Succeed(b.t, os.WriteFile(name, []byte(text), 0o644))
	}
	b.want(0, slices.Concat([]string{"run"}, steady, []string{"--out", "out-venv"})...)
	b.evidence(b.runJSON("out-venv").Cells[0].Verdicts)
}
