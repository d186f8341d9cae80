package catalogue

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/patches"
	"builder/recipes"
)

// newFile is one file that init writes, relative to the site's directory.
type newFile struct {
	path string
	data []byte
}

// readme is a file of every site.
const readme = "README.md"

// NewSite writes the files of a site with copies of the named built-in recipes. If a
// file exists it writes none, except that copies can be added to an existing site. It
// returns the written files.
func NewSite(dir string, names []string) (written []string, err error) {
	files := []newFile{{readme, []byte(siteReadme)}}
	var errs []error
	add := func(fsys fs.FS, below, pattern string) {
		found, err := builtInFiles(fsys, below, pattern)
		files, errs = append(files, found...), append(errs, err)
	}
	for _, folder := range dataFolders {
		add(folder.built, folder.name, "schema.json")
	}
	if len(names) > 0 {
		files = slices.DeleteFunc(files, func(f newFile) bool { return exists(filepath.Join(dir, f.path)) })
	}
	for _, name := range names {
		if _, err := fs.Stat(recipes.FS, name+".yaml"); err != nil {
			errs = append(errs, unknown(name))
			continue
		}
		add(recipes.FS, "recipes", name+".yaml")
		add(recipes.FS, "recipes", lockFile(name))
		add(patches.FS, "patches", name+"/*")
	}
	for _, f := range files {
		if exists(filepath.Join(dir, f.path)) {
			errs = append(errs, diag.Errorf(diag.Usage, "%s already exists", filepath.Join(dir, f.path)).
				WithHint("init overwrites no file: move it away, or name another directory"))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, f := range files {
		path := filepath.Join(dir, f.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return written, diag.Errorf(diag.Usage, "making the directory: %w", err).WithHint("name a directory; it is made if it is missing")
		}
		if err := os.WriteFile(path, f.data, 0o644); err != nil {
			return written, fmt.Errorf("writing %s: %w", path, err)
		}
		written = append(written, path)
	}
	return written, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// builtInFiles reads built-in files to write below a folder of the site.
func builtInFiles(fsys fs.FS, below, pattern string) ([]newFile, error) {
	matches, err := fs.Glob(fsys, pattern)
	if err != nil {
		return nil, err
	}
	var files []newFile
	for _, name := range matches {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		files = append(files, newFile{filepath.Join(below, name), data})
	}
	return files, nil
}

// unknown returns the error for a name that no built-in recipe has.
func unknown(name string) error {
	known, _ := fs.Glob(recipes.FS, "*.yaml") // never fails: the pattern is valid
	for i, file := range known {
		known[i] = strings.TrimSuffix(file, ".yaml")
	}
	return diag.Errorf(diag.Usage, "unknown recipe %q", name).WithHint("%s", diag.DidYouMean(name, known))
}

const siteReadme = `# Recipes of our own

Name this directory with --recipes or BUILDER_RECIPES:

    builder plan horovod --recipes .

builder adds recipes/NAME.yaml, patches/NAME/*.yaml, images/*.yaml, diagnoses/*.yaml and
profiles/NAME.yaml to its built-in files. A file replaces the built-in one of the same
name, and "builder plan" lists the replacements. The locks are beside the recipes. Write
them with

    builder lock --recipes . NAME

and check them in.
`
