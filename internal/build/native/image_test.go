package native

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// The image depends on its members only, and names the build of its programs.
func TestWriteImage(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	must.Succeed(t, os.WriteFile(program, []byte("program"), 0o700))
	members := map[string]member{"bin": {link: "usr/bin"}, "usr/bin/engine": {from: program}, "etc/passwd": {text: "root"}, "run": {}}
	one, two := filepath.Join(dir, "one.tar"), filepath.Join(dir, "two.tar")
	must.Succeed(t, writeImage(one, members, "0123"), writeImage(two, members, "0123"))
	first, err1 := os.ReadFile(one)
	second, err2 := os.ReadFile(two)
	check.That(t, errors.Join(err1, err2) == nil && bytes.Equal(first, second), "two images of the same files differ")
	image := must.Get(tarball.ImageFromPath(one, nil))(t)
	of, err := image.ConfigFile()
	must.Hold(t, err == nil && of.Config.Labels[buildLabel] == "0123", "%v: %+v", err, of)
	check.Same(t, "the content", map[string]string{
		"bin": "-> usr/bin", "etc": "/", "etc/passwd": "root", "run": "/", "usr": "/", "usr/bin": "/", "usr/bin/engine": "program",
	}, untar(t, mutate.Extract(image)))
	left, _ := filepath.Glob(filepath.Join(dir, ".*"))
	check.That(t, len(left) == 0, "left behind: %v", left)
	members["usr/bin/git"] = member{from: filepath.Join(dir, "missing")}
	check.Fails(t, writeImage(filepath.Join(dir, "three.tar"), members, "0123"), "usr/bin/git", "no such file")
}

func untar(t *testing.T, data io.ReadCloser) map[string]string {
	t.Helper()
	defer data.Close()
	files := map[string]string{}
	for r := tar.NewReader(data); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		must.Succeed(t, err)
		text := must.Get(io.ReadAll(r))(t)
		check.That(t, h.ModTime.Unix() <= 0 && h.Uid == 0 && h.Mode == 0o755, "%s has time %v, owner %d and mode %o", h.Name, h.ModTime, h.Uid, h.Mode)
		switch files[h.Name] = string(text); h.Typeflag {
		case tar.TypeSymlink:
			files[h.Name] = "-> " + h.Linkname
		case tar.TypeDir:
			files[h.Name] = "/"
		}
	}
}
