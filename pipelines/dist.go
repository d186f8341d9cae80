package pipelines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dagger.io/dagger"

	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
	"builder/internal/evidence/sbom"
	"builder/internal/files/artifact"
	"builder/internal/files/wheel"
	"builder/internal/input/pypi"
	"builder/internal/plan/lock"
)

// export copies the build's output from the engine: one wheel, or the promised archive
// in its place, and then the files beside it. The wheel is normalised to a fixed order
// of entries with fixed times and modes, so that equal content gives equal bytes. All
// other files are exported unchanged.
func (c *cell) export(ctx context.Context, container *dagger.Container, dir string) ([]artifact.Artifact, error) {
	left := container.Directory(distDir)
	if err := measure(ctx, c.session, c.image.WithMountedDirectory(distDir, left), c.entry.Image.Python); err != nil {
		return nil, err
	}
	raw, err := os.MkdirTemp(c.Scratch, "dist-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(raw)
	if _, err := left.Export(ctx, raw); err != nil {
		return nil, err
	}
	first, beside, err := sortDist(raw, c.entry.Expect.Tree)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	keep := move
	if c.entry.Expect.Tree == "" {
		keep = normalise
	}
	a, err := keep(first, dir, c.entry)
	if err != nil {
		return nil, err
	}
	made, errs := []artifact.Artifact{a}, []error{}
	add := func(a artifact.Artifact, err error) { made, errs = append(made, a), append(errs, err) }
	for _, file := range beside {
		add(move(file, dir, c.entry))
	}
	if c.entry.Expect.Tree == "" {
		add(writeRequirements(c.entry, made[0], c.inputs, dir))
	}
	if len(c.entry.Profile) > 0 {
		add(writeProfile(c.entry, dir))
	}
	return made, errors.Join(errs...)
}

// measure refuses a build's output with too many, too large or other files than regular
// ones, before it is written to this host. It looks with the Python of a container that the
// build has not changed, but for the output.
func measure(ctx context.Context, s *session, ctr *dagger.Container, python string) error {
	_, said, err := s.exec(ctx, ctr, firstTime, noCaps, []string{python, "-I", "-c", script("dist.py"), distDir})
	if err != nil {
		return leftNone(err)
	}
	if said = strings.TrimSpace(said); said != "" {
		return diag.Errorf(diag.Build, "the build left %s in $BUILDER_DIST", said).
			WithHint("let the script of the recipe leave only the wheel and the files to publish beside it there")
	}
	return nil
}

// leftNone gives an error of the engine about a missing output directory the class of a
// failed build.
func leftNone(err error) error {
	for _, words := range []string{"no such file or directory", "not a directory"} {
		if diag.Worst(err) == diag.OK && strings.Contains(err.Error(), words) {
			return diag.Errorf(diag.Build, "the build left no directory $BUILDER_DIST: %w", err)
		}
	}
	return err
}

// writeRequirements writes a requirements file for pip and uv with a digest for each
// line. It lists the wheel, the wheels of other cells it was tested with, and the
// locked packages of the run-time image.
func writeRequirements(e lock.Entry, made artifact.Artifact, inputs []artifact.Artifact, dir string) (artifact.Artifact, error) {
	var lines []string
	beside := "--find-links ."
	for i, a := range append([]artifact.Artifact{made}, inputs...) {
		name, err := wheel.ParseName(a.Name)
		if err != nil {
			return artifact.Artifact{}, diag.Errorf(diag.Build, "writing the requirements of %s: %w", e.ID, err)
		}
		// An index may have a wheel of the same version. pip prefers that one if its
		// platform tag is more specific, and refuses it for its digest.
		if i == 0 && !strings.Contains(name.Version, "+") {
			beside = fmt.Sprintf(`"file://$PWD/%s#sha256=%s"`, a.Name, a.SHA256)
		}
		lines = append(lines, pypi.File{Project: wheel.NormalName(name.Distribution), Version: name.Version, SHA256: a.SHA256}.Exact())
	}
	for _, f := range e.Runtime.Wheels {
		lines = append(lines, f.Requirement())
	}
	for _, in := range e.Inputs { // builder run writes their directories beside this one
		beside += " --find-links ../" + in.ID
	}
	name := e.ID + lock.RequirementsEnd
	// The published copy has the same bytes, so the header serves both.
	return writeText(e, dir, name, fmt.Sprintf("# %s, and what it was tested with.\n"+
		"# Beside the wheel:\n#   pip install --require-hashes %s -r %s\n"+
		"# From an index at URL:\n#   pip install --require-hashes --extra-index-url URL/simple/ -r FILE\n%s\n",
		e.ID, beside, name, strings.Join(lines, "\n")))
}

// writeText writes a file beside the artifact of an entry.
func writeText(e lock.Entry, dir, name, text string) (artifact.Artifact, error) {
	path := filepath.Join(dir, name)
	if err := atomicfile.Write(path, []byte(text)); err != nil {
		return artifact.Artifact{}, err
	}
	return artifact.Of(path, e.Key())
}

// writeProfile writes the run-time environment of the artifact in a format common to
// shells, Docker and systemd.
func writeProfile(e lock.Entry, dir string) (artifact.Artifact, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "# Run-time environment of %s.\n", e.ID)
	for _, v := range e.Profile {
		fmt.Fprintf(&text, "\n# %s\n# %s\n%s=%s\n", v.Because, v.Source, v.Name, v.Value)
	}
	return writeText(e, dir, e.ID+".env", text.String())
}

// sortDist finds the artifact in the output directory: the archive called tree, or the
// only wheel if tree is empty. It returns the other files sorted by name.
func sortDist(dir, tree string) (first string, beside []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", nil, err
	}
	var wheels, trees []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case filepath.Ext(path) == ".whl":
			wheels = append(wheels, path)
		case e.Name() == tree:
			trees = append(trees, path)
		default:
			beside = append(beside, path)
		}
	}
	switch {
	case tree == "" && len(wheels) != 1:
		return "", nil, diag.Errorf(diag.Build, "the build left %d wheels in $BUILDER_DIST, 1 is wanted", len(wheels)).
			WithHint("let the script of the recipe write one wheel there; the log of the step build, in the same folder as this one, has what it said")
	case tree != "" && len(trees) != 1:
		return "", nil, diag.Errorf(diag.Build, "the build left no %s in $BUILDER_DIST", tree)
	case tree != "" && len(wheels) > 0:
		return "", nil, diag.Errorf(diag.Build, "the build left a wheel in $BUILDER_DIST, and the artifact is %s", tree)
	}
	return append(trees, wheels...)[0], beside, nil
}

// move copies a file into dir unchanged.
func move(from, dir string, e lock.Entry) (artifact.Artifact, error) {
	path := filepath.Join(dir, filepath.Base(from))
	if err := atomicfile.Copy(from, path); err != nil {
		return artifact.Artifact{}, err
	}
	return artifact.Of(path, e.Key())
}

// maxMetadata is the largest size of METADATA, in bytes.
const maxMetadata = 16 << 20

// normalise writes the wheel into dir with fixed order, times and modes. It adds the
// SBOM and replaces the description by one that indexes accept.
func normalise(from, dir string, e lock.Entry) (artifact.Artifact, error) {
	w, err := wheel.Open(from)
	if err != nil {
		return artifact.Artifact{}, diag.Errorf(diag.Build, "reading the wheel: %w", err)
	}
	defer w.Close()
	spdx, err := sbom.Of(e, w)
	if err != nil {
		return artifact.Artifact{}, diag.Errorf(diag.Build, "reading the wheel: %w", err)
	}
	replace := map[string][]byte{w.DistInfo + "/" + sbom.Member: spdx}
	// The gate wheel-format refuses a wheel without metadata.
	if metadata, err := w.ReadFile(w.DistInfo+"/METADATA", maxMetadata); err == nil {
		replace[w.DistInfo+"/METADATA"] = wheel.Described(metadata)
	}
	path := filepath.Join(dir, filepath.Base(from))
	err = atomicfile.Make(path, func(out io.Writer) error {
		return wheel.Normalise(out, w, wheel.Options{Epoch: time.Unix(e.Epoch, 0), Replace: replace})
	})
	if err != nil {
		return artifact.Artifact{}, fmt.Errorf("writing the wheel: %w", err)
	}
	return artifact.Of(path, e.Key())
}
