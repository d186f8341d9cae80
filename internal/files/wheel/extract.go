package wheel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Extract writes the files whose whole name matches the pattern below dir,
// which must exist, and returns their paths, sorted. The pattern is that of
// [path.Match], so a * stays within one directory: "nvidia/nccl/lib/*". A file
// keeps the name that it has in the wheel and becomes 0644 or 0755, less the umask.
//
// It fails where nothing matches, and where a file is there already or above the
// place of one; what was written until then stays. How much is
// written is bounded as all reading of a wheel is.
func (w *Wheel) Extract(dir, pattern string) ([]string, error) {
	names, err := w.matching(pattern)
	if err != nil {
		return nil, fmt.Errorf("unpacking %s: %w", w.Name, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("unpacking %s: %w", w.Name, err)
	}
	defer root.Close()
	var paths []string
	for _, name := range names {
		if err := w.extract(root, name); err != nil {
			return nil, fmt.Errorf("unpacking %s: %w", w.Name, err)
		}
		paths = append(paths, filepath.Join(dir, filepath.FromSlash(name)))
	}
	return paths, nil
}

// matching returns the files to unpack.
func (w *Wheel) matching(pattern string) ([]string, error) {
	var names []string
	for _, f := range w.Files {
		matches, err := path.Match(pattern, f.Name)
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", pattern, err)
		}
		if matches {
			names = append(names, f.Name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no file matches %q", pattern)
	}
	return sortedSet(names), nil
}

func (w *Wheel) extract(root *os.Root, name string) error {
	member, err := w.member(name)
	if err != nil {
		return err
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if member.Mode()&0o111 != 0 {
		mode = 0o755
	}
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	return errors.Join(copyMember(out, member), out.Close())
}
