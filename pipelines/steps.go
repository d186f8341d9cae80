package pipelines

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"dagger.io/dagger"

	"builder/internal/atomicfile"
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
	ctr, err := c.rootfs(ctx, img)
	if err != nil {
		return nil, err
	}
	ctr = withEnv(ctr, img.Env)
	if img.Setup != "" {
		ctr, _, err = c.exec(ctx, ctr, img, installCaps, shell(img.Setup))
	}
	return ctr, err
}

// rootfs starts from a registry reference by digest, or installs the locked
// Debian packages into the set that bootstraps the others.
func (c *cell) rootfs(ctx context.Context, img lock.Image) (*dagger.Container, error) {
	ctr := c.client.Container(dagger.ContainerOpts{Platform: "linux/amd64"})
	if img.Pin.Registry != "" {
		ctr, err := ctr.From(img.Pin.Registry + "@" + img.Pin.Digest).Sync(ctx)
		return ctr, unreachable(img.Pin.Registry, err)
	}
	archive, err := c.bootstrap(img.Pin)
	if err != nil {
		return nil, err
	}
	debs, err := c.stage("debs", debBlobs(img.Pin.Packages))
	if err != nil {
		return nil, err
	}
	ctr = ctr.Import(c.client.Host().File(archive)).
		WithEnvVariable("PATH", img.Env["PATH"]).
		WithMountedDirectory("/debs", debs)
	ctr, _, err = c.exec(ctx, ctr, img, installCaps, shell(deb.InstallScript(img.Pin.Packages, "/debs")))
	if err != nil {
		return nil, err
	}
	return ctr.WithoutMount("/debs"), nil
}

// unreachable is the error for an image that its registry did not hand out.
func unreachable(reference string, err error) error {
	if err == nil {
		return nil
	}
	return diag.Errorf(diag.Fetch, "pulling %s: %w", reference, err).
		WithHint("the engine must reach the image's registry; nothing was built")
}

// bootstrap writes the first layer of a Debian root file system, once for each
// list of packages, and again where the file is not what was written.
func (c *cell) bootstrap(pin lock.ImagePin) (string, error) {
	var debs []deb.Deb
	var list strings.Builder
	for _, p := range pin.Packages {
		if !p.Bootstrap {
			continue
		}
		file, ok := c.Store.Path(p.Blob())
		if !ok {
			return "", diag.Errorf(diag.Fetch, "package %s is not in the store", p.Name)
		}
		debs = append(debs, deb.Deb{Package: p, Path: file})
		fmt.Fprintln(&list, p.SHA256)
	}
	archive := filepath.Join(c.Scratch, "bootstrap-"+shortDigest(list.String())+".tar")
	sum := archive + ".sha256"
	if made, err := store.Of(archive); err == nil {
		if want, err := os.ReadFile(sum); err == nil && string(want) == made.SHA256 {
			return archive, nil
		}
	}
	if err := deb.Bootstrap(archive, debs); err != nil {
		return "", err
	}
	made, err := store.Of(archive)
	if err != nil {
		return "", err
	}
	return archive, atomicfile.Write(sum, []byte(made.SHA256))
}

// probe runs the command of every fact and compares.
func (c *cell) probe(ctx context.Context, ctr *dagger.Container, img lock.Image) error {
	names := slices.Sorted(maps.Keys(img.Provides))
	var sh strings.Builder
	for _, name := range names {
		fmt.Fprintf(&sh, "printf '%%s\\t%%s\\n' %s \"$( (%s) 2>/dev/null | tr '\\n\\t' '  ')\"\n", name, img.Provides[name].Probe)
	}
	_, out, err := c.exec(ctx, ctr, img, noCaps, []string{"sh", "-c", sh.String()})
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
	return c.withWheels(ctx, ctr, c.entry.Image)
}

// withWheels installs the locked Python packages of an image, and the wheels of the
// cells that go into this one.
func (c *cell) withWheels(ctx context.Context, ctr *dagger.Container, img lock.Image) (*dagger.Container, error) {
	ctr, err := c.withPackages(ctx, ctr, img)
	if err != nil {
		return nil, err
	}
	ctr = ctr.WithMountedFile(uvPath, c.client.Host().File(c.UV))
	for _, wheel := range c.inputs {
		if ctr, err = c.install(ctx, ctr, img, wheel.Path); err != nil {
			return nil, err
		}
	}
	return ctr.WithoutMount(uvPath), nil
}

// withPackages makes the virtual environment with the locked Python packages of an
// image.
func (c *cell) withPackages(ctx context.Context, ctr *dagger.Container, img lock.Image) (*dagger.Container, error) {
	wheels, err := c.stage("wheels", pythonBlobs(img.Wheels))
	if err != nil {
		return nil, err
	}
	uv := c.client.Host().File(c.UV)
	site := ""
	if img.Site {
		site = "--system-site-packages"
	}
	args := append(shell(script("wheels.sh")), "wheels", img.Python, "/wheels", site)
	ctr = ctr.
		WithMountedFile(uvPath, uv).
		WithMountedDirectory("/wheels", wheels)
	ctr, _, err = c.exec(ctx, ctr, img, installCaps, args)
	if err != nil {
		return nil, err
	}
	return ctr.
		WithoutMount("/wheels").
		WithoutMount(uvPath).
		WithEnvVariable("PATH", venvDir+"/bin:"+img.Env["PATH"]), nil
}

// install puts a wheel into the virtual environment of a container
// that has uv.
func (c *cell) install(ctx context.Context, ctr *dagger.Container, img lock.Image, wheel string) (*dagger.Container, error) {
	at := "/artifact/" + filepath.Base(wheel)
	script := fmt.Sprintf("UV_OFFLINE=1 UV_NO_CONFIG=1 UV_NO_CACHE=1 %s pip install --python %s --no-index --no-deps --compile-bytecode '%s'", uvPath, venvDir, at)
	ctr, _, err := c.exec(ctx, ctr.WithMountedFile(at, c.client.Host().File(wheel)), img, installCaps, shell(script))
	if err != nil {
		return nil, err
	}
	return ctr.WithoutMount(at), nil
}

// sourceStep unpacks the source at its fixed place: a released wheel as it is,
// beside the program that packs it again, of any other archive what lies in its
// only folder.
func sourceStep(ctx context.Context, c *cell, ctr *dagger.Container) (*dagger.Container, error) {
	src, err := c.stage("source", pythonBlobs([]pypi.File{c.entry.Source.File}))
	if err != nil {
		return nil, err
	}
	archive := "/source/" + c.entry.Source.Filename
	args := shell("mkdir -p " + distDir + "\n" + untar(archive, sourceDir))
	if c.entry.Source.IsWheel() {
		ctr = ctr.WithNewFile(repackPath, script("repack.py"))
		unpack := `mkdir -p "$1" "$2"; exec "$3" -I -c "$4" "$5" "$1"`
		args = append(shell(unpack), "unpack", sourceDir, distDir, c.entry.Image.Python, script("unpack.py"), archive)
	}
	ctr, _, err = c.exec(ctx, ctr.WithMountedDirectory("/source", src), c.entry.Image, noCaps, args)
	if err != nil {
		return nil, err
	}
	return ctr.WithoutMount("/source").WithWorkdir(sourceDir), nil
}

// untar is a script that unpacks the only folder of an archive. Owners are not
// restored: root without CAP_DAC_OVERRIDE could not write into files of another
// user.
func untar(archive, to string) string {
	return fmt.Sprintf("mkdir -p %s\ntar -x --no-same-owner --strip-components=1 -C %s -f '%s'\n", to, to, archive)
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

// canaryStep tries to leave a container that is shut off as the build's is. What
// it saw is kept with the result; if it got out, the cell fails.
func canaryStep(ctx context.Context, c *cell, ctr *dagger.Container) (*dagger.Container, error) {
	img := c.entry.Image
	_, seen, err := c.exec(ctx, ctr, img, noCaps, []string{img.Python, "-I", "-c", script("canary.py")})
	if err != nil {
		return nil, fmt.Errorf("the network can be reached, the run or the host can be told from another, or the canary could not try: %w", err)
	}
	c.canary = strings.TrimSpace(seen)
	return ctr, nil
}

// buildStep runs the recipe's script without a network and without
// capabilities.
func buildStep(ctx context.Context, c *cell, ctr *dagger.Container) (*dagger.Container, error) {
	ctr, script := withEnv(ctr, buildEnv(c.entry)), c.entry.Script
	if c.usesCcache() {
		ctr, script = c.withCcache(ctr), ccacheScript+script
	}
	ctr, _, err := c.execNamed(ctx, ctr, c.entry.Image, c.turn, noCaps, shell(script))
	return ctr, err
}

// buildEnv is the environment of the build step, all of it: what recipe and
// image state, and what would otherwise be the machine's own.
func buildEnv(e lock.Entry) map[string]string {
	env := maps.Clone(e.Image.Env)
	maps.Copy(env, e.Env)
	maps.Copy(env, map[string]string{
		"PATH":              venvDir + "/bin:" + e.Image.Env["PATH"],
		"SOURCE_DATE_EPOCH": fmt.Sprint(e.Epoch),
		"HOME":              "/build",
		"LC_ALL":            "C.UTF-8",
		"TZ":                "UTC",
		"PYTHONHASHSEED":    "0",
		"BUILDER_DIST":      distDir,
	})
	if e.Source.IsWheel() {
		env["BUILDER_SOURCE"] = e.Source.Filename
	}
	return env
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

// WriteFile replaces a file and keeps its mode.
func (t *containerTree) WriteFile(ctx context.Context, name string, data []byte) error {
	at := path.Join(sourceDir, name)
	mode, err := t.ctr.File(at).Stat().Permissions(ctx)
	if err != nil {
		return fmt.Errorf("asking for its mode: %w", err)
	}
	var opts dagger.ContainerWithNewFileOpts
	if mode != 0o644 { // which is what the engine gives; to name it is another question for its cache
		opts.Permissions = mode
	}
	t.ctr = t.ctr.WithNewFile(at, string(data), opts)
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

// debBlobs names the files of locked Debian packages in the store.
func debBlobs(packages []deb.Package) []store.Blob {
	blobs := make([]store.Blob, len(packages))
	for i, p := range packages {
		blobs[i] = p.Blob()
	}
	return blobs
}

// pythonBlobs names the files of locked Python packages in the store.
func pythonBlobs(files []pypi.File) []store.Blob {
	blobs := make([]store.Blob, len(files))
	for i, f := range files {
		blobs[i] = f.Blob()
	}
	return blobs
}
