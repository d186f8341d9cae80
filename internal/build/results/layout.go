package results

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"builder/internal/build/run"
	"builder/internal/evidence/attest"
	"builder/internal/files/artifact"
	"builder/internal/plan/stack"
)

// layOut copies the artifacts of a result into dir, and its attestations into the
// attestation folder of the first artifact. Other attestations of the same bytes, such
// as those of GPU gates, stay.
func (r *Results) layOut(found run.Result, dir, key string) error {
	said := attest.Dir(filepath.Join(dir, found.Artifacts[0].Name))
	if have, err := artifact.Of(filepath.Join(dir, found.Artifacts[0].Name), ""); err != nil || have.SHA256 != found.Artifacts[0].SHA256 {
		if err := os.RemoveAll(said); err != nil {
			return err
		}
	}
	if err := clearWheels(dir, found.Artifacts); err != nil {
		return err
	}
	for in, files := range map[string][]artifact.Artifact{dir: found.Artifacts, said: found.Attestations} {
		for i, a := range files {
			to := filepath.Join(in, a.Name)
			a.Path, _ = r.store.Path(blob(a))
			if err := artifact.Put(a, to); err != nil {
				return err
			}
			files[i].Path, files[i].Key = to, key
		}
	}
	return nil
}

// clearWheels removes all files from the folder of a stack's wheels but those of the stack:
// the folder is used as a whole.
func clearWheels(dir string, artifacts []artifact.Artifact) error {
	there, err := os.ReadDir(filepath.Join(dir, stack.Folder))
	if errors.Is(err, fs.ErrNotExist) || !slices.ContainsFunc(artifacts, func(a artifact.Artifact) bool { return path.Dir(a.Name) == stack.Folder }) {
		return nil
	}
	errs := []error{err}
	for _, file := range there {
		if !slices.ContainsFunc(artifacts, func(a artifact.Artifact) bool { return a.Name == stack.Folder+"/"+file.Name() }) {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, stack.Folder, file.Name())))
		}
	}
	return errors.Join(errs...)
}
