package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/evidence/attest"
	"builder/internal/files/artifact"
	"builder/internal/plan/lock"
)

// madeDir holds, below the output directory, a list of artifacts for each cell. A run
// removes only what an earlier run listed there.
const madeDir = ".made"

// maxMade limits a list in bytes.
const maxMade = 16 << 20

// A folder is the directory of a cell, and the list of the artifacts that runs wrote to
// it.
type folder struct{ out, id, dir, list string }

func folderOf(out, id string) folder {
	return folder{out, id, filepath.Join(out, id), filepath.Join(out, madeDir, id)}
}

// Foreign returns an error if a directory of results has content in the place of a cell
// that no run wrote: no entry is in it, and no list names its files.
func Foreign(out, id string) error {
	f := folderOf(out, id)
	for _, dir := range []string{f.dir, filepath.Dir(f.list)} {
		if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
			return diag.Errorf(diag.Usage, "--out: %s is not a directory", dir).WithHint("move it away, or write elsewhere: --out DIR")
		}
	}
	content, err := os.ReadDir(f.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return diag.Errorf(diag.Usage, "--out: %w", err)
	}
	content = slices.DeleteFunc(content, func(file fs.DirEntry) bool { return atomicfile.IsTemp(file.Name()) })
	_, err1 := os.Lstat(filepath.Join(f.dir, lock.EntryFile))
	_, err2 := os.Lstat(f.list)
	if len(content) == 0 || err1 == nil || err2 == nil {
		return nil
	}
	return diag.Errorf(diag.Usage, "--out: %s holds %s, and no %s of a run: its files belong to somebody else", f.dir, content[0].Name(), lock.EntryFile).
		WithHint("move the files away, or write elsewhere: --out DIR")
}

// made returns the names of the artifacts that runs wrote.
func (f folder) made() []string {
	data, _ := regular.Read(f.list, maxMade) // without a list nothing is removed
	names := strings.FieldsFunc(string(data), func(r rune) bool { return r == '\n' })
	return slices.DeleteFunc(names, func(name string) bool { return !filepath.IsLocal(name) })
}

// add lists artifacts that a run wrote.
func (f folder) add(artifacts []artifact.Artifact) error {
	return f.write(append(f.made(), namesOf(artifacts)...))
}

func (f folder) write(names []string) error {
	slices.Sort(names)
	if err := atomicfile.Write(f.list, []byte(strings.Join(slices.Compact(names), "\n")+"\n")); err != nil {
		return fmt.Errorf("listing the artifacts: %w", err)
	}
	return nil
}

// onlyListed returns an error if a wheel lies beside those of a run, because
// `pip install DIR/*.whl` would take it too. It comes after the run: one that was killed
// may have left a wheel before it was listed.
func (f folder) onlyListed() error {
	content, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	listed := f.made()
	for _, file := range content {
		if name := file.Name(); strings.HasSuffix(name, ".whl") && !slices.Contains(listed, name) {
			return diag.Errorf(diag.Usage, "--out: %s holds %s, which is no wheel of this run", f.dir, name).
				WithHint("move it away and run again: the result is in the store")
		}
	}
	return nil
}

func namesOf(artifacts []artifact.Artifact) (names []string) {
	for _, a := range artifacts {
		names = append(names, a.Name)
	}
	return names
}

// removeStale removes the artifacts of earlier runs, good and refused, with their
// attestations, except for those to keep. All other files stay. No link leads it out of
// the output directory.
func (f folder) removeStale(keep ...artifact.Artifact) error {
	stale := slices.DeleteFunc(f.made(), func(name string) bool { return slices.Contains(namesOf(keep), name) })
	if len(stale) == 0 {
		return nil
	}
	root, err := os.OpenRoot(f.out)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range stale {
		for _, path := range []string{filepath.Join(f.id, name), filepath.Join(f.id, artifact.RejectedDir, name)} {
			if err := root.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if err := root.RemoveAll(attest.Dir(path)); err != nil {
				return err
			}
		}
	}
	_ = root.Remove(filepath.Join(f.id, artifact.RejectedDir)) // unless files of others are in it
	return f.write(namesOf(keep))
}
