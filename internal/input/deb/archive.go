package deb

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/files/unpack"
)

// maxUnpacked bounds the unpacked size of one package, in bytes. The largest known
// package (librccl1 of ROCm 7) unpacks to 2 GiB.
const maxUnpacked = 8 << 30

// unpackData verifies a package and writes its decompressed data archive to a new file
// of a directory. It returns the path of the file.
func unpackData(d Deb, dir string) (file string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("package %s: %w", d.Package.Name, err)
		}
	}()
	if err := d.Package.Blob().Check(d.Path); err != nil {
		return "", diag.Errorf(diag.Fetch, "its file differs from the lock: %w", err)
	}
	f, err := os.Open(d.Path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	out, err := os.CreateTemp(dir, "data-*.tar")
	if err != nil {
		return "", err
	}
	return out.Name(), errors.Join(extract(out, f, maxUnpacked), out.Close())
}

// extract writes the decompressed data archive of a package to w. It returns an error
// after more than limit bytes.
func extract(w io.Writer, r io.Reader, limit int64) error {
	data, name, err := dataMember(bufio.NewReader(r))
	if err != nil {
		return err
	}
	plain, err := unpack.Reader(data, name)
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	defer plain.Close()
	n, err := io.Copy(w, io.LimitReader(plain, limit+1))
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", name, err)
	}
	if n > limit {
		return fmt.Errorf("%s unpacks to more than %d bytes", name, limit)
	}
	return nil
}

// eachEntry calls visit for each entry of a tar archive.
func eachEntry(r io.Reader, visit func(*tar.Header, io.Reader) error) error {
	archive := tar.NewReader(r)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading its data archive: %w", err)
		}
		if err := visit(h, archive); err != nil {
			return err
		}
	}
}

// dataMember finds data.tar.* in the ar archive of a package (deb(5)), whose digest is
// known. The archive is the magic followed by members, each with a header of 60 bytes at
// an even offset.
func dataMember(r io.Reader) (io.Reader, string, error) {
	magic := make([]byte, 8)
	if _, err := io.ReadFull(r, magic); err != nil || string(magic) != "!<arch>\n" {
		return nil, "", errors.New("not a Debian package")
	}
	header := make([]byte, 60)
	for {
		if _, err := io.ReadFull(r, header); err != nil {
			return nil, "", errors.New("the package has no data.tar: it is truncated")
		}
		name := strings.TrimRight(strings.TrimRight(string(header[:16]), " "), "/")
		size, err := strconv.ParseInt(strings.TrimSpace(string(header[48:58])), 10, 64)
		if err != nil || size < 0 || string(header[58:]) != "`\n" {
			return nil, "", errors.New("the package's ar header is damaged")
		}
		if strings.HasPrefix(name, "data.tar") {
			return io.LimitReader(r, size), name, nil
		}
		if _, err := io.CopyN(io.Discard, r, size+size%2); err != nil {
			return nil, "", errors.New("the package is truncated")
		}
	}
}
