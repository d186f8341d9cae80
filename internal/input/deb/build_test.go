package deb

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"time"

	"builder/test/kit/must"
	"builder/test/kit/packtest"
)

// The helpers of this file write the formats read by package deb.

// then is the modification time of every test file.
var then = time.Unix(1700000000, 0)

// item is one entry of a data archive. body is the content of a file.
type item struct {
	tar.Header
	body string
}

func file(name, body string) item {
	return item{tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644}, body}
}

func dir(name string) item {
	return item{tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755}, ""}
}

func symlink(name, to string) item {
	return item{tar.Header{Name: name, Linkname: to, Typeflag: tar.TypeSymlink, Mode: 0o777}, ""}
}

func hardLink(name, to string) item {
	return item{tar.Header{Name: name, Linkname: to, Typeflag: tar.TypeLink, Mode: 0o644}, ""}
}

func special(name string, kind byte) item {
	return item{tar.Header{Name: name, Typeflag: kind, Mode: 0o600, Devmajor: 1, Devminor: 3}, ""}
}

// data returns a data archive.
func data(t testing.TB, items ...item) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, i := range items {
		i.Size, i.ModTime = int64(len(i.body)), then
		must.Succeed(t, w.WriteHeader(&i.Header))
		must.Get(io.WriteString(w, i.body))(t)
	}
	must.Succeed(t, w.Close())
	return b.Bytes()
}

// part is one member of an ar archive.
type part struct{ name, body string }

func (p part) header() string {
	return fmt.Sprintf("%-16s%-12d%-6d%-6d%-8s%-10d`\n", p.name, then.Unix(), 0, 0, "100644", len(p.body))
}

// arOf returns an ar archive.
func arOf(parts ...part) []byte {
	archive := []byte("!<arch>\n")
	for _, p := range parts {
		archive = append(archive, p.header()+p.body...)
		if len(p.body)%2 == 1 {
			archive = append(archive, '\n')
		}
	}
	return archive
}

var format = part{"debian-binary", "2.0\n"}

// debOf returns a package. suffix names the compression of its data archive.
func debOf(t testing.TB, suffix string, plain []byte) []byte {
	t.Helper()
	return arOf(format, part{"control.tar.xz", "odd"}, part{"data.tar" + suffix, string(compressed(t, suffix, plain))})
}

func compressed(t testing.TB, suffix string, plain []byte) []byte {
	t.Helper()
	return packtest.Compress(t, "data.tar"+suffix, plain)
}

// locked writes a package to a file and returns its lock entry.
func locked(t testing.TB, name string, content []byte) Deb {
	t.Helper()
	path := must.File(t, name+"_1.0-1_amd64.deb", content)
	sum := sha256.Sum256(content)
	return Deb{Package{
		Name: name, Version: "1.0-1", Architecture: "amd64", Path: "pool/main/x/" + name + "/" + filepath.Base(path),
		Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]), Bootstrap: true,
	}, path}
}

// pack makes a package from entries.
func pack(t testing.TB, name string, items ...item) Deb {
	t.Helper()
	return locked(t, name, debOf(t, ".gz", data(t, items...)))
}
