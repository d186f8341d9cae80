package pipelines

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dagger.io/dagger"

	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/input/cpython"
	"builder/internal/input/deb"
	"builder/internal/input/oci"
	"builder/internal/input/store"
	"builder/internal/plan/image"
	"builder/internal/plan/lock"
)

// images makes containers of locked images in a session of an engine.
type images struct {
	*Engine
	*session
}

// proven returns a container of a locked image after its setup, and verifies the image's
// facts. It pulls the image from a registry by digest, or installs the locked Debian
// packages on top of the bootstrap set.
func (m images) proven(ctx context.Context, img lock.Image) (*dagger.Container, error) {
	ctr := m.client.Container(dagger.ContainerOpts{Platform: "linux/amd64"})
	if img.Pin.Registry != "" {
		pulled, err := m.pulled(ctx, ctr, img.Pin)
		if err != nil {
			return nil, err
		}
		// Variables of the image's own configuration are dropped, because the recipe
		// and the catalogue define the environment of a step.
		ctr = ctr.WithRootfs(pulled.Rootfs())
	} else {
		archive, err := m.bootstrap(ctx, img.Pin)
		if err != nil {
			return nil, err
		}
		debs, err := stage(m, "debs", img.Pin.Packages...)
		if err != nil {
			return nil, err
		}
		ctr = ctr.Import(m.client.Host().File(archive))
		m.tools = ctr.Rootfs()
		ctr = setEnv(ctr, "PATH", img.Env["PATH"]).WithMountedDirectory("/debs", debs)
		ctr, _, err = m.exec(ctx, ctr, firstTime, installCaps, shell(deb.InstallScript(img.Pin.Packages, "/debs")))
		if err != nil {
			return nil, err
		}
		ctr = ctr.WithoutMount("/debs")
	}
	var err error
	if img.CPython != nil {
		if ctr, err = m.withCPython(ctx, ctr, img.CPython); err != nil {
			return nil, err
		}
	}
	ctr = withEnv(ctr, img.Env)
	if img.Setup != "" {
		if ctr, _, err = m.exec(ctx, ctr, firstTime, installCaps, shell(img.Setup)); err != nil {
			return nil, err
		}
	}
	return ctr, probe(ctx, m.session, ctr, img)
}

// withCPython lays a CPython into a root file system.
func (m images) withCPython(ctx context.Context, ctr *dagger.Container, python *image.CPython) (*dagger.Container, error) {
	jar, ok := m.Store.Path(python.Blob())
	if !ok {
		return nil, diag.Errorf(diag.Fetch, "%s is not in the store", python.Filename())
	}
	archive, err := m.archive(ctx, "cpython-"+shortDigest(python.SHA256+python.Folder), func(w io.Writer) error {
		return cpython.Write(w, jar, python.Filename(), python.Folder, image.CPythonDir)
	})
	if err != nil {
		return nil, err
	}
	const at = "/cpython.tar"
	ctr, _, err = m.exec(ctx, m.writable(ctr, image.CPythonDir).WithMountedFile(at, m.client.Host().File(archive)), firstTime, installCaps, shell("tar -C / -xf "+at+"\n"+
		// Gates cannot write here, so every start would compile the standard library.
		image.CPythonDir+"/bin/python"+python.Minor()+" -m compileall -q -j 0 --invalidation-mode unchecked-hash -x '/(test|tests|idlelib|lib2to3)/' "+image.CPythonDir+"/lib/python"+python.Minor()))
	if err != nil {
		return nil, err
	}
	return ctr.WithoutMount(at), nil
}

// archive returns the path of a tar file in the scratch directory, which the next run uses
// again. fill writes it if there is none, or if it has changed since. Of several processes
// with one home, one writes it: an engine that reads the file while another replaces it says
// "mod time changed".
func (e *Engine) archive(ctx context.Context, name string, fill func(io.Writer) error) (string, error) {
	path := filepath.Join(e.Scratch, name+".tar")
	free, err := store.Lock(ctx, path+".lock", nil)
	if err != nil {
		return "", err
	}
	defer free()
	if e.intact(path) {
		return path, nil
	}
	sum := sha256.New()
	if err := atomicfile.Make(path, func(w io.Writer) error { return fill(io.MultiWriter(w, sum)) }); err != nil {
		return "", err
	}
	return path, atomicfile.Write(path+sumEnd, []byte(hex.EncodeToString(sum.Sum(nil))))
}

// sumEnd is the end of the name of the file with the digest of an archive.
const sumEnd = ".sha256"

// intact reports whether an archive has the digest in the file beside it. An archive has a
// hundred megabytes and every cell asks several times, so a file that has not changed
// since is read once.
func (e *Engine) intact(archive string) bool {
	info, err := os.Stat(archive)
	if err != nil {
		return false
	}
	if seen, ok := e.checked.Load(archive); ok && unchanged(seen.(os.FileInfo), info) {
		return true
	}
	want, err := os.ReadFile(archive + sumEnd)
	if err != nil {
		return false
	}
	made, err := store.Of(archive)
	if err != nil || string(want) != made.SHA256 {
		return false
	}
	e.checked.Store(archive, info)
	return true
}

// unchanged reports whether two looks saw the same file with the same size and time.
func unchanged(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// pulled returns a container of a registry image, from the store if it has the image.
func (m images) pulled(ctx context.Context, ctr *dagger.Container, pin lock.ImagePin) (*dagger.Container, error) {
	if _, held := oci.Held(m.Store, pin.Digest); held {
		archive, err := m.archive(ctx, "image-"+strings.ReplaceAll(pin.Digest, ":", "-"), func(w io.Writer) error {
			return oci.Layout(w, m.Store, pin.Digest)
		})
		if err != nil {
			return nil, err
		}
		return ctr.Import(m.client.Host().File(archive)).Sync(ctx)
	}
	image := m.Registries.Reference(pin.Registry + "@" + pin.Digest)
	ctr, err := ctr.From(image).Sync(ctx)
	if err != nil {
		return nil, diag.Errorf(diag.Fetch, "pulling %s: %w", image, err).
			WithHint("the engine must reach the image's registry, or its mirror in BUILDER_MIRROR_REGISTRY; nothing was built")
	}
	_ = atomicfile.Write(Pulled(m.Scratch, pin.Digest), nil) // if it fails, a later run asks the registry first
	return ctr, nil
}

// Pulled returns the path of a marker file in the scratch directory. The file exists if
// an engine has pulled the image with this digest.
func Pulled(scratch, digest string) string {
	return filepath.Join(scratch, "pulled-"+strings.ReplaceAll(digest, ":", "-"))
}

// bootstrap returns the path of the first layer of a Debian root file system.
func (e *Engine) bootstrap(ctx context.Context, pin lock.ImagePin) (string, error) {
	var debs []deb.Deb
	var list strings.Builder
	for _, p := range pin.Packages {
		if !p.Bootstrap {
			continue
		}
		file, ok := e.Store.Path(p.Blob())
		if !ok {
			return "", diag.Errorf(diag.Fetch, "package %s is not in the store", p.Name)
		}
		debs = append(debs, deb.Deb{Package: p, Path: file})
		fmt.Fprintln(&list, p.SHA256)
	}
	fmt.Fprintln(&list, firstID)
	return e.archive(ctx, "bootstrap-"+shortDigest(list.String()), func(w io.Writer) error {
		return deb.Bootstrap(w, e.Scratch, debs, firstID)
	})
}

// probe runs the command of every fact and compares the output.
func probe(ctx context.Context, s *session, ctr *dagger.Container, img lock.Image) error {
	names := slices.Sorted(maps.Keys(img.Provides))
	var sh strings.Builder
	for _, name := range names {
		fmt.Fprintf(&sh, "printf '%%s\\t%%s\\n' %s \"$( (%s) 2>/dev/null | tr '\\n\\t' '  ')\"\n", name, img.Provides[name].Probe)
	}
	_, out, err := s.exec(ctx, ctr, firstTime, noCaps, []string{"sh", "-c", sh.String()})
	if err != nil {
		return err
	}
	have := map[string]string{}
	for line := range strings.Lines(out) {
		name, value, _ := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		have[name] = strings.TrimSpace(value)
	}
	var errs []error
	for _, name := range names {
		if want := img.Provides[name].Is; have[name] != want {
			errs = append(errs, diag.Errorf(diag.Drift, "image %s: %s is %q, the catalogue says %q", img.Pin.Name, name, have[name], want).
				WithHint("the image is not what the catalogue says: correct provides in images/, or the pins in the lock"))
		}
	}
	return errors.Join(errs...)
}

// locked is a file with a place in the store: a Debian package or a Python file.
type locked interface{ Blob() store.Blob }

// shortDigest distinguishes directories and volumes of the same kind.
func shortDigest(text string) string { return regular.Sum([]byte(text))[:16] }

// stage puts locked files into a directory for the engine, so that one mount covers all
// of them.
func stage[F locked](m images, name string, files ...F) (*dagger.Directory, error) {
	dir, err := lay(m.Engine, name, files...)
	if err != nil {
		return nil, err
	}
	return m.client.Host().Directory(dir), nil
}

// lay puts locked files under their names into a directory of this host.
func lay[F locked](e *Engine, name string, files ...F) (string, error) {
	var blobs []store.Blob
	var list strings.Builder
	for _, f := range files {
		b := f.Blob()
		blobs = append(blobs, b)
		fmt.Fprintln(&list, b.Name, b.SHA256)
	}
	dir := filepath.Join(e.Scratch, name+"-"+shortDigest(list.String()))
	if err := e.Store.Stage(dir, blobs); err != nil {
		return "", fmt.Errorf("staging %s: %w", name, err)
	}
	return dir, nil
}
