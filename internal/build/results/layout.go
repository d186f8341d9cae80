package results

import (
	"os"
	"path/filepath"

	"builder/internal/build/run"
	"builder/internal/evidence/attest"
	"builder/internal/files/artifact"
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
