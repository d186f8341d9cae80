package deb

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/sourcegraph/conc/iter"

	"builder/internal/input/oci"
	"builder/internal/input/store"
)

// A Deb is a locked package and the path of its file.
type Deb struct {
	Package Package
	Path    string
}

// Bootstrap writes an OCI image archive with one layer: the unpacked packages, a file
// system in which dpkg can run. The bytes depend only on the packages and on firstID,
// the user id in the layer for the packages' root. Bootstrap verifies the digest of
// every file before it reads it. It unpacks below scratch.
func Bootstrap(w io.Writer, scratch string, debs []Deb, firstID int) error {
	dir, err := os.MkdirTemp(scratch, "bootstrap-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "layer.tar.zst")
	packed, plain, err := compress(file, func(w io.Writer) error { return writeLayer(w, dir, debs, firstID) })
	if err != nil {
		return fmt.Errorf("making the bootstrap layer: %w", err)
	}
	if err := writeImage(w, file, packed, plain); err != nil {
		return fmt.Errorf("making the bootstrap image: %w", err)
	}
	return nil
}

// compress writes a layer to a file, compressed with Zstandard. The engine reads the layer
// again for every cell, and 120 MB take it a quarter of a second. It returns the
// descriptor of the file and the digest of the layer without compression.
func compress(file string, write func(io.Writer) error) (packed ocispec.Descriptor, plain digest.Digest, err error) {
	out, err := os.Create(file)
	if err != nil {
		return packed, "", err
	}
	defer out.Close()
	z, err := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return packed, "", err
	}
	sum := digest.SHA256.Digester()
	if err := errors.Join(write(io.MultiWriter(z, sum.Hash())), z.Close(), out.Close()); err != nil {
		return packed, "", err
	}
	is, err := store.Of(file)
	packed = ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayerZstd, Digest: digest.NewDigestFromEncoded(digest.SHA256, is.SHA256), Size: is.Size}
	return packed, sum.Digest(), err
}

// layer writes the entries of several packages into one tar archive.
type layer struct {
	out   *tar.Writer
	first int // added to every user and group id
	seen  map[string]entryOf
}

// entryOf records the package and the tar type of a path in the layer.
type entryOf struct {
	pkg  string
	kind byte
}

// writeLayer writes the layer of the packages. It unpacks them to files of scratch.
func writeLayer(w io.Writer, scratch string, debs []Deb, firstID int) error {
	l := &layer{out: tar.NewWriter(w), first: firstID, seen: map[string]entryOf{}}
	if err := l.mergeUsr(); err != nil {
		return err
	}
	// The packages are verified and unpacked at once, because xz takes most of the time.
	plain, err := iter.MapErr(debs, func(d *Deb) (string, error) { return unpackData(*d, scratch) })
	if err != nil {
		return err
	}
	for i, d := range debs {
		if err := l.add(d.Package.Name, plain[i]); err != nil {
			return fmt.Errorf("package %s: %w", d.Package.Name, err)
		}
	}
	return l.out.Close()
}

var usrDirs = []string{"bin", "lib", "lib64", "sbin"}

// mergeUsr makes /bin, /lib, /lib64 and /sbin links into /usr before a package can make
// them directories.
func (l *layer) mergeUsr() error {
	var all []*tar.Header
	for _, dir := range []string{"usr/", "usr/bin/", "usr/lib/", "usr/lib64/", "usr/sbin/"} {
		all = append(all, &tar.Header{Name: dir, Typeflag: tar.TypeDir, Mode: 0o755})
	}
	for _, dir := range usrDirs {
		all = append(all, &tar.Header{Name: dir, Linkname: "usr/" + dir, Typeflag: tar.TypeSymlink, Mode: 0o777})
	}
	for _, h := range all {
		h.Uid, h.Gid, h.ModTime = l.first, l.first, time.Unix(0, 0)
		l.seen[path.Clean(h.Name)] = entryOf{"", h.Typeflag}
		if err := l.out.WriteHeader(h); err != nil {
			return err
		}
	}
	return nil
}

// add appends the entries of a decompressed data archive and removes the archive.
func (l *layer) add(pkg, plain string) error {
	f, err := os.Open(plain)
	if err != nil {
		return err
	}
	defer os.Remove(plain)
	defer f.Close()
	return eachEntry(f, func(h *tar.Header, r io.Reader) error { return l.entry(pkg, h, r) })
}

// entry writes one entry to its path in a merged /usr.
func (l *layer) entry(pkg string, h *tar.Header, r io.Reader) error {
	name, err := place(h.Name)
	if err != nil {
		return err
	}
	if !ordinary(h) || name == "." && h.Typeflag != tar.TypeDir {
		return fmt.Errorf("%q is not a file, directory or link", h.Name)
	}
	if name == "." {
		return nil
	}
	if err := l.reachable(name); err != nil {
		return err
	}
	if before, ok := l.seen[name]; ok {
		if before.shares(h.Typeflag) {
			return nil
		}
		return fmt.Errorf("%s is also in %s", name, before)
	}
	clean := &tar.Header{
		Typeflag: h.Typeflag, Name: name, Linkname: h.Linkname, Mode: h.Mode,
		Uid: l.first + h.Uid, Gid: l.first + h.Gid, ModTime: h.ModTime,
	}
	switch h.Typeflag {
	case tar.TypeReg:
		clean.Size = h.Size
	case tar.TypeDir:
		clean.Name += "/"
	case tar.TypeLink:
		if clean.Linkname, err = l.target(h.Linkname); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	l.seen[name] = entryOf{pkg, h.Typeflag}
	if err := l.out.WriteHeader(clean); err != nil {
		return err
	}
	_, err = io.Copy(l.out, r)
	return err
}

// ordinary reports whether an entry is a file, directory or link. Sparse files are not
// ordinary: a few bytes could claim any size.
func ordinary(h *tar.Header) bool {
	for record := range h.PAXRecords {
		if strings.HasPrefix(record, "GNU.sparse.") {
			return false
		}
	}
	return slices.Contains([]byte{tar.TypeReg, tar.TypeDir, tar.TypeSymlink, tar.TypeLink}, h.Typeflag)
}

// reachable refuses a path below a link or a file. A link would decide where the path
// ends up.
func (l *layer) reachable(name string) error {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if above, ok := l.seen[dir]; ok && above.kind != tar.TypeDir {
			return fmt.Errorf("%s is below %s, which is not a directory in %s", name, dir, above)
		}
	}
	return nil
}

// target returns the path of a hard link's target.
func (l *layer) target(link string) (string, error) {
	to, err := place(link)
	if err != nil {
		return "", err
	}
	if file, ok := l.seen[to]; !ok || file.kind == tar.TypeDir {
		return "", fmt.Errorf("a hard link to %q, which is not a file of an earlier package", link)
	}
	return to, nil
}

// shares reports whether a later entry of this kind may have the same path. A directory
// may repeat a directory or a link. /bin and the other links of the merged /usr may
// repeat too.
func (e entryOf) shares(kind byte) bool {
	if kind == tar.TypeDir {
		return e.kind == tar.TypeDir || e.kind == tar.TypeSymlink
	}
	return e.kind == kind && e.pkg == ""
}

// String names the origin of an entry.
func (e entryOf) String() string {
	if e.pkg == "" {
		return "the merged /usr"
	}
	return "package " + e.pkg
}

// place returns the path of an entry below the root, in a merged /usr. It refuses a
// path outside the root.
func place(name string) (string, error) {
	clean := strings.TrimPrefix(path.Clean("/"+name), "/")
	if slices.Contains(strings.Split(name, "/"), "..") || !fs.ValidPath(path.Clean(strings.TrimPrefix(name, "./"))) && clean != "" {
		return "", fmt.Errorf("path %q is outside the root", name)
	}
	if clean == "" {
		return ".", nil
	}
	top, _, below := strings.Cut(clean, "/")
	if below && slices.Contains(usrDirs, top) {
		clean = "usr/" + clean
	}
	return clean, nil
}

// writeImage writes a tar of an OCI image layout with the layer of a file, whose digest
// without compression is plain.
func writeImage(w io.Writer, file string, packed ocispec.Descriptor, plain digest.Digest) error {
	content := map[digest.Digest][]byte{}
	document := func(mediaType string, v any) (ocispec.Descriptor, error) {
		data, err := json.Marshal(v)
		d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}
		content[d.Digest] = data
		return d, err
	}
	config, err1 := document(ocispec.MediaTypeImageConfig, map[string]any{
		"architecture": "amd64", "os": "linux", "config": map[string]any{},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []digest.Digest{plain}},
	})
	manifest, err2 := document(ocispec.MediaTypeImageManifest, map[string]any{
		"schemaVersion": 2, "mediaType": ocispec.MediaTypeImageManifest, "config": config, "layers": []ocispec.Descriptor{packed},
	})
	manifest.Platform = &ocispec.Platform{Architecture: "amd64", OS: "linux"}
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	return oci.WriteLayout(w, []ocispec.Descriptor{manifest, config, packed}, func(d ocispec.Descriptor) (io.ReadCloser, error) {
		if data, ok := content[d.Digest]; ok {
			return io.NopCloser(bytes.NewReader(data)), nil
		}
		return os.Open(file)
	})
}
