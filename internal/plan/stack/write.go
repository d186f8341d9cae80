package stack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
	"builder/internal/files/artifact"
	"builder/internal/files/wheel"
)

// Write writes a wheelhouse to dir: the folder of wheels, which replaces an older one
// as a whole, their exact pins with digests, the profile unless it is empty, and the
// manifest. places maps each wheel to its current path. Write returns all files it
// wrote, the manifest first. The name of a wheel begins with the folder.
func (m Manifest) Write(dir string, places map[string]string, profile []byte) ([]artifact.Artifact, error) {
	pins, err := m.requirements()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := m.fill(dir, places); err != nil {
		return nil, fmt.Errorf("writing the wheelhouse: %w", err)
	}
	data, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, err
	}
	texts := []struct {
		name string
		data []byte
	}{{manifestFile, append(data, '\n')}, {Requirements, pins}, {profileFile, profile}}
	var made []artifact.Artifact
	for _, t := range texts {
		if len(t.data) == 0 { // an older stack in this folder may have had a profile
			if err := os.Remove(filepath.Join(dir, t.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			continue
		}
		if err := atomicfile.Write(filepath.Join(dir, t.name), t.data); err != nil {
			return nil, err
		}
		a, err := artifact.Of(filepath.Join(dir, t.name), m.Key)
		if err != nil {
			return nil, err
		}
		made = append(made, a)
	}
	for _, w := range slices.SortedFunc(slices.Values(m.Wheels()), func(a, b Wheel) int { return strings.Compare(a.Name, b.Name) }) {
		path := filepath.Join(dir, Folder, w.Name)
		made = append(made, artifact.Artifact{Name: Folder + "/" + w.Name, Path: path, SHA256: w.SHA256, Size: w.Size, Key: m.Key})
	}
	return made, nil
}

// fill copies the wheels into a new folder and then replaces the old one.
func (m Manifest) fill(dir string, places map[string]string) error {
	fresh, err := os.MkdirTemp(dir, "."+Folder+"-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	for _, w := range m.Wheels() {
		if err := copyWheel(places[w.Name], filepath.Join(fresh, w.Name), w); err != nil {
			return err
		}
	}
	final := filepath.Join(dir, Folder)
	return errors.Join(os.Chmod(fresh, 0o755), os.RemoveAll(final), os.Rename(fresh, final))
}

// copyWheel copies a wheel and verifies its digest.
func copyWheel(from, to string, want Wheel) error {
	if err := atomicfile.Copy(from, to); err != nil {
		return err
	}
	return want.blob().Check(to)
}

// requirements pins every wheel by version and digest, one per line, sorted. Two wheels
// of one project cannot be installed together, and a wheel of a provided project would
// replace the platform's. Both are errors.
func (m Manifest) requirements() ([]byte, error) {
	var lines []string
	var errs []error
	seen := map[string]string{}
	for _, p := range m.Provided {
		seen[wheel.NormalName(p.Project)] = "the platform (" + p.Because + ")"
	}
	for _, w := range m.Wheels() {
		name, err := wheel.ParseName(w.Name)
		if err != nil {
			errs = append(errs, diag.Errorf(diag.Build, "%w", err).WithHint("a part of a stack must be a wheel"))
			continue
		}
		project := wheel.NormalName(name.Distribution)
		if other, twice := seen[project]; twice {
			errs = append(errs, diag.Errorf(diag.Build, "%s comes from %s and from %s", project, other, w.Name).
				WithHint("remove it from one of parts, extra and provided"))
		}
		seen[project] = w.Name
		lines = append(lines, fmt.Sprintf("%s==%s --hash=sha256:%s\n", project, name.Version, w.SHA256))
	}
	slices.Sort(lines)
	return []byte(strings.Join(lines, "")), errors.Join(errs...)
}
