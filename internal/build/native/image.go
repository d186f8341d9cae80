package native

import (
	"archive/tar"
	"context"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
	"builder/internal/input/store"
)

// ImageName is the name of the image made by [Engine.Image].
const ImageName = "localhost/builder-engine:" + Version

//go:embed container.sh
var entrypoint string

// hostPrograms are the programs the engine's container needs in addition to [Needs]:
// its shell and the programs of the entrypoint.
var hostPrograms = []string{"sh", "mkdir", "ln"}

// Paths in the image. What the native engine has in /run/dagger is elsewhere there,
// because /run may be empty when a container starts.
const (
	runDir      = "run/dagger/"
	imageRunDir = "usr/lib/builder-engine/"
)

// buildLabel is the label of the image with the buildKey of its programs.
const buildLabel = "builder.engine.build"

// imagePrograms maps the paths of the engine's programs in the image to their names.
var imagePrograms = map[string]string{
	"usr/local/bin/engine":          "engine",
	"usr/local/bin/dagger":          "dagger",
	"usr/local/bin/buildctl":        "dialstdio",
	imageRunDir + "bin/dagger-init": "init",
}

// A member of the image is a link, a text or a copy of a file of this host. The zero
// member is a directory.
type member struct{ link, text, from string }

// Image writes the engine as an image for `docker load`, `podman load` and
// [Options.Image]. The image has the engine's programs, the host programs it runs, and
// their libraries. The same files make the same bytes.
func (e *Engine) Image(ctx context.Context, to string) error {
	unlock, err := e.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	tools, err := e.providePrograms(ctx)
	if err != nil {
		return noEngine(ctx, err)
	}
	members, err := imageMembers(ctx, e.programs, tools)
	if err != nil {
		return noEngine(ctx, fmt.Errorf("collecting the files of the engine's image: %w", err))
	}
	if err := writeImage(to, members, buildKey()); err != nil {
		return fmt.Errorf("writing the engine's image to %s: %w", to, err)
	}
	return nil
}

// imageMembers returns the files of the image by path.
func imageMembers(ctx context.Context, own programs, tools map[string]string) (map[string]member, error) {
	files := map[string]member{
		"usr/local/bin/builder-engine": {text: entrypoint},
		"etc/passwd":                   {text: "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"},
		"etc/group":                    {text: "root:x:0:\nnogroup:x:65534:\n"},
		"bin":                          {link: "usr/bin"}, "sbin": {link: "usr/sbin"}, "lib": {link: "usr/lib"}, "lib64": {link: "usr/lib64"},
		"run": {}, "root": {}, "proc": {}, "sys": {}, "dev": {}, "tmp": {}, "var/lib/dagger": {}, "usr/sbin": {}, "usr/lib64": {},
	}
	for path, text := range ownFiles {
		files[strings.Replace(path, runDir, imageRunDir, 1)] = member{text: text}
	}
	for path, name := range imagePrograms {
		files[path] = member{from: own.bin(name)}
	}
	files[imageRunDir+"bin/runc"] = member{link: "/usr/bin/runc"}
	for name, path := range tools {
		files["usr/bin/"+name] = member{from: path}
	}
	for _, name := range hostPrograms {
		path, ok := find(name)
		if !ok {
			return nil, fmt.Errorf("%s is not in PATH", name)
		}
		files["usr/bin/"+name] = member{from: path}
	}
	if certificates := "/etc/ssl/certs/ca-certificates.crt"; exists(certificates) {
		files[strings.TrimPrefix(certificates, "/")] = member{from: certificates}
	}
	return files, addLibraries(ctx, files)
}

// addLibraries adds the libraries loaded by the programs, at their paths on the host.
func addLibraries(ctx context.Context, files map[string]member) error {
	for _, m := range slices.Collect(maps.Values(files)) {
		if m.from == "" {
			continue
		}
		out, _ := exec.CommandContext(ctx, "ldd", m.from).Output() // fails for a program without libraries
		for line := range strings.Lines(string(out)) {
			for field := range strings.FieldsSeq(line) {
				if strings.HasPrefix(field, "/") {
					files[placeOf(field)] = member{from: field}
				}
			}
			if strings.Contains(line, "not found") {
				return fmt.Errorf("%s: %s", m.from, strings.TrimSpace(line))
			}
		}
	}
	return ctx.Err()
}

// placeOf returns the path of a library in the image, in which /lib is a link to
// /usr/lib.
func placeOf(path string) string {
	path = strings.TrimPrefix(filepath.Clean(path), "/")
	if strings.HasPrefix(path, "lib") {
		path = "usr/" + path
	}
	return path
}

// writeImage writes an image with one layer. The file appears complete or not at all.
func writeImage(to string, members map[string]member, build string) error {
	tag, err := name.NewTag(ImageName)
	if err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		r, w := io.Pipe()
		go func() { w.CloseWithError(writeLayer(w, members)) }()
		return r, nil
	}, tarball.WithCompressedCaching)
	if err != nil {
		return err
	}
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		Architecture: "amd64", OS: "linux", Created: v1.Time{Time: time.Unix(0, 0).UTC()}, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint: []string{"/bin/sh", "/usr/local/bin/builder-engine"},
			Env:        []string{"PATH=/usr/lib/builder-engine/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "DO_NOT_TRACK=1"},
			Volumes:    map[string]struct{}{"/var/lib/dagger": {}},
			Labels:     map[string]string{buildLabel: build},
		},
	})
	if err != nil {
		return err
	}
	if image, err = mutate.AppendLayers(image, layer); err != nil {
		return err
	}
	return atomicfile.Make(to, func(w io.Writer) error { return tarball.Write(tag, image, w) })
}

// writeLayer writes the files and their directories, sorted by path.
func writeLayer(to io.Writer, members map[string]member) error {
	all := maps.Clone(members)
	for path := range members {
		for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
			all[dir] = member{}
		}
	}
	w := tar.NewWriter(to)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if err := all[path].write(w, path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return w.Close()
}

func (m member) write(w *tar.Writer, path string) error {
	h := &tar.Header{Typeflag: tar.TypeDir, Name: path, Mode: 0o755}
	var content io.Reader = strings.NewReader(m.text)
	switch {
	case m.link != "":
		h.Typeflag, h.Linkname = tar.TypeSymlink, m.link
	case m.text != "":
		h.Typeflag, h.Size = tar.TypeReg, int64(len(m.text))
	case m.from != "":
		f, err := os.Open(m.from)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		h.Typeflag, h.Size, content = tar.TypeReg, info.Size(), f
	}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err := io.Copy(w, content)
	return err
}

// unpackImage writes the programs of an image to the directory to. It returns an error
// if the image has other programs than this builder would build.
func unpackImage(path, to string) error {
	image, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		return fmt.Errorf("reading an image of `builder engine image`: %w", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return fmt.Errorf("reading an image of `builder engine image`: %w", err)
	}
	if got := config.Config.Labels[buildLabel]; got != buildKey() {
		return fmt.Errorf("another version of builder made it: it has build %q, this builder needs %q", got, buildKey())
	}
	content := mutate.Extract(image)
	defer content.Close()
	wanted := maps.Clone(imagePrograms)
	for files := tar.NewReader(content); len(wanted) > 0; {
		h, err := files.Next()
		if err != nil {
			return fmt.Errorf("reading the image, which lacks %s: %w", strings.Join(slices.Sorted(maps.Keys(wanted)), ", "), err)
		}
		program, is := wanted[h.Name]
		if !is || h.Typeflag != tar.TypeReg {
			continue
		}
		if err := unpackProgram(files, filepath.Join(to, "bin", program)); err != nil {
			return err
		}
		delete(wanted, h.Name)
	}
	return nil
}

func unpackProgram(r io.Reader, path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Chmod(0o755), f.Close()) // the umask may be stricter
}

// ImageVariable is the variable that names an [EngineImage].
const ImageVariable = "BUILDER_ENGINE_IMAGE"

// An EngineImage is a file written by `builder engine image`, with its digest. The zero
// value is none.
type EngineImage struct {
	Place  store.Place // an http or https URL, file:PATH, or a path
	SHA256 string      // hexadecimal
}

// ParseEngineImage parses PLACE@sha256:DIGEST. An empty text is no image.
func ParseEngineImage(text string) (EngineImage, error) {
	if text == "" {
		return EngineImage{}, nil
	}
	place, digest, _ := strings.Cut(text, "@sha256:")
	if raw, err := hex.DecodeString(digest); err != nil || len(raw) != 32 || strings.ToLower(digest) != digest {
		return EngineImage{}, diag.Errorf(diag.Usage, "%s: %s does not end in the digest of the file", ImageVariable, store.Redact(text)).
			WithHint("write PLACE@sha256:DIGEST with the digest that `builder engine image` or sha256sum prints")
	}
	if file, is := strings.CutPrefix(place, "file:"); is && !strings.HasPrefix(file, "//") {
		place = file
	}
	if place == "" {
		return EngineImage{}, diag.Errorf(diag.Usage, "%s: %s names no place of the image", ImageVariable, text)
	}
	return EngineImage{Place: store.Place(place), SHA256: digest}, nil
}

// String returns the image in the form of [ParseEngineImage], without credentials.
func (i EngineImage) String() string { return i.Place.String() + "@sha256:" + i.SHA256 }

// Fetch brings the image into a store and returns its path there.
func (i EngineImage) Fetch(ctx context.Context, kept *store.Store, offline bool) (string, error) {
	place, _, _ := strings.Cut(string(i.Place), "?") // without the query of a URL
	image := store.Blob{Name: path.Base(place), SHA256: i.SHA256}
	if held, err := kept.Use(image); err == nil {
		return held, nil
	}
	leaveOut := "or leave out " + ImageVariable + ": builder then compiles the engine"
	remote := strings.HasPrefix(string(i.Place), "http://") || strings.HasPrefix(string(i.Place), "https://")
	if offline && remote {
		return "", diag.Errorf(diag.Fetch, "the engine's image %s is not in the store, and --offline was given", i.Place).
			WithHint("run `builder engine up` once with a network, name a file, %s", leaveOut)
	}
	got, err := kept.Fetch(ctx, image, []store.Place{i.Place}, nil)
	if diag.CodeOf(err) == diag.Fetch {
		err = diag.HintAll(err, "correct the place or the digest of "+ImageVariable+", "+leaveOut)
	}
	return got, err
}
