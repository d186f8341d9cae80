package native

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestBound(t *testing.T) {
	for cache, want := range map[int64]string{
		0:    "",
		40e9: "--oci-worker-gc-keepstorage 2000,4000,20000",
	} {
		check.Same(t, fmt.Sprintf("bound of %d", cache), want, strings.Join(Bound(cache), " "))
	}
	e := New(t.TempDir(), t.Logf, Options{Cache: 40e9})
	args := e.command().Args
	check.That(t, slices.Contains(args, "2000,4000,20000"), "the engine is started without its bound: %q", args)
}

func TestEmpty(t *testing.T) {
	e := New(t.TempDir(), t.Logf, Options{})
	err := e.Empty(t.Context())
	check.That(t, err == nil, "nothing there: %v", err)
	file := e.path("state", "worker", "snapshot")
	must.Succeed(t, os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, make([]byte, 100_000), 0o644))
	must.Succeed(t, os.Link(file, file+"-again"))
	if n, err := DiskUsage(t.Context(), e.path("state")); err != nil || n < 100_000 || n > 150_000 {
		t.Errorf("the cache has %d, %v", n, err)
	}
	err = e.Empty(t.Context())
	check.That(t, err == nil && !exists(e.path("state")), "the cache is still there: %v", err)
	must.Succeed(t, os.MkdirAll(e.aside(), 0o755))
	err = e.Empty(t.Context())
	check.That(t, err == nil && !exists(e.aside()), "the cache that was set aside is still there: %v", err)
}

// The image archive has the files that docker and podman require, and its bytes depend
// only on the members.
func TestWriteImage(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	must.Succeed(t, os.WriteFile(program, []byte("program"), 0o700))
	members := map[string]member{
		"bin": {link: "usr/bin"}, "usr/bin/engine": {from: program, mode: 0o755}, "etc/passwd": {text: "root", mode: 0o644},
	}
	var images [][]byte
	for _, name := range []string{"a.tar", "b.tar"} {
		must.Succeed(t, writeImage(filepath.Join(dir, name), members))
		data, err := os.ReadFile(filepath.Join(dir, name))
		must.Succeed(t, err)
		images = append(images, data)
	}
	check.That(t, bytes.Equal(images[0], images[1]), "two images of the same files differ")
	outer := untar(t, images[0])
	var list []struct {
		Config           string
		RepoTags, Layers []string
	}
	err := json.Unmarshal([]byte(outer["manifest.json"]), &list)
	must.Hold(t, err == nil && len(list) == 1 && list[0].RepoTags[0] == ImageName, "%v: %s", err, outer["manifest.json"])
	layer := outer[list[0].Layers[0]]
	sum := sha256.Sum256([]byte(layer))
	settings := outer[list[0].Config]
	check.That(t, strings.Contains(settings, hex.EncodeToString(sum[:])), "the layer is %x, and the settings say %s", sum, settings)
	inner := untar(t, []byte(layer))
	check.That(t, inner["usr/bin/engine"] == "program" && inner["bin"] == "-> usr/bin" && inner["etc/passwd"] == "root",
		"the layer holds %q", inner)
	if left, _ := filepath.Glob(filepath.Join(dir, ".*-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func untar(t *testing.T, data []byte) map[string]string {
	t.Helper()
	files := map[string]string{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		must.Succeed(t, err)
		text, err := io.ReadAll(r)
		must.Succeed(t, err)
		check.That(t, h.ModTime.Unix() <= 0 && h.Uid == 0, "%s has time %v and owner %d", h.Name, h.ModTime, h.Uid)
		files[h.Name] = string(text)
		if h.Typeflag == tar.TypeSymlink {
			files[h.Name] = "-> " + h.Linkname
		}
	}
}
