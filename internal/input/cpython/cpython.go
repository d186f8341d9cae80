// Package cpython reads archives of CPython: a .jar of a Maven repository or a .tar.gz
// such as python-build-standalone's.
package cpython

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"builder/internal/base/size"
)

// largest bounds an unpacked CPython. Those of 2026 have 100 to 400 MB.
const largest = 2 << 30

// Write writes the folder of an archive with this name as a tar file. Its content lies below dir,
// belongs to root, and has no times. A .jar keeps neither modes nor links, so every file
// of bin and every library is made executable, and the libraries at the top of the folder,
// such as libffi, are linked into lib-dynload, where the extensions search for them.
func Write(w io.Writer, archive, name, folder, dir string) error {
	l := &layer{out: tar.NewWriter(w), folder: folder + "/", dir: dir}
	read := l.fromTar
	if strings.HasSuffix(name, ".jar") {
		read = l.fromZip
	}
	if err := read(archive); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	if l.files == 0 {
		return fmt.Errorf("reading %s: it has no folder %s", name, folder)
	}
	return l.out.Close()
}

type layer struct {
	out    *tar.Writer
	folder string // with a slash at the end
	dir    string
	size   int64
	files  int
}

// name returns the path of a member in the tar file, or "" if the member is outside the
// folder.
func (l *layer) name(member string) (string, error) {
	below, inside := strings.CutPrefix(path.Clean(member), l.folder)
	if !inside {
		return "", nil
	}
	if strings.ContainsAny(member, "\x00\\") || path.Clean("/"+member) != "/"+path.Clean(member) {
		return "", fmt.Errorf("member %q leads outside the archive", member)
	}
	return path.Join(strings.TrimPrefix(l.dir, "/"), below), nil
}

// add writes one entry. Of the header it keeps name, kind, mode, target and size.
func (l *layer) add(h tar.Header, content io.Reader) error {
	if l.size += h.Size; l.size > largest || h.Size < 0 {
		return fmt.Errorf("it unpacks to more than %s", size.Text(largest))
	}
	l.files++
	clean := tar.Header{Name: h.Name, Typeflag: h.Typeflag, Mode: h.Mode & 0o755, Linkname: h.Linkname, Size: h.Size, Format: tar.FormatPAX}
	if err := l.out.WriteHeader(&clean); err != nil {
		return err
	}
	_, err := io.CopyN(l.out, content, h.Size)
	return err
}

func (l *layer) fromZip(archive string) error {
	r, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer r.Close()
	for _, member := range r.File {
		name, err := l.name(member.Name)
		if err != nil {
			return err
		}
		if name == "" || member.FileInfo().IsDir() {
			continue
		}
		h := tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(member.UncompressedSize64)}
		if runs(strings.TrimPrefix(member.Name, l.folder)) {
			h.Mode = 0o755
		}
		content, err := member.Open()
		if err != nil {
			return err
		}
		err = errors.Join(l.add(h, content), content.Close())
		if err != nil {
			return fmt.Errorf("%s: %w", member.Name, err)
		}
	}
	return l.linkLibraries(r.File)
}

// linkLibraries makes a link in lib-dynload for each library at the top of the folder.
func (l *layer) linkLibraries(members []*zip.File) error {
	dynload, libraries := "", []string{}
	for _, member := range members {
		below, _ := strings.CutPrefix(member.Name, l.folder)
		if dir := path.Dir(below); path.Base(dir) == "lib-dynload" {
			dynload = dir
		} else if dir == "." && strings.Contains(below, ".so.") && !strings.HasPrefix(below, "libpython") {
			libraries = append(libraries, below)
		}
	}
	for _, library := range libraries {
		h := tar.Header{Name: path.Join(strings.TrimPrefix(l.dir, "/"), dynload, library), Typeflag: tar.TypeSymlink, Mode: 0o777, Linkname: path.Join("../../..", library)}
		if err := l.add(h, strings.NewReader("")); err != nil {
			return err
		}
	}
	return nil
}

// runs reports whether a file of a CPython is a program or a library.
func runs(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(name, "bin/") || strings.HasSuffix(base, ".so") || strings.Contains(base, ".so.")
}

func (l *layer) fromTar(archive string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	plain, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	r := tar.NewReader(plain)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := l.name(h.Name)
		if err != nil {
			return err
		}
		switch {
		case name == "" || h.Typeflag == tar.TypeDir:
			continue
		case h.Typeflag == tar.TypeSymlink:
			h.Size = 0
		case h.Typeflag != tar.TypeReg:
			return fmt.Errorf("member %s is neither a file nor a symbolic link", h.Name)
		}
		h.Name = name
		if err := l.add(*h, r); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
}
