package pipelines

import (
	"context"
	"errors"
	"path/filepath"

	"builder/internal/base/diag"
	"builder/internal/files/artifact"
	"builder/internal/input/pypi"
	"builder/internal/plan/lock"
	"builder/internal/plan/stack"
)

// A stack is not built, because its wheels exist already. They are laid out on this
// host. The engine is only needed for the container of the gates.

// StepNames lists the steps for the artifacts of a draft.
func StepNames(d lock.Draft) []string {
	if d.Settings.Expect.Wheelhouse != nil {
		return []string{gatherStep}
	}
	return Names()
}

const gatherStep = "wheelhouse"

func isStack(e lock.Entry) bool { return e.Expect.Wheelhouse != nil }

// gather lays out the wheels of a stack's parts and of their dependencies.
func (c *cell) gather(ctx context.Context, dir string) (made []artifact.Artifact, err error) {
	_, end := c.step(ctx, gatherStep)
	manifest, places, err := c.manifest()
	if err == nil {
		made, err = manifest.Write(dir, places, []byte(c.entry.Expect.Wheelhouse.Profile))
	}
	return made, end(err)
}

// manifest returns the content of the entry's wheelhouse, and the current path of each
// file.
func (c *cell) manifest() (stack.Manifest, map[string]string, error) {
	m := stack.Manifest{Format: stack.Format, Stack: c.entry.ID, Key: c.entry.Key(), Extra: []stack.Wheel{}, Provided: c.entry.Expect.Wheelhouse.Provided}
	places := map[string]string{}
	for i, in := range c.entry.Inputs {
		a := c.inputs[i]
		m.Parts = append(m.Parts, stack.Built{
			Wheel:  stack.Wheel{Name: a.Name, SHA256: a.SHA256, Size: a.Size},
			Recipe: in.Recipe, Cell: in.ID, Key: in.Key, Axes: in.Axes,
		})
		places[a.Name] = a.Path
	}
	var errs []error
	for _, f := range c.entry.Runtime.Wheels {
		path, ok := c.Store.Path(f.Blob())
		if !ok {
			errs = append(errs, diag.Errorf(diag.Fetch, "%s is not in the store", f.Filename))
		}
		m.Extra = append(m.Extra, stack.Wheel{Name: f.Filename, SHA256: f.SHA256, Size: f.Size})
		places[f.Filename] = path
	}
	return m, places, errors.Join(errs...)
}

// emptyBox returns a container with a wheelhouse as files, an interpreter without
// packages, and uv.
func (c *cell) emptyBox(ctx context.Context, manifest string) (box, error) {
	img := c.entry.Runtime
	img.Wheels, img.Site = []pypi.File{}, false
	ctr, err := c.proven(ctx, img)
	if err == nil {
		ctr, err = c.withPackages(ctx, ctr, img, boxDir)
	}
	if err != nil {
		return box{}, err
	}
	wheels := c.client.Host().Directory(filepath.Join(filepath.Dir(manifest), stack.Folder))
	ctr = ctr.
		WithMountedFile(uvPath, c.client.Host().File(c.UV)).
		WithMountedDirectory(boxDir+"/"+stack.Folder, wheels).
		WithWorkdir(boxDir)
	return box{c.session, withEnv(ctr, map[string]string{"HOME": boxDir, "LC_ALL": "C.UTF-8"}), venvOf(img)}, nil
}
