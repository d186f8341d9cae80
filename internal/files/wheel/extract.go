package wheel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Extract writes the files whose full name matches the pattern below dir, which must
// exist, and returns their paths, sorted. The pattern follows [path.Match], so a *
// stays within one directory: "nvidia/nccl/lib/*". Files keep their path in the wheel
// and get mode 0644 or 0755, less the umask.
//
// It returns an error if no file matches, and if a file already exists at the path or
// in place of a parent directory. Files written before the error remain. The limits of
// reading a wheel also limit the output.
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

// matching returns the names of the files that match, sorted.
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
