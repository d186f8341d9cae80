package cpython_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/input/cpython"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// jar writes a .jar of files by name and returns its path.
func jar(t *testing.T, files ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range files {
		f := must.Get(w.Create(name))(t)
		must.Get(io.WriteString(f, "content of "+name))(t)
	}
	must.Succeed(t, w.Close())
	return must.File(t, "blob", b.Bytes())
}

// tarball writes a .tar.gz and returns its path.
func tarball(t *testing.T, headers ...tar.Header) string {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	w := tar.NewWriter(zipped)
	for _, h := range headers {
		must.Succeed(t, w.WriteHeader(&h))
		must.Get(io.CopyN(w, strings.NewReader(strings.Repeat("x", int(h.Size))), h.Size))(t)
	}
	must.Succeed(t, errors.Join(w.Close(), zipped.Close()))
	return must.File(t, "blob", b.Bytes())
}

// laid returns a line for each entry of the tar file that Write makes.
func laid(t *testing.T, archive, name, folder string) (string, error) {
	t.Helper()
	var b bytes.Buffer
	if err := cpython.Write(&b, archive, name, folder, "/opt/cpython"); err != nil {
		return "", err
	}
	var lines []string
	for r := tar.NewReader(&b); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return strings.Join(lines, "\n"), nil
		}
		must.Succeed(t, err)
		check.That(t, h.Uid == 0 && h.Gid == 0 && h.ModTime.Unix() == 0, "got %+v", h)
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %o %s", h.Name, h.Mode, h.Linkname)))
	}
}

func TestJar(t *testing.T) {
	path := jar(t, "META-INF/MANIFEST.MF", "a/b/bin/python3.12", "a/b/lib/python3.12/os.py", "a/b/lib/python3.12/lib-dynload/_ctypes.so", "a/b/libffi.so.7", "a/b/libpython3.12.so.1.0", "a/b/include/python3.12/Python.h")
	got := must.Get(laid(t, path, "c.jar", "a/b"))(t)
	check.Same(t, "the tar file", got, `opt/cpython/bin/python3.12 755
opt/cpython/lib/python3.12/os.py 644
opt/cpython/lib/python3.12/lib-dynload/_ctypes.so 755
opt/cpython/libffi.so.7 755
opt/cpython/libpython3.12.so.1.0 755
opt/cpython/include/python3.12/Python.h 644
opt/cpython/lib/python3.12/lib-dynload/libffi.so.7 755 ../../../libffi.so.7`)
}

func TestTarball(t *testing.T) {
	path := tarball(t,
		tar.Header{Name: "python/bin/", Typeflag: tar.TypeDir, Mode: 0o755},
		tar.Header{Name: "python/bin/python3.12", Mode: 0o4755, Size: 3, Uid: 1000},
		tar.Header{Name: "python/bin/python3", Typeflag: tar.TypeSymlink, Linkname: "python3.12"},
		tar.Header{Name: "other/file", Size: 1})
	got := must.Get(laid(t, path, "c.tar.gz", "python"))(t)
	check.Same(t, "the tar file", got, "opt/cpython/bin/python3.12 755\nopt/cpython/bin/python3 0 python3.12")
}

func TestHostileArchives(t *testing.T) {
	for name, c := range map[string]struct{ path, name, want string }{
		"a member outside": {jar(t, "a/b/bin/python", "a/b/../../../etc/passwd"), "c.jar", ""},
		"a backslash":      {jar(t, `a/b/bin\python`), "c.jar", "leads outside the archive"},
		"no such folder":   {jar(t, "x/y"), "c.jar", "it has no folder a/b"},
		"not a zip":        {tarball(t), "c.jar", "not a valid zip file"},
		"a device":         {tarball(t, tar.Header{Name: "a/b/null", Typeflag: tar.TypeChar}), "c.tar.gz", "neither a file nor a symbolic link"},
		"a truncated file": {jar(t), "c.tar.gz", "invalid header"},
		"a hard link":      {tarball(t, tar.Header{Name: "a/b/x", Typeflag: tar.TypeLink, Linkname: "y"}), "c.tar.gz", "neither a file"},
	} {
		got, err := laid(t, c.path, c.name, "a/b")
		if c.want == "" {
			check.That(t, err == nil && !strings.Contains(got, "passwd"), "%s: got %q, %v", name, got, err)
			continue
		}
		check.That(t, err != nil && strings.Contains(err.Error(), c.want), "%s: got %q, %v", name, got, err)
	}
}

func TestMavenRepositories(t *testing.T) {
	home, maven := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("MAVEN_HOME", maven)
	check.That(t, len(cpython.MavenRepositories()) == 0, "a repository without Maven")

	must.Succeed(t, os.MkdirAll(filepath.Join(maven, "lib"), 0o700))
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create("org/apache/maven/model/pom-4.0.0.xml")
	must.Succeed(t, err)
	_, err = io.WriteString(f, "<project><repositories><repository><id>central</id><url>https://maven.example/2</url></repository></repositories></project>")
	must.Succeed(t, errors.Join(err, w.Close()), os.WriteFile(filepath.Join(maven, "lib", "maven-model-builder-3.jar"), b.Bytes(), 0o600))
	check.Same(t, "built in", fmt.Sprint(cpython.MavenRepositories()), "[https://maven.example/2]")

	must.Succeed(t, os.MkdirAll(filepath.Join(home, ".m2"), 0o700))
	const settings = `<settings><mirrors>
	<mirror><mirrorOf>external:http:*</mirrorOf><url>http://blocked.example</url><blocked>true</blocked></mirror>
	<mirror><mirrorOf>*,!central</mirrorOf><url>https://others.example</url></mirror>
	<mirror><mirrorOf>central</mirrorOf><url> https://mirror.example/m </url></mirror>
	</mirrors></settings>`
	must.Succeed(t, os.WriteFile(filepath.Join(home, ".m2", "settings.xml"), []byte(settings), 0o600))
	check.Same(t, "settings", fmt.Sprint(cpython.MavenRepositories()), "[https://mirror.example/m]")
}
