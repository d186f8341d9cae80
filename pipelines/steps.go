package pipelines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"dagger.io/dagger"

	"builder/internal/deb"
	"builder/internal/diag"
	"builder/internal/lock"
	"builder/internal/patch"
	"builder/internal/pypi"
	"builder/internal/store"
)

// imageStep makes the build image and proves that it is what it says.
func imageStep(ctx context.Context, c *cell, _ *dagger.Container) (*dagger.Container, error) {
	ctr, err := c.base(ctx, c.entry.Image)
	if err != nil {
		return nil, err
	}
	return ctr, c.probe(ctx, ctr, c.entry.Image)
}

// base returns a container of a locked image, with its setup done.
func (c *cell) base(ctx context.Context, img lock.Image) (*dagger.Container, error) {
	ctr, err := c.rootfs(img)
	if err != nil {
		return nil, err
	}
	ctr = withEnv(ctr, img.Env)
	if img.Setup != "" {
		ctr = offline(ctr, img, installCaps, shell(img.Setup), dagger.ContainerWithExecOpts{})
	}
	return ctr.Sync(ctx)
}

// rootfs starts from a registry reference by digest, or installs the locked
// Debian packages into the set that bootstraps the others.
func (c *cell) rootfs(img lock.Image) (*dagger.Container, error) {
	ctr := c.client.Container(dagger.ContainerOpts{Platform: "linux/amd64"})
	if img.Pin.Registry != "" {
		return ctr.From(img.Pin.Registry + "@" + img.Pin.Digest), nil
	}
	archive, err := c.bootstrap(img.Pin)
	if err != nil {
		return nil, err
	}
	debs, err := c.stage("debs", DebBlobs(img.Pin.Packages))
	if err != nil {
		return nil, err
	}
	ctr = ctr.Import(c.client.Host().File(archive)).
		WithEnvVariable("PATH", img.Env["PATH"]).
		WithMountedDirectory("/debs", debs)
	install := offline(ctr, img, installCaps, shell(deb.InstallScript(img.Pin.Packages, "/debs")), dagger.ContainerWithExecOpts{})
	return install.WithoutMount("/debs"), nil
}

// bootstrap writes the first layer of a Debian root file system, once for each
// list of packages.
func (c *cell) bootstrap(pin lock.ImagePin) (string, error) {
	data, err := json.Marshal(pin.Packages)
	if err != nil {
		return "", err
	}
	archive := filepath.Join(c.Scratch, "bootstrap-"+digest(data)+".tar")
	if _, err := os.Stat(archive); err == nil {
		return archive, nil
	}
	var debs []deb.Deb
	for _, p := range pin.Packages {
		file, ok := c.Store.Path(debBlob(p))
		if !ok {
			return "", diag.Errorf(diag.Fetch, "package %s is not in the store", p.Name)
		}
		debs = append(debs, deb.Deb{Package: p, Path: file})
	}
	return archive, deb.Bootstrap(archive, debs)
}

// probe runs the command of every fact and compares.
func (c *cell) probe(ctx context.Context, ctr *dagger.Container, img lock.Image) error {
	names := slices.Sorted(maps.Keys(img.Provides))
	var sh strings.Builder
	for _, name := range names {
		fmt.Fprintf(&sh, "printf '%%s\\t%%s\\n' %s \"$( (%s) 2>/dev/null | tr '\\n\\t' '  ')\"\n", name, img.Provides[name].Probe)
	}
	out, err := offline(ctr, img, noCaps, []string{"sh", "-c", sh.String()}, dagger.ContainerWithExecOpts{}).Stdout(ctx)
	if err != nil {
		return err
	}
	have := map[string]string{}
	for line := range strings.Lines(out) {
		name, value, _ := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		have[name] = strings.TrimSpace(value)
	}
	var faults []error
	for _, name := range names {
		if want := img.Provides[name].Is; have[name] != want {
			faults = append(faults, diag.Errorf(diag.Drift, "image %s: %s is %q, the catalogue says %q", img.Pin.Name, name, have[name], want).
				WithHint("the image is not what the catalogue says: correct provides in images/, or the pins in the lock"))
		}
	}
	return errors.Join(faults...)
}

// packagesStep installs the locked Python packages of the build.
func packagesStep(ctx context.Context, c *cell, ctr *dagger.Container) (*dagger.Container, error) {
	ctr, err := c.withWheels(ctr, c.entry.Image)
	if err != nil {
		return nil, err
	}
	return ctr.Sync(ctx)
}

func (c *cell) withWheels(ctr *dagger.Container, img lock.Image) (*dagger.Container, error) {
	wheels, err := c.stage("wheels", PythonBlobs(img.Wheels))
	if err != nil {
		return nil, err
	}
	uv := c.client.Host().File(c.UV)
	args := append(shell(script("wheels.sh")), "wheels", img.Python, "/wheels")
	ctr = ctr.
		WithMountedFile(uvPath, uv).
		WithMountedDirectory("/wheels", wheels)
	return offline(ctr, img, installCaps, args, dagger.ContainerWithExecOpts{}).
		WithoutMount(uvPath).
		WithoutMount("/wheels").
		WithEnvVariable("PATH", venvDir+"/bin:"+img.Env["PATH"]), nil
}

// sourceStep unpacks the source at its fixed place. Owners are not restored:
// root without CAP_DAC_OVERRIDE could not write into files of another user.
func sourceStep(ctx context.Context, c *cell, ctr *dagger.Container) (*dagger.Container, error) {
	src, err := c.stage("source", PythonBlobs([]pypi.File{c.entry.Source}))
	if err != nil {
		return nil, err
	}
	unpack := fmt.Sprintf("mkdir -p %s %s\ntar -x --no-same-owner --strip-components=1 -C %s -f '/source/%s'\n",
		sourceDir, distDir, sourceDir, c.entry.Source.Filename)
	ctr = offline(ctr.WithMountedDirectory("/source", src), c.entry.Image, noCaps, shell(unpack), dagger.ContainerWithExecOpts{})
	return ctr.WithoutMount("/source").WithWorkdir(sourceDir).Sync(ctx)
}

// patchStep applies the chosen patches in order; the log says what each did.
func patchStep(ctx context.Context, c *cell, ctr *dagger.Container) (*dagger.Container, error) {
	tree := &containerTree{ctr: ctr}
	var faults []error
	for _, p := range c.entry.Patches {
		result, err := patch.Apply(ctx, tree, p, c.entry.Facts)
		if err != nil {
			faults = append(faults, fmt.Errorf("patch %s: %w", p.Name, err))
			continue
		}
		c.stream.note("%s: %s", result.Patch, result.State)
		for _, e := range result.Edits {
			c.stream.note("  %s %s: %s", e.Kind, e.File, e.Detail)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return tree.ctr.Sync(ctx)
}

// buildStep sends out the canary and runs the recipe's script, both without a
// network and without capabilities.
func buildStep(ctx context.Context, c *cell, ctr *dagger.Container) (*dagger.Container, error) {
	ctr = withEnv(ctr, c.entry.Env).
		WithEnvVariable("SOURCE_DATE_EPOCH", fmt.Sprint(c.entry.Epoch)).
		WithEnvVariable("HOME", "/build").
		WithEnvVariable("LC_ALL", "C.UTF-8").
		WithEnvVariable("TZ", "UTC").
		WithEnvVariable("PYTHONHASHSEED", "0").
		WithEnvVariable("BUILDER_DIST", distDir)
	canary, err := offline(ctr, c.entry.Image, noCaps, []string{c.entry.Image.Python, "-I", "-c", script("canary.py")}, dagger.ContainerWithExecOpts{}).Stdout(ctx)
	if err != nil {
		return nil, fmt.Errorf("the canary reached the network, or could not try: %w", err)
	}
	c.canary = strings.TrimSpace(canary)
	return offline(ctr, c.entry.Image, noCaps, shell(c.entry.Script), dagger.ContainerWithExecOpts{}).Sync(ctx)
}

// containerTree is the source in a container as [patch.Tree]. Each write makes
// the next container.
type containerTree struct{ ctr *dagger.Container }

var _ patch.Tree = (*containerTree)(nil)

func (t *containerTree) ReadFile(ctx context.Context, name string) ([]byte, error) {
	text, err := t.ctr.File(path.Join(sourceDir, name)).Contents(ctx)
	if err != nil && strings.Contains(err.Error(), "no such file") {
		return nil, fmt.Errorf("%s: %w", name, os.ErrNotExist)
	}
	return []byte(text), err
}

func (t *containerTree) WriteFile(_ context.Context, name string, data []byte) error {
	t.ctr = t.ctr.WithNewFile(path.Join(sourceDir, name), string(data))
	return nil
}

func (t *containerTree) Symlink(ctx context.Context, target, link string) error {
	dir, base := path.Split(target)
	entries, err := t.ctr.Directory(dir).Entries(ctx)
	if err != nil || !slices.ContainsFunc(entries, func(e string) bool { return strings.TrimSuffix(e, "/") == base }) {
		return fmt.Errorf("the image has no %s", target)
	}
	t.ctr = t.ctr.WithSymlink(target, path.Join(sourceDir, link))
	return nil
}

// DebBlobs names the files of locked Debian packages in the store.
func DebBlobs(packages []deb.Package) []store.Blob {
	blobs := make([]store.Blob, len(packages))
	for i, p := range packages {
		blobs[i] = debBlob(p)
	}
	return blobs
}

func debBlob(p deb.Package) store.Blob {
	return store.Blob{Name: path.Base(p.Path), Size: p.Size, SHA256: p.SHA256}
}

// PythonBlobs names the files of locked Python packages in the store.
func PythonBlobs(files []pypi.File) []store.Blob {
	blobs := make([]store.Blob, len(files))
	for i, f := range files {
		blobs[i] = store.Blob{Name: f.Filename, Size: f.Size, SHA256: f.SHA256}
	}
	return blobs
}
