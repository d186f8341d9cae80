// Package wheel reads, checks and writes Python wheels: the file name, METADATA and
// WHEEL, RECORD, and the ZIP itself.
//
// Wheels are untrusted, from builds as well as from other sources. The package never
// unpacks a member under its own name, except into a directory the caller asks for: it
// reads a member into memory, up to a limit, or into an unlinked temporary file. The
// directory, the members and the decompression are bounded.
package wheel

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/regular"
)

// Limits of reading. The largest wheels in the field have 20,000 members and 5 GiB.
const (
	maxDirectory = 32 << 20 // bytes of the ZIP's directory
	maxMembers   = 200_000
	maxPath      = 1024
	maxPart      = 255       // bytes of a path component, the limit of file systems
	maxTotal     = 64 << 30  // bytes, unpacked
	freeTotal    = 512 << 20 // maxRatio applies above this size
	maxRatio     = 50        // unpacked : packed, for the whole wheel
	maxHeader    = 16 << 20  // METADATA, WHEEL
	maxRecord    = 64 << 20
)

// Wheel is an open wheel. Metadata and WheelInfo are empty if they are missing or
// unreadable. [Wheel.Check] reports this.
type Wheel struct {
	Name      Name
	Size      int64  // bytes of the file
	Files     []File // without directories, in the order of the ZIP
	DistInfo  string // name of the .dist-info directory, "" if ambiguous
	Metadata  Header
	WheelInfo Header

	contents
	infoDirs []string // every .dist-info directory
	problems []string // found while opening
	file     *os.File
}

// File is a member of the wheel.
type File struct {
	Name string
	Size int64
	Mode fs.FileMode
}

// Open opens the wheel at path. It returns an error for an invalid name, a truncated
// ZIP, a ZIP that two readers could interpret differently or that must not be unpacked,
// and excessive sizes. [Wheel.Check] reports all other problems.
func Open(path string) (*Wheel, error) {
	f, size, err := openFile(path)
	if err != nil {
		return nil, err
	}
	w, err := read(filepath.Base(path), f, size)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening wheel %q: %w", path, err), f.Close())
	}
	w.file = f
	return w, nil
}

// openFile opens a regular file and returns its size.
func openFile(path string) (*os.File, int64, error) {
	f, err := regular.Follow(path)
	if err != nil {
		return nil, 0, fmt.Errorf("opening wheel: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("opening wheel: %w", err), f.Close())
	}
	return f, info.Size(), nil
}

func read(base string, r io.ReaderAt, size int64) (*Wheel, error) {
	name, err := ParseName(base)
	if err != nil {
		return nil, err
	}
	archive, err := openZIP(r, size)
	if err != nil {
		return nil, err
	}
	w := &Wheel{Name: name, Size: size, contents: contents{}}
	for _, f := range archive.File {
		w.contents[f.Name] = f
		if !strings.HasSuffix(f.Name, "/") {
			w.Files = append(w.Files, File{f.Name, int64(f.UncompressedSize64), f.Mode()})
		}
	}
	w.DistInfo, w.infoDirs = findDistInfo(w.contents, name)
	metadata, problems := readHeader(w.contents, w.DistInfo, "METADATA")
	info, more := readHeader(w.contents, w.DistInfo, "WHEEL")
	w.Metadata, w.WheelInfo, w.problems = metadata, info, append(problems, more...)
	return w, nil
}

// plausible refuses directories with more content than a wheel can have.
func plausible(files []*zip.File) error {
	var packed, unpacked uint64
	for _, f := range files {
		if max(f.UncompressedSize64, f.CompressedSize64) > maxTotal {
			return fmt.Errorf("the ZIP's directory gives %.300q %d bytes", f.Name, max(f.UncompressedSize64, f.CompressedSize64))
		}
		packed, unpacked = packed+f.CompressedSize64, unpacked+f.UncompressedSize64
	}
	switch {
	case unpacked > maxTotal:
		return fmt.Errorf("the ZIP unpacks to %d bytes, above the limit of %d", unpacked, int64(maxTotal))
	case unpacked > freeTotal && unpacked/maxRatio > packed:
		return fmt.Errorf("the ZIP unpacks from %d to %d bytes, more than a real wheel", packed, unpacked)
	}
	return nil
}

// findDistInfo lists every .dist-info directory, and chooses the one that matches the file
// name. Without a match, it takes the only one.
func findDistInfo(in contents, name Name) (chosen string, all []string) {
	for name := range in { // including directory entries, which pip counts
		if top, _, _ := strings.Cut(name, "/"); strings.HasSuffix(top, ".dist-info") {
			all = append(all, top)
		}
	}
	all = sortedSet(all)
	promised := name.Distribution + "-" + name.Version + ".dist-info"
	switch {
	case slices.Contains(all, promised):
		return promised, all
	case len(all) == 1:
		return all[0], all
	}
	return "", all
}

// readHeader reads METADATA or WHEEL. Its problems leave the header empty.
func readHeader(in contents, distInfo, file string) (h Header, problems []string) {
	if distInfo == "" {
		return nil, nil // checkDistInfo reports it
	}
	name := distInfo + "/" + file
	data, err := in.ReadFile(name, maxHeader)
	if err != nil {
		return nil, []string{err.Error()}
	}
	h, err = ParseHeader(data)
	if err == nil && len(h) == 0 {
		err = errors.New("it has no fields")
	}
	if err != nil {
		return nil, []string{fmt.Sprintf("%s: %v", name, err)}
	}
	return h, nil
}

// Close closes the file. Open members remain usable.
func (w *Wheel) Close() error { return w.file.Close() }

// contents are the members of a wheel by name, with directories.
type contents map[string]*zip.File

// ReadFile returns the contents of a member. A member of more than limit bytes is an
// error.
func (c contents) ReadFile(name string, limit int64) ([]byte, error) {
	f, err := c.member(name)
	if err != nil {
		return nil, err
	}
	if f.UncompressedSize64 > uint64(max(limit, 0)) {
		return nil, fmt.Errorf("reading %q: it has %d bytes, above the limit of %d", name, f.UncompressedSize64, limit)
	}
	var b bytes.Buffer
	if err := copyMember(&b, f); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Copy writes the contents of a member to dst.
func (c contents) Copy(dst io.Writer, name string) error {
	f, err := c.member(name)
	if err != nil {
		return err
	}
	return copyMember(dst, f)
}

// SHA256 returns the digest of a member's contents, 64 hexadecimal digits.
func (c contents) SHA256(name string) (string, error) {
	sum := sha256.New()
	err := c.Copy(sum, name)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// Open unpacks a member into an unlinked file, for readers that need to seek. It stops
// when ctx ends.
func (c contents) Open(ctx context.Context, name string) (*os.File, error) {
	tmp, err := os.CreateTemp("", "wheel-member-*")
	if err != nil {
		return nil, fmt.Errorf("unpacking %q: %w", name, err)
	}
	// An unlinked file leaves nothing behind, however the process ends.
	if err := errors.Join(os.Remove(tmp.Name()), c.Copy(until{ctx, tmp}, name)); err != nil {
		return nil, errors.Join(err, tmp.Close())
	}
	return tmp, nil
}

// until writes until its context ends.
type until struct {
	ctx context.Context
	io.Writer
}

func (u until) Write(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.Writer.Write(p)
}

func (c contents) member(name string) (*zip.File, error) {
	if f := c[name]; f != nil && f.Mode().IsRegular() {
		return f, nil
	}
	return nil, fmt.Errorf("reading %q: it is not in the wheel", name)
}

// copyMember unpacks a member. It returns an error if the size or the checksum differs
// from the directory, or if bytes follow the end of the compressed stream: a reader
// from the front would take these for the next member.
func copyMember(dst io.Writer, f *zip.File) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("reading %q: %w", f.Name, err)
		}
	}()
	raw, err := f.OpenRaw()
	if err != nil {
		return err
	}
	packed := bufio.NewReader(raw)
	var plain io.Reader = packed
	if f.Method == zip.Deflate {
		plain = flate.NewReader(packed) // reads no byte past the end, because packed is an io.ByteReader
	}
	sum := crc32.NewIEEE()
	n, err := io.Copy(io.MultiWriter(dst, sum), io.LimitReader(plain, int64(f.UncompressedSize64)+1))
	switch {
	case err != nil:
		return err
	case uint64(n) != f.UncompressedSize64:
		return fmt.Errorf("it unpacks to another size than the %d bytes of the directory", f.UncompressedSize64)
	case sum.Sum32() != f.CRC32:
		return zip.ErrChecksum
	}
	if _, err := packed.ReadByte(); !errors.Is(err, io.EOF) {
		return errors.Join(err, errors.New("bytes follow the end of the compressed data: readers disagree if they are the next member"))
	}
	return nil
}

// ReadFiles returns the members of a wheel chosen by wanted, by name. It leaves out
// members of more than limit bytes. The wheel may have any file name.
func ReadFiles(path string, wanted func(name string) bool, limit int64) (map[string][]byte, error) {
	f, size, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	archive, err := openZIP(f, size)
	if err != nil {
		return nil, fmt.Errorf("opening wheel %q: %w", path, err)
	}
	files := map[string][]byte{}
	for _, member := range archive.File {
		if !wanted(member.Name) || !member.Mode().IsRegular() || member.UncompressedSize64 > uint64(max(limit, 0)) {
			continue
		}
		var b bytes.Buffer
		if err := copyMember(&b, member); err != nil {
			return nil, fmt.Errorf("opening wheel %q: %w", path, err)
		}
		files[member.Name] = b.Bytes()
	}
	return files, nil
}
