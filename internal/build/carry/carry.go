// Package carry moves files of a store from a machine with a network to one without, as
// one tar file.
//
// The first member is a list of the others, in their order and in the form of sha256sum.
// Reading trusts nothing else: it ends at a member missing from the list, in a different
// order, or not a regular file. The reader compares the bytes with the digest.
//
// Equal content makes an equal file: members are sorted and carry no time, owner or
// mode of the writing machine.
package carry

import (
	"archive/tar"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/input/store"
)

const (
	list    = "SHA256SUMS"
	folder  = "sha256/"
	maxList = 64 << 20 // enough for 400,000 files
	maxBlob = 64 << 30
)

// Write writes files of a store, each once, to a tar file, which appears whole or not at
// all.
func Write(to string, blobs []store.Blob, open func(store.Blob) (io.ReadCloser, error)) error {
	blobs = slices.SortedFunc(slices.Values(blobs), func(a, b store.Blob) int { return cmp.Compare(a.SHA256, b.SHA256) })
	blobs = slices.CompactFunc(blobs, func(a, b store.Blob) bool { return a.SHA256 == b.SHA256 })
	if err := atomicfile.Make(to, func(w io.Writer) error { return write(w, blobs, open) }); err != nil {
		return fmt.Errorf("writing %s: %w", to, err)
	}
	return nil
}

func write(w io.Writer, blobs []store.Blob, open func(store.Blob) (io.ReadCloser, error)) error {
	var sums strings.Builder
	for _, b := range blobs {
		fmt.Fprintf(&sums, "%s  %s\n", b.SHA256, folder+b.SHA256)
	}
	out := tar.NewWriter(w)
	if err := add(out, list, int64(sums.Len()), strings.NewReader(sums.String())); err != nil {
		return err
	}
	for _, b := range blobs {
		f, err := open(b)
		if err != nil {
			return err
		}
		if err := errors.Join(add(out, folder+b.SHA256, b.Size, f), f.Close()); err != nil {
			return fmt.Errorf("%s: %w", b.Name, err)
		}
	}
	return out.Close()
}

func add(out *tar.Writer, name string, size int64, r io.Reader) error {
	err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o444, ModTime: time.Unix(0, 0)})
	if err == nil {
		_, err = io.Copy(out, r)
	}
	return errors.Join(err, out.Flush()) // the error of a file of another size
}

// Read passes the files in a tar file written by [Write] to take, which has to check their
// digests. It ends at the first error. Files taken before it stay.
func Read(path string, take func(store.Blob, io.Reader) error) error {
	f, err := regular.Follow(path)
	if err != nil {
		return diag.Errorf(diag.Usage, "importing: %w", err).WithHint("name what `builder store export --to` wrote")
	}
	defer f.Close()
	err = read(tar.NewReader(f), take)
	if err != nil && diag.Worst(err) == diag.OK {
		err = diag.Errorf(diag.Fetch, "importing %s: %w", path, err).
			WithHint("the store keeps the files before this one; copy the file again, or write a new one with `builder store export`")
	}
	return err
}

func read(in *tar.Reader, take func(store.Blob, io.Reader) error) error {
	if _, err := next(in, list); err != nil {
		return err
	}
	sums, err := regular.All(in, maxList)
	if err != nil {
		return fmt.Errorf("%s: %w", list, err)
	}
	for line := range strings.Lines(string(sums)) {
		digest, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if name != folder+digest {
			return fmt.Errorf("%s has the line %.200q", list, line)
		}
		size, err := next(in, name)
		if err == nil {
			err = take(store.Blob{Name: name, Size: size, SHA256: digest}, in)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	extra, err := in.Next()
	if err == nil {
		return fmt.Errorf("%q is not in %s", extra.Name, list)
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// next advances to the next member and returns its size. It returns an error unless it is a
// regular file with this name.
func next(in *tar.Reader, name string) (size int64, err error) {
	h, err := in.Next()
	switch {
	case errors.Is(err, io.EOF):
		return 0, fmt.Errorf("it ends before the file: %w", io.ErrUnexpectedEOF)
	case err != nil:
		return 0, err
	case h.Name != name:
		return 0, fmt.Errorf("found %q, expected %s", h.Name, name)
	case h.Typeflag != tar.TypeReg:
		return 0, fmt.Errorf("%s is not a regular file", name)
	case h.Size > maxBlob:
		return 0, fmt.Errorf("%s has %d bytes, the limit is %d", name, h.Size, int64(maxBlob))
	}
	return h.Size, nil
}
