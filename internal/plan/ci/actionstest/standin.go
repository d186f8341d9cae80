package actionstest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// action runs what stands behind uses:, or what stands in for it. A failure is
// the action's; an error is a use of it that is not known here.
func (m *runner) action(ctx context.Context, uses string, with map[string]string) (outputs map[string]string, failure, err error) {
	if own, ok := strings.CutPrefix(uses, "$/"); ok && own != "" { // a runner rejects the prefix alone
		outputs, err = m.own(ctx, filepath.Join(m.Own, own), with)
		return outputs, nil, err
	}
	name, _, _ := strings.Cut(uses, "@")
	switch name {
	case "actions/checkout":
		err = errors.Join(known(with, "persist-credentials"), os.CopyFS(m.workspace, os.DirFS(m.Checkout)))
	case "actions/setup-go":
		_, failure = os.Stat(with["go-version-file"])
		err = known(with, "go-version-file", "cache-dependency-path")
	case "actions/cache":
		err = errors.Join(known(with, "path", "key", "restore-keys"), m.restore(with))
	case "actions/upload-artifact":
		err = known(with, "name", "path", "if-no-files-found", "overwrite", "retention-days", "compression-level")
		failure = m.upload(with)
	case "actions/download-artifact":
		err = known(with, "name", "pattern", "path")
		failure = m.download(with)
	case "docker/login-action":
		err = known(with, "registry", "username", "password")
		if with["registry"] == "" || with["username"] == "" || with["password"] == "" {
			failure = errors.New("Username and password required")
		}
	default:
		err = fmt.Errorf("nothing stands in for %q", uses)
	}
	return outputs, failure, err
}

// known refuses settings of an action that its stand-in would not look at.
func known(with map[string]string, names ...string) error {
	for name := range with {
		if !slices.Contains(names, name) {
			return fmt.Errorf("the setting %s is not known here", name)
		}
	}
	return nil
}

func (m *runner) at(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(m.workspace, path)
}

// cached is a directory that is kept under a key when its job has succeeded.
type cached struct{ dir, key string }

// restore brings the newest cache whose key is the one wanted, or begins like one
// of the others.
func (m *runner) restore(with map[string]string) error {
	dir := m.at(with["path"])
	kept, err := filepath.Glob(filepath.Join(m.Dir, "caches", "*"))
	if err != nil {
		return err
	}
	for _, want := range append([]string{with["key"]}, strings.Fields(with["restore-keys"])...) {
		for _, path := range kept {
			key := filepath.Base(path)
			if key == with["key"] {
				return os.CopyFS(dir, os.DirFS(path))
			}
			if want != with["key"] && strings.HasPrefix(key, want) {
				m.caches = append(m.caches, cached{dir, with["key"]})
				return os.CopyFS(dir, os.DirFS(path))
			}
		}
	}
	m.caches = append(m.caches, cached{dir, with["key"]})
	return nil
}

func (m *runner) saveCaches() error {
	for _, c := range m.caches {
		if _, err := os.Stat(c.dir); errors.Is(err, fs.ErrNotExist) {
			continue // Actions warns
		}
		if err := os.CopyFS(filepath.Join(m.Dir, "caches", c.key), os.DirFS(c.dir)); err != nil {
			return err
		}
	}
	return nil
}

// upload keeps files as an artifact: below the directory that all paths have in
// common, without hidden ones and without their modes.
func (m *runner) upload(with map[string]string) error {
	var files []string
	root := ""
	for i, pattern := range strings.Fields(with["path"]) {
		matches, err := filepath.Glob(m.at(pattern))
		if err != nil {
			return err
		}
		for _, path := range matches {
			if err := visible(path, &files); err != nil {
				return err
			}
		}
		if base := searched(m.at(pattern)); i == 0 {
			root = base
		} else {
			root = common(root, base)
		}
	}
	artifact := filepath.Join(m.Dir, "artifacts", with["name"])
	if with["overwrite"] == "true" {
		if err := os.RemoveAll(artifact); err != nil {
			return err
		}
	} else if _, err := os.Stat(artifact); err == nil {
		return fmt.Errorf("an artifact %s is there", with["name"])
	}
	if len(files) == 0 {
		if with["if-no-files-found"] == "error" {
			return errors.New("no files were found")
		}
		return nil
	}
	return copyFiles(files, root, artifact)
}

// visible adds the files below a path, or the file that it is.
func visible(path string, files *[]string) error {
	return filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.Type().IsRegular():
			*files = append(*files, path)
		case !d.IsDir():
			return fmt.Errorf("%s is neither file nor directory", path)
		}
		return nil
	})
}

// searched is the directory that a pattern is looked for in.
func searched(pattern string) string {
	for strings.ContainsAny(pattern, "*?[") {
		pattern = filepath.Dir(pattern)
	}
	if info, err := os.Stat(pattern); err == nil && !info.IsDir() {
		return filepath.Dir(pattern)
	}
	return pattern
}

// common is the directory above two others.
func common(a, b string) string {
	for a != b {
		if len(a) > len(b) {
			a = filepath.Dir(a)
		} else {
			b = filepath.Dir(b)
		}
	}
	return a
}

func copyFiles(files []string, root, to string) error {
	for _, path := range files {
		below, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, below)
		if err := errors.Join(os.MkdirAll(filepath.Dir(target), 0o755), os.WriteFile(target, data, 0o644)); err != nil {
			return err
		}
	}
	return nil
}

// download brings one artifact by its name, or all of a pattern, each into a
// directory of its own.
func (m *runner) download(with map[string]string) error {
	artifacts := filepath.Join(m.Dir, "artifacts")
	if name := with["name"]; name != "" {
		return os.CopyFS(m.at(with["path"]), os.DirFS(filepath.Join(artifacts, name)))
	}
	matches, err := filepath.Glob(filepath.Join(artifacts, with["pattern"]))
	if err != nil {
		return err
	}
	for _, path := range matches {
		if err := os.CopyFS(filepath.Join(m.at(with["path"]), filepath.Base(path)), os.DirFS(path)); err != nil {
			return err
		}
	}
	return nil
}
