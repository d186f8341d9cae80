package git

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
)

// A Tree selects the content of an archive.
type Tree struct {
	Commit string
	Under  string // folder of the commit to archive, without submodules; "" is the whole commit
	Folder string // top folder of the archive
	Root   bool   // write the files of Under directly below Folder, without their path to it
}

// Make writes the archive of a tree to a file. It returns the time of the commit in
// seconds since 1970. It keeps a clone below scratch and reuses it in later calls.
func Make(ctx context.Context, scratch string, from Repository, t Tree, to string) (int64, error) {
	c, err := open(ctx, filepath.Join(scratch, "git-"+regular.Sum([]byte(from))[:16]), from)
	if err != nil {
		return 0, err
	}
	if err := c.bring(ctx, from, t.Commit); err != nil {
		return 0, err
	}
	f, err := os.Create(to)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(c.archive(ctx, f, t), f.Close()); err != nil {
		return 0, err
	}
	made, err := run(ctx, c.dir, "show", "--no-patch", "--format=%ct", t.Commit)
	if err != nil {
		return 0, fmt.Errorf("reading the date of %s: %w", t.Commit, err)
	}
	return strconv.ParseInt(strings.TrimSpace(string(made)), 10, 64)
}

// archive writes a tree with its submodules to w as an uncompressed tar. Equal commits
// give equal bytes on every host.
func (c *clone) archive(ctx context.Context, w io.Writer, t Tree) error {
	files, err := c.files(ctx, t)
	if err != nil {
		return err
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	objects, err := c.objects(ctx)
	if err != nil {
		return err
	}
	out := tar.NewWriter(w)
	for _, f := range files {
		if err := objects.copy(out, f); err != nil {
			return errors.Join(fmt.Errorf("archiving %s: %w", f.path, err), objects.close())
		}
	}
	return errors.Join(out.Close(), objects.close())
}

// file is one entry of a tree.
type file struct {
	path   string // below the archive's root
	mode   string // 100644, 100755 or 120000
	object string
}

// maxDepth bounds the nesting of submodules.
const maxDepth = 8

// files lists the files of a tree.
func (c *clone) files(ctx context.Context, t Tree) ([]file, error) {
	if t.Under == "" {
		return c.tree(ctx, c.from, t.Commit, t.Folder, 0)
	}
	if !filepath.IsLocal(t.Under) {
		return nil, diag.Errorf(diag.Usage, "folder %q is outside the tree", t.Under)
	}
	under := path.Clean(t.Under) + "/"
	files, _, err := c.list(ctx, t.Commit, "", under)
	for i := range files {
		name := files[i].path
		if t.Root {
			name = strings.TrimPrefix(name, under)
		}
		files[i].path = path.Join(t.Folder, name)
	}
	if err == nil && len(files) == 0 {
		err = diag.Errorf(diag.Fetch, "%s has no folder %s at commit %s", c.from, t.Under, t.Commit)
	}
	return files, err
}

// tree lists the files of a commit and of its submodules. It fetches the submodules.
func (c *clone) tree(ctx context.Context, from Repository, sha, prefix string, depth int) ([]file, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("submodules are nested more than %d deep", maxDepth)
	}
	files, links, err := c.list(ctx, sha, prefix)
	if err != nil || len(links) == 0 {
		return files, err
	}
	places, err := c.submodules(ctx, from, sha)
	if err != nil {
		return nil, err
	}
	for _, link := range links {
		place, ok := places[link.path]
		if !ok {
			return nil, fmt.Errorf("submodule %s is not in .gitmodules of commit %s", link.path, sha)
		}
		if !filepath.IsAbs(string(from)) || !within(from, place) {
			if err := place.Remote(); err != nil {
				return nil, diag.Errorf(diag.Fetch, "submodule %s: %w", link.path, err).
					WithHint("bring it into a local clone with `git submodule update --init --recursive`, and name the clone with --set source.NAME=PATH")
			}
		}
		if err := c.bring(ctx, place, link.object); err != nil {
			return nil, fmt.Errorf("submodule %s: %w", link.path, err)
		}
		inner, err := c.tree(ctx, place, link.object, path.Join(prefix, link.path), depth+1)
		if err != nil {
			return nil, fmt.Errorf("submodule %s: %w", link.path, err)
		}
		files = append(files, inner...)
	}
	return files, nil
}

// list lists the files of a commit and the paths of its submodules, only below folder
// if given.
func (c *clone) list(ctx context.Context, sha, prefix string, folder ...string) (files, links []file, err error) {
	args := append([]string{"--literal-pathspecs", "ls-tree", "-r", "-z", "--full-tree", sha, "--"}, folder...)
	out, err := run(ctx, c.dir, args...)
	if err != nil {
		return nil, nil, fmt.Errorf("listing %s: %w", sha, err)
	}
	if len(out) == 0 {
		return nil, nil, nil
	}
	for row := range bytes.SplitSeq(bytes.TrimRight(out, "\x00"), []byte{0}) {
		meta, name, _ := strings.Cut(string(row), "\t")
		fields := strings.Fields(meta) // mode, type, object
		if len(fields) != 3 || !filepath.IsLocal(name) {
			return nil, nil, fmt.Errorf("listing %s: %q is outside the tree", sha, name)
		}
		f := file{path.Join(prefix, name), fields[0], fields[2]}
		if fields[1] == "commit" {
			links = append(links, file{name, fields[0], fields[2]})
		} else {
			files = append(files, f)
		}
	}
	return files, links, nil
}

// objects is a running git process that returns the content of objects.
type objects struct {
	in  io.WriteCloser
	out *bufio.Reader
	end func() error
}

func (c *clone) objects(ctx context.Context) (*objects, error) {
	cmd := command(ctx, c.dir, "cat-file", "--batch")
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return nil, fmt.Errorf("reading objects: %w", err)
	}
	return &objects{in, bufio.NewReader(out), cmd.Wait}, nil
}

func (o *objects) close() error {
	o.in.Close()
	io.Copy(io.Discard, o.out)
	return o.end()
}

// copy writes one file into the archive.
func (o *objects) copy(out *tar.Writer, f file) error {
	if _, err := fmt.Fprintln(o.in, f.object); err != nil {
		return err
	}
	header, err := o.out.ReadString('\n')
	if err != nil {
		return err
	}
	fields := strings.Fields(header) // object, type, size
	if len(fields) != 3 || fields[1] != "blob" {
		return fmt.Errorf("git cat-file printed %q", strings.TrimSpace(header))
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return err
	}
	h := &tar.Header{Name: f.path, Size: size, Mode: 0o644, ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
	content := io.LimitReader(o.out, size)
	switch f.mode {
	case "100755":
		h.Mode = 0o755
	case "120000":
		target, err := io.ReadAll(io.LimitReader(content, 4096))
		if err != nil || int64(len(target)) != size {
			return fmt.Errorf("the target of a link has %d bytes", size)
		}
		h.Typeflag, h.Linkname, h.Size, h.Mode = tar.TypeSymlink, string(target), 0, 0o777
	}
	if err := out.WriteHeader(h); err != nil {
		return err
	}
	if h.Typeflag == tar.TypeReg {
		if _, err := io.Copy(out, content); err != nil {
			return err
		}
	}
	_, err = o.out.Discard(1) // the newline after each object
	return err
}
