package native

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/files/unpack"
)

// ImageName is the name of the image made by [Engine.Image].
const ImageName = "localhost/builder-engine:" + Version

//go:embed container.sh
var entrypoint []byte

// hostPrograms are the programs the engine's container needs in addition to [Needs]:
// its shell and the programs of the entrypoint.
var hostPrograms = []string{"sh", "mkdir", "ln"}

// Paths in the image.
const (
	helpers    = "usr/lib/builder-engine/"
	imageBuild = helpers + "build" // holds the buildKey of the programs
)

// imagePrograms maps the paths of the engine's programs in the image to their names.
var imagePrograms = map[string]string{
	"usr/local/bin/engine":   "engine",
	"usr/local/bin/dagger":   "dagger",
	"usr/local/bin/buildctl": "dialstdio",
	helpers + "dagger-init":  "init",
}

// A member is a file of the image: a copy of a host file, a link, or a text.
type member struct {
	from, link, text string
	mode             int64
}

// Image writes the engine as an image for `docker load`, `podman load` and
// [Options.Image]. The image has the engine's programs, the host programs it runs, and
// their libraries. It is compressed according to the suffix of the file name. The same
// files make the same bytes.
func (e *Engine) Image(ctx context.Context, to string) error {
	unlock, err := e.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	tools, err := e.programs(ctx)
	if err != nil {
		return noEngine(ctx, err)
	}
	members, err := e.members(ctx, tools)
	if err != nil {
		return noEngine(ctx, fmt.Errorf("collecting the files of the engine's image: %w", err))
	}
	if err := writeImage(to, members); err != nil {
		return fmt.Errorf("writing the engine's image to %s: %w", to, err)
	}
	return nil
}

// members returns the files of the image by path.
func (e *Engine) members(ctx context.Context, tools map[string]string) (map[string]member, error) {
	files := map[string]member{
		"usr/local/bin/builder-engine": {text: string(entrypoint), mode: 0o755},
		imageBuild:                     {text: buildKey() + "\n", mode: 0o644},
		"etc/dagger/engine.toml":       {text: config, mode: 0o644},
		"etc/dagger/engine.json":       {text: engineJSON, mode: 0o644},
		"etc/dagger/network.conflist":  {text: networkConfig, mode: 0o644},
		helpers + "loopback":           {text: networkPlugin, mode: 0o755},
		"usr/local/bin/dnsmasq":        {text: nameServer, mode: 0o755},
		"etc/passwd":                   {text: "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n", mode: 0o644},
		"etc/group":                    {text: "root:x:0:\nnogroup:x:65534:\n", mode: 0o644},
		"bin":                          {link: "usr/bin"}, "sbin": {link: "usr/sbin"}, "lib": {link: "usr/lib"}, "lib64": {link: "usr/lib64"},
	}
	for path, name := range imagePrograms {
		files[path] = member{from: e.bin(name), mode: 0o755}
	}
	for name, path := range e.helpers(tools) {
		files[helpers+name] = member{from: path, mode: 0o755}
	}
	for name, path := range tools {
		files["usr/bin/"+name] = member{from: path, mode: 0o755}
	}
	for _, name := range hostPrograms {
		path, ok := find(hostDirs(), name)
		if !ok {
			return nil, fmt.Errorf("%s is not in PATH", name)
		}
		files["usr/bin/"+name] = member{from: path, mode: 0o755}
	}
	if certificates := "/etc/ssl/certs/ca-certificates.crt"; exists(certificates) {
		files[strings.TrimPrefix(certificates, "/")] = member{from: certificates, mode: 0o644}
	}
	return files, addLibraries(ctx, files)
}

// addLibraries adds the libraries loaded by the programs, at their paths on the host.
func addLibraries(ctx context.Context, files map[string]member) error {
	for _, m := range files {
		if m.from == "" {
			continue
		}
		out, _ := exec.CommandContext(ctx, "ldd", m.from).Output() // fails for a program without libraries
		for line := range strings.Lines(string(out)) {
			for field := range strings.FieldsSeq(line) {
				if strings.HasPrefix(field, "/") {
					files[placeOf(field)] = member{from: field, mode: 0o755}
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

// writeImage writes the archive of an image with one layer. The file appears complete
// or not at all.
func writeImage(to string, members map[string]member) (err error) {
	layer, err := os.CreateTemp(filepath.Dir(to), ".layer-*")
	if err != nil {
		return err
	}
	defer os.Remove(layer.Name())
	defer layer.Close()
	sum := sha256.New()
	if err := writeLayer(io.MultiWriter(layer, sum), members); err != nil {
		return err
	}
	image, err := os.CreateTemp(filepath.Dir(to), ".image-*")
	if err != nil {
		return err
	}
	defer os.Remove(image.Name())
	out, err := unpack.Writer(image, to)
	if err == nil {
		err = cmp.Or(writeArchive(out, layer, hex.EncodeToString(sum.Sum(nil))), out.Close())
	}
	if err = cmp.Or(err, image.Chmod(0o644), image.Close()); err != nil {
		return err
	}
	return os.Rename(image.Name(), to)
}

// writeLayer writes the files and their directories, sorted by path.
func writeLayer(to io.Writer, members map[string]member) error {
	all := map[string]*tar.Header{}
	for _, dir := range []string{"tmp", "run", "root", "proc", "sys", "dev", "var/lib/dagger", "usr/sbin", "usr/lib64"} {
		addDirs(all, dir+"/.")
	}
	for path, m := range members {
		addDirs(all, path)
		all[path] = &tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: m.mode}
		if m.link != "" {
			all[path] = &tar.Header{Typeflag: tar.TypeSymlink, Name: path, Linkname: m.link, Mode: 0o777}
		}
	}
	var paths []string
	for path := range all {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	w := tar.NewWriter(to)
	for _, path := range paths {
		if err := writeMember(w, all[path], members[path]); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return w.Close()
}

// addDirs adds the parent directories of a path.
func addDirs(all map[string]*tar.Header, path string) {
	for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
		all[dir] = &tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}
		if dir == "tmp" {
			all[dir].Mode = 0o1777
		}
	}
}

func writeMember(w *tar.Writer, h *tar.Header, m member) error {
	if m.from == "" {
		h.Size = int64(len(m.text))
		if h.Typeflag != tar.TypeReg {
			h.Size = 0
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err := io.WriteString(w, m.text)
		return err
	}
	f, err := os.Open(m.from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h.Size = info.Size()
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}

// writeArchive writes an image with one layer in the format of `docker save`.
func writeArchive(to io.Writer, layer *os.File, digest string) error {
	settings, err1 := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux", "created": "1970-01-01T00:00:00Z",
		"config": map[string]any{
			"Entrypoint": []string{"/bin/sh", "/usr/local/bin/builder-engine"},
			"Env":        []string{"PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "DO_NOT_TRACK=1"},
			"Volumes":    map[string]any{"/var/lib/dagger": struct{}{}},
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest}},
	})
	sum := sha256.Sum256(settings)
	name := hex.EncodeToString(sum[:]) + ".json"
	list, err2 := json.Marshal([]map[string]any{{"Config": name, "RepoTags": []string{ImageName}, "Layers": []string{digest + ".tar"}}})
	size, err3 := layer.Seek(0, io.SeekCurrent)
	_, err4 := layer.Seek(0, io.SeekStart)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	w := tar.NewWriter(to)
	for _, part := range []struct {
		name string
		size int64
		data io.Reader
	}{
		{digest + ".tar", size, layer},
		{name, int64(len(settings)), strings.NewReader(string(settings))},
		{"manifest.json", int64(len(list)), strings.NewReader(string(list))},
	} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: part.name, Mode: 0o644, Size: part.size}); err != nil {
			return err
		}
		if _, err := io.Copy(w, part.data); err != nil {
			return err
		}
	}
	return w.Close()
}
