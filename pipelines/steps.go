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

	"builder/internal/base/diag"
	"builder/internal/gates/gate"
	"builder/internal/input/pypi"
	"builder/internal/plan/lock"
	"builder/internal/plan/patch"
)

// imageStep makes the build image and verifies its facts.
func imageStep(ctx context.Context, c *cell, _ *dagger.Container) (ctr *dagger.Container, err error) {
	c.image, err = c.proven(ctx, c.entry.Image)
	return c.image, err
}

// packagesStep installs the locked Python packages of the build, and asks the framework
// among them for its platform. It asks before the source comes, so that the engine keeps
// the answer for every change of the source.
func packagesStep(ctx context.Context, c *cell, ctr *dagger.Container) (*dagger.Container, error) {
	ctr, err := c.withBuildPackages(ctx, c.writable(ctr, buildDir))
	if err != nil {
		return nil, err
	}
	asked := withEnv(ctr, buildEnv(c.entry))
	return ctr, gate.AskFramework(c.entry.Expect, func(args ...string) (string, error) {
		_, output, err := c.exec(ctx, asked, firstTime, noCaps, append([]string{venvOf(c.entry.Image) + "/bin/python"}, args...))
		return output, err
	})
}

// withBuildPackages installs the locked Python packages of the build. Those that the
// run-time has too come from its virtual environment, so that a framework of several GB is
// unpacked once. The container gets a view of it that nothing else can change.
func (c *cell) withBuildPackages(ctx context.Context, ctr *dagger.Container) (*dagger.Container, error) {
	img, shared := c.entry.Image, sharedWheels(c.entry)
	if len(shared) == 0 {
		ctr, err := c.withVenv(ctx, ctr, img, img.Wheels)
		if err != nil {
			return nil, err
		}
		return c.withWheels(ctx, ctr, img, nil)
	}
	base, err := c.commonRuntime(ctx)
	if err != nil {
		return nil, err
	}
	venv := venvOf(img)
	ctr = withVenvPath(ctr.WithMountedDirectory(venv, base.Directory(venv)), img)
	return c.withWheels(ctx, ctr, img, without(img.Wheels, shared))
}

// sharedWheels returns the locked Python packages that a build and its run-time have in
// common. There are none if the interpreters differ, because each compiles the packages.
func sharedWheels(e lock.Entry) []pypi.File {
	own := e.Image.Site || e.Runtime.Site || venvOf(e.Image) != venvOf(e.Runtime)
	if own || interpreter(e.Image) == "" || interpreter(e.Image) != interpreter(e.Runtime) {
		return nil
	}
	return without(e.Image.Wheels, without(e.Image.Wheels, e.Runtime.Wheels))
}

// interpreter returns a text that two images share only if they have the same Python, from
// the same files. It is "" if the files are not known.
func interpreter(img lock.Image) string {
	if img.CPython != nil {
		return img.Python + " " + img.CPython.SHA256
	}
	for _, p := range img.Pin.Packages {
		if p.Name == path.Base(img.Python)+"-minimal" {
			return img.Python + " " + p.SHA256
		}
	}
	return ""
}

// without returns the files that are not among others.
func without(files, others []pypi.File) []pypi.File {
	return slices.DeleteFunc(slices.Clone(files), func(f pypi.File) bool { return slices.Contains(others, f) })
}

// withWheels installs further locked Python packages of an image into its virtual
// environment, and the wheels of the entry's inputs.
func (c *cell) withWheels(ctx context.Context, ctr *dagger.Container, img lock.Image, more []pypi.File) (*dagger.Container, error) {
	ctr = ctr.WithMountedFile(uvPath, c.client.Host().File(c.UV))
	if len(more) > 0 {
		wheels, err := stage(c.images, "wheels", more...)
		if err != nil {
			return nil, err
		}
		if ctr, _, err = c.exec(ctx, ctr.WithMountedDirectory("/wheels", wheels), firstTime, installCaps, shell(installScript(venvOf(img), "/wheels/*.whl"))); err != nil {
			return nil, err
		}
		ctr = ctr.WithoutMount("/wheels")
	}
	for _, wheel := range c.inputs {
		var err error
		if ctr, err = c.install(ctx, ctr, venvOf(img), wheel.Path); err != nil {
			return nil, err
		}
	}
	return ctr.WithoutMount(uvPath), nil
}

// withVenv creates the virtual environment of an image with the packages wheels. It makes
// the directories dirs too, because they are cheap only here: see [session.writable].
func (m images) withVenv(ctx context.Context, ctr *dagger.Container, img lock.Image, wheels []pypi.File, dirs ...string) (*dagger.Container, error) {
	staged, err := stage(m, "wheels", wheels...)
	if err != nil {
		return nil, err
	}
	venv, site := venvOf(img), ""
	making := script("wheels.sh")
	if img.Site {
		site = "--system-site-packages"
		making += addImageSite
	}
	args := append(shell(strings.ReplaceAll(making, venvDir, venv)), "wheels", img.Python, "/wheels", site)
	ctr = m.writable(ctr, append(dirs, venv)...).
		WithMountedFile(uvPath, m.client.Host().File(m.UV)).
		WithMountedDirectory("/wheels", staged)
	ctr, _, err = m.exec(ctx, ctr, firstTime, installCaps, args)
	if err != nil {
		return nil, err
	}
	return withVenvPath(ctr.WithoutMount("/wheels").WithoutMount(uvPath), img), nil
}

// withVenvPath puts the programs of the virtual environment first.
func withVenvPath(ctr *dagger.Container, img lock.Image) *dagger.Container {
	return setEnv(ctr, "PATH", venvOf(img)+"/bin:"+img.Env["PATH"])
}

// addImageSite follows wheels.sh if the packages of the interpreter belong to the image.
// An interpreter that is itself a virtual environment hands on only those of its base, so
// its own directory is added, with the .pth files in it. It is no part of [Revision]:
// without it no cell with such an interpreter could be built.
const addImageSite = `
site=$("$1" -I -c 'import sys, sysconfig; print("" if sys.prefix == sys.base_prefix else sysconfig.get_path("purelib"))')
[ -z "$site" ] || printf 'import site; site.addsitedir("%s")\n' "$site" > "$(/opt/venv/bin/python -I -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/image.pth"
`

// venvOf returns the path of the virtual environment that builder makes in an image. An
// image may have its own at venvDir, such as AMD's with PyTorch for ROCm 7.0.
func venvOf(img lock.Image) string {
	if strings.HasPrefix(img.Python, venvDir+"/") {
		return "/opt/builder-venv"
	}
	return venvDir
}

// install installs a wheel into the virtual environment of a container with uv.
func (s *session) install(ctx context.Context, ctr *dagger.Container, venv, wheel string) (*dagger.Container, error) {
	at := "/artifact/" + filepath.Base(wheel)
	ctr, _, err := s.exec(ctx, ctr.WithMountedFile(at, s.client.Host().File(wheel)), firstTime, installCaps, shell(installScript(venv, "'"+at+"'")))
	if err != nil {
		return nil, err
	}
	return ctr.WithoutMount(at), nil
}

// installScript returns a script that installs wheels, as the shell reads them.
func installScript(venv, wheels string) string {
	return fmt.Sprintf("UV_OFFLINE=1 UV_NO_CONFIG=1 UV_NO_CACHE=1 %s pip install --python %s --no-index --no-deps --compile-bytecode %s", uvPath, venv, wheels)
}

// sourceStep unpacks the source at its fixed path. It unpacks a released wheel as it is
// and adds the program to repack it. Of any other archive it unpacks the content of the
// only folder.
func sourceStep(ctx context.Context, c *cell, ctr *dagger.Container) (*dagger.Container, error) {
	src, err := stage(c.images, "source", c.entry.Source.File)
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
	ctr, _, err = c.exec(ctx, ctr.WithMountedDirectory("/source", src), firstTime, noCaps, args)
	if err != nil {
		return nil, err
	}
	return ctr.WithoutMount("/source").WithWorkdir(sourceDir), nil
}

// untar returns a script that unpacks the only folder of an archive. It does not
// restore owners, because root without CAP_DAC_OVERRIDE could not write into other
// users' files.
func untar(archive, to string) string {
	return fmt.Sprintf("mkdir -p %s\ntar -x --no-same-owner --strip-components=1 -C %s -f '%s'\n", to, to, archive)
}

// patchStep applies the selected patches in order and logs the effect of each.
func patchStep(ctx context.Context, c *cell, ctr *dagger.Container) (*dagger.Container, error) {
	tree := &containerTree{ctr: ctr}
	var errs []error
	for _, p := range c.entry.Patches {
		result, err := patch.Apply(ctx, tree, p, c.entry.Facts)
		if err != nil {
			errs = append(errs, unpatched(c.entry.Recipe, p.Name, err))
			continue
		}
		c.stream.note("%s: %s", result.Patch, result.State)
		for _, e := range result.Edits {
			c.stream.note("  %s %s: %s", e.Kind, e.File, e.Detail)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return tree.ctr.Sync(ctx)
}

// unpatched names the patch in each of its errors, and in the hint the command that
// applies the patches of the recipe to every version.
func unpatched(recipe, name string, err error) error {
	var all []*diag.Error
	for _, part := range diag.Split(err) {
		e := diag.All(fmt.Errorf("patch %s: %w", name, part))[0]
		e.Hint = strings.TrimPrefix(fmt.Sprintf("%s; `builder patch audit --fetch %s` applies the patches to every version, without a build", e.Hint, recipe), "; ")
		all = append(all, e)
	}
	return diag.Joined(all)
}

// canaryStep tries to break out of a container isolated like that of the build. Its
// findings are kept with the result. If it breaks out, the cell fails.
func canaryStep(ctx context.Context, c *cell, ctr *dagger.Container) (*dagger.Container, error) {
	img := c.entry.Image
	// The answer of another time, from the engine's cache, says nothing about this build.
	_, seen, err := c.exec(ctx, ctr, nextTime(), noCaps, []string{img.Python, "-I", "-c", script("canary.py")})
	if err != nil {
		return nil, fmt.Errorf("the network can be reached, the run or the host can be told from another, or the canary could not try: %w", err)
	}
	c.canary = strings.TrimSpace(seen)
	return ctr, nil
}

// buildStep runs the recipe's script without network and capabilities.
func buildStep(ctx context.Context, c *cell, ctr *dagger.Container) (built *dagger.Container, err error) {
	ctr = withEnv(ctr, buildEnv(c.entry))
	if usesCcache(c.Ccache, c.turn) {
		ctr = mountCcache(ctr, c.client, c.Ccache, ccacheVolume(c.entry))
		built, c.ccache, err = execCcached(ctx, c.session, ctr, c.entry.Script)
	} else {
		built, _, err = c.exec(ctx, ctr, c.turn, noCaps, shell(c.entry.Script))
	}
	return built, err
}

// buildEnv returns the complete environment of the build step: variables of the recipe
// and the image, and fixed values for variables that differ between machines.
func buildEnv(e lock.Entry) map[string]string {
	env := maps.Clone(e.Image.Env)
	maps.Copy(env, e.Env)
	maps.Copy(env, map[string]string{
		"PATH":              venvOf(e.Image) + "/bin:" + e.Image.Env["PATH"],
		"SOURCE_DATE_EPOCH": fmt.Sprint(e.Epoch),
		"HOME":              buildDir,
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

// withEnv sets a guest's variables in a fixed order, because the order is part of the
// cache key.
func withEnv(ctr *dagger.Container, env map[string]string) *dagger.Container {
	for _, k := range slices.Sorted(maps.Keys(env)) {
		ctr = setEnv(ctr, k, env[k])
	}
	return ctr
}

// containerTree is the source in a container as a [patch.Tree]. Each write creates a
// new container.
type containerTree struct{ ctr *dagger.Container }

var _ patch.Tree = (*containerTree)(nil)

func (t *containerTree) ReadFile(ctx context.Context, name string) ([]byte, error) {
	at := path.Join(sourceDir, name)
	kind, err := t.ctr.Stat(at).FileType(ctx) // opening a pipe would block
	if err != nil && strings.Contains(err.Error(), "no such file") {
		return nil, fmt.Errorf("%s: %w", name, os.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	if kind != dagger.FileTypeRegular {
		return nil, diag.Errorf(diag.Build, "%s is no regular file in the source", name)
	}
	text, err := t.ctr.File(at).Contents(ctx)
	return []byte(text), err
}

// WriteFile replaces a file and keeps its mode.
func (t *containerTree) WriteFile(ctx context.Context, name string, data []byte) error {
	at := path.Join(sourceDir, name)
	mode, err := t.ctr.File(at).Stat().Permissions(ctx)
	if err != nil {
		return fmt.Errorf("asking for its mode: %w", err)
	}
	opts := dagger.ContainerWithNewFileOpts{Owner: guestOwner}
	if mode != 0o644 { // the engine's default; naming it would change the cache key
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
