package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ocidigest "github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"builder/test/kit/check"
	"builder/test/kit/must"
	"builder/test/kit/ocitest"
)

// onAMDsLayout builds Horovod for ROCm 6.1 on an image of a registry. AMD's own cannot be
// had in every place, so the image is Debian's ROCm 6.4 and an RCCL of this tool in AMD's
// layout. The recipe of the site has a cell for its Python. A mirror leads to the registry,
// and a locked digest that it lacks is refused.
func onAMDsLayout(b *tool) {
	sets := ofClones([]string{"6.4"})
	b.want(0, slices.Concat([]string{"run", "rccl", "--rocm", "6.4", "--locked"}, sets)...)
	wheels, err := filepath.Glob(filepath.Join(b.dir, "out", "rccl-*rocm6.4*", "*.whl"))
	if err != nil || len(wheels) != 1 {
		b.t.Fatal(wheels, err)
	}
	bare := filepath.Join(b.t.TempDir(), "bare")
	b.want(0, slices.Concat([]string{"debug", "shell", filepath.Base(filepath.Dir(wheels[0])), "--to", bare}, sets)...)
	root := filepath.Join(bare, "rootfs")
	out, err := exec.CommandContext(b.t.Context(), "sh", "testdata/standin/layout.sh", root, wheels[0]).CombinedOutput()
	must.Hold(b.t, err == nil, "%v\n%s", err, out)
	registry := httptest.NewServer(ocitest.New(true))
	defer registry.Close()
	host := strings.TrimPrefix(registry.URL, "http://")
	pushed := b.pushed(root, registry.URL+"/v2/rocm/dev-ubuntu-22.04", "6.1-complete")

	recipe := b.read("recipes/horovod.yaml")
	for _, edit := range [][2]string{
		{`      - {rocm: "6.1", python: "3.9"}` + "\n", ""},
		{`{rocm: "6.1", python: "3.10"}`, `{rocm: "6.1", python: "3.11"}`},
		{`      - {rocm: "6.1", tensorflow: "2.13.1", python: "3.10"}` + "\n", ""},
		{`      - {rocm: "6.1", tensorflow: "2.15", python: "3.10"}` + "\n", ""},
		{`      - {rocm: "6.1", tensorflow: "2.15", python: "3.9"}` + "\n", ""},
		{`{rocm: "6.1", tensorflow: "2.14.0", python: "3.10"}`, `{rocm: "6.1", tensorflow: "2.14.0", python: "3.11"}`},
	} {
		must.Hold(b.t, strings.Count(recipe, edit[0]) == 1, "the recipe has %d times %q", strings.Count(recipe, edit[0]), edit[0])
		recipe = strings.Replace(recipe, edit[0], edit[1], 1)
	}
	site := b.makeSite(map[string]string{
		"recipes/horovod.yaml":      recipe,
		"recipes/horovod.lock.json": b.read("recipes/horovod.lock.json"),
		"images/standin.yaml":       strings.Replace(b.read("test/e2e/testdata/standin/image.yaml"), "DIGEST", pushed, 1),
	})
	b.t.Setenv("BUILDER_MIRROR_REGISTRY", host)
	args := []string{"horovod", "--rocm", "6.1", "--recipes", site}
	want := b.plannedGates(args)
	b.want(0, slices.Concat([]string{"run"}, args, []string{"--locked"})...)
	cell := b.runJSON("out").Cells[0]
	var got []string
	for _, v := range cell.Verdicts {
		got = append(got, v.Gate)
	}
	check.That(b.t, cell.Status == "pass" && slices.Equal(got, want), "%s, gates %v, planned were %v", cell.Status, got, want)
	var claimed map[string]string // by the table of the README
	must.Succeed(b.t, json.Unmarshal([]byte(b.read("test/e2e/testdata/standin/axes.json")), &claimed))
	for axis, value := range claimed {
		check.That(b.t, cell.Axes[axis] == value, "the README says that %s %s was built, this cell has %q", axis, value, cell.Axes[axis])
	}
	r := b.want(8, "run", "horovod", "--rocm", "6.1", "--locked")
	contains(b.t, r.stderr, "rocm/tensorflow")
}

// pushed makes an image of one layer from a root file system, in a repository of a
// registry, and returns its digest.
func (b *tool) pushed(root, repository, tag string) string {
	b.t.Helper()
	layer := filepath.Join(b.t.TempDir(), "layer.tar.gz")
	line := `tar --numeric-owner -C "$1" -cf "$2.tar" . && sha256sum < "$2.tar" && gzip -2 < "$2.tar" > "$2" && rm "$2.tar"`
	out, err := exec.CommandContext(b.t.Context(), "sh", "-ec", line, "sh", root, layer).CombinedOutput()
	sum := strings.Fields(string(out))
	must.Hold(b.t, err == nil && len(sum) == 2, "%v\n%s", err, out)
	plain := ocidigest.NewDigestFromEncoded(ocidigest.SHA256, sum[0])
	f := must.Get(os.Open(layer))(b.t)
	defer f.Close()
	packed, err := ocidigest.FromReader(f)
	info, err2 := f.Stat()
	must.Succeed(b.t, err, err2)
	must.Get(f.Seek(0, io.SeekStart))(b.t)
	config := encoded(b.t, ocispec.Image{
		Platform: ocispec.Platform{Architecture: "amd64", OS: "linux"},
		RootFS:   ocispec.RootFS{Type: "layers", DiffIDs: []ocidigest.Digest{plain}},
	})
	manifest := encoded(b.t, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageConfig, Digest: ocidigest.FromBytes(config), Size: int64(len(config))},
		Layers: []ocispec.Descriptor{{MediaType: ocispec.MediaTypeImageLayerGzip, Digest: packed, Size: info.Size()}},
	})
	b.send(http.MethodPost, repository+"/blobs/uploads/?digest="+packed.String(), f)
	b.send(http.MethodPost, repository+"/blobs/uploads/?digest="+ocidigest.FromBytes(config).String(), bytes.NewReader(config))
	b.send(http.MethodPut, repository+"/manifests/"+tag, bytes.NewReader(manifest))
	return ocidigest.FromBytes(manifest).String()
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	return must.Get(json.Marshal(v))(t)
}

// send sends content to the registry of a test.
func (b *tool) send(method, address string, body io.Reader) {
	b.t.Helper()
	req := must.Get(http.NewRequestWithContext(b.t.Context(), method, address, body))(b.t)
	req.Header.Set("Content-Type", ocispec.MediaTypeImageManifest)
	resp := must.Get(http.DefaultClient.Do(req))(b.t)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		text, _ := io.ReadAll(resp.Body)
		b.t.Fatalf("%s %s: %s: %s", method, address, resp.Status, text)
	}
}
