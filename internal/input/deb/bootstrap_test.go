package deb

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestPlace(t *testing.T) {
	for name, want := range map[string]string{
		"./":                        ".",
		".":                         ".",
		"":                          ".",
		"./usr/bin/x":               "usr/bin/x",
		"usr//share/./x/":           "usr/share/x",
		"./bin/sh":                  "usr/bin/sh",
		"lib64/ld-linux-x86-64.so":  "usr/lib64/ld-linux-x86-64.so",
		"./sbin/":                   "sbin",
		"./lib":                     "lib",
		"./library/x":               "library/x",
		"./usr/lib/x":               "usr/lib/x",
		"./etc/..data/x":            "etc/..data/x",
		"./etc/a b\\c":              "etc/a b\\c",
		"././etc/x":                 "etc/x",
		"./lib/x86_64-linux-gnu/..": "",
		"..":                        "",
		"../etc/passwd":             "",
		"./../etc/passwd":           "",
		"./usr/../../etc/passwd":    "",
		"./usr/../etc/passwd":       "",
		"/etc/passwd":               "",
		"//etc/passwd":              "",
		".//etc/passwd":             "",
		"./etc/\xff":                "",
	} {
		got, err := place(name)
		check.That(t, (err != nil) == (want == "") && got == want, "%q: got %q, %v; want %q", name, got, err, want)
	}
}

func bootstrap(archive string, debs []Deb) error {
	return atomicfile.Make(archive, func(w io.Writer) error { return Bootstrap(w, filepath.Dir(archive), debs, 0) })
}

// entries reads a tar archive. It returns the headers as text and the contents of the
// files.
func entries(t *testing.T, archive io.Reader) (headers []string, files map[string][]byte) {
	t.Helper()
	files = map[string][]byte{}
	err := eachEntry(archive, func(h *tar.Header, r io.Reader) error {
		text := fmt.Sprintf("%c %o %s", h.Typeflag, h.Mode, h.Name)
		if h.Linkname != "" {
			text += " -> " + h.Linkname
		}
		headers = append(headers, text)
		content, err := io.ReadAll(r)
		files[h.Name] = content
		return err
	})
	must.Succeed(t, err)
	return headers, files
}

// bootstrapped returns the image archive of the packages.
func bootstrapped(t *testing.T, debs ...Deb) []byte {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "image.tar")
	must.Succeed(t, bootstrap(archive, debs))
	content := must.Get(os.ReadFile(archive))(t)
	left, _ := os.ReadDir(filepath.Dir(archive))
	check.That(t, len(left) == 1, "left behind: %v", left)
	return content
}

func blobPath(d ocispec.Descriptor) string {
	return "blobs/sha256/" + d.Digest.Encoded()
}

// layerOf returns the one layer of an image archive.
func layerOf(t *testing.T, image []byte) []byte {
	t.Helper()
	_, blobs := entries(t, bytes.NewReader(image))
	var index ocispec.Index
	var manifest ocispec.Manifest
	decode(t, blobs["index.json"], &index)
	decode(t, blobs[blobPath(index.Manifests[0])], &manifest)
	z := must.Get(zstd.NewReader(bytes.NewReader(blobs[blobPath(manifest.Layers[0])])))(t)
	defer z.Close()
	return must.Get(io.ReadAll(z))(t)
}

func decode(t *testing.T, data []byte, into any) {
	t.Helper()
	err := json.Unmarshal(data, into)
	must.Hold(t, err == nil, "%v: %q", err, data)
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

var (
	base = []item{
		dir("./"), dir("./usr/"), dir("./usr/bin/"), symlink("./bin", "usr/bin"), dir("./etc/"),
		{tar.Header{Name: "./etc/shadow", Typeflag: tar.TypeReg, Mode: 0o640, Gid: 42, Uname: "root", Gname: "shadow"}, "secret"},
	}
	tools = []item{
		dir("./"), dir("./bin/"), file("./bin/tool", "#!/bin/sh\n"), hardLink("./bin/alias", "./bin/tool"),
		symlink("./etc/tool", "/etc/alternatives/tool"), dir("./lib/"), file("./lib/x.so", "elf"),
		{tar.Header{Name: "./usr/bin/su", Typeflag: tar.TypeReg, Mode: 0o4755}, "su"},
	}
)

func TestBootstrapMergesUsr(t *testing.T) {
	headers, files := entries(t, bytes.NewReader(layerOf(t, bootstrapped(t, pack(t, "base", base...), pack(t, "tools", tools...)))))
	want := []string{
		"5 755 usr/", "5 755 usr/bin/", "5 755 usr/lib/", "5 755 usr/lib64/", "5 755 usr/sbin/",
		"2 777 bin -> usr/bin", "2 777 lib -> usr/lib", "2 777 lib64 -> usr/lib64", "2 777 sbin -> usr/sbin",
		"5 755 etc/", "0 640 etc/shadow",
		"0 644 usr/bin/tool", "1 644 usr/bin/alias -> usr/bin/tool", "2 777 etc/tool -> /etc/alternatives/tool",
		"0 644 usr/lib/x.so", "0 4755 usr/bin/su",
	}
	check.Same(t, "layer", want, headers)
	check.That(t, string(files["etc/shadow"]) == "secret" && string(files["usr/lib/x.so"]) == "elf", "got %q", files)
}

// The layer holds numeric owners and the packages' times, nothing of the host.
func TestBootstrapKeepsOwnersAndTimes(t *testing.T) {
	layer := layerOf(t, bootstrapped(t, pack(t, "base", base...)))
	err := eachEntry(bytes.NewReader(layer), func(h *tar.Header, _ io.Reader) error {
		made := h.ModTime.Equal(then) || h.ModTime.Unix() == 0
		check.That(t, h.Uid == 0 && h.Uname == "" && h.Gname == "" && made && (h.Gid == 42) == (h.Name == "etc/shadow"),
			"%s: %d:%d %q:%q %v", h.Name, h.Uid, h.Gid, h.Uname, h.Gname, h.ModTime)
		return nil
	})
	must.Succeed(t, err)
}

// Every host must produce this golden value. A new value changes the root file system
// of every image.
func TestBootstrapDigest(t *testing.T) {
	var items []item
	for _, suffix := range suffixes {
		items = append(items, file("./etc/x"+suffix, suffix))
	}
	var debs []Deb
	for i, suffix := range suffixes {
		debs = append(debs, locked(t, "p"+suffix, debOf(t, suffix, data(t, dir("./etc/"), items[i]))))
	}
	const want = "sha256:a0bfc572b565208875c61114e58fc35ce15782777b69306db121acc224568c19"
	check.Same(t, "sumOf", want, sumOf(layerOf(t, bootstrapped(t, debs...))))
}

func TestBootstrapIsAnImage(t *testing.T) {
	image := bootstrapped(t, pack(t, "base", base...))
	names, blobs := entries(t, bytes.NewReader(image))
	if len(names) != 5 || string(blobs["oci-layout"]) != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("got %v, oci-layout %q", names, blobs["oci-layout"])
	}
	for name, content := range blobs {
		if sum, ok := strings.CutPrefix(name, "blobs/sha256/"); ok && sumOf(content) != "sha256:"+sum {
			t.Errorf("%s holds %s", name, sumOf(content))
		}
	}
	var index ocispec.Index
	var manifest ocispec.Manifest
	var config ocispec.Image
	decode(t, blobs["index.json"], &index)
	decode(t, blobs[blobPath(index.Manifests[0])], &manifest)
	decode(t, blobs[blobPath(manifest.Config)], &config)
	layer := manifest.Layers[0]
	check.Same(t, "diff_ids", []digest.Digest{digest.FromBytes(layerOf(t, image))}, config.RootFS.DiffIDs)
	check.That(t, config.Architecture == "amd64" && config.OS == "linux" && index.Manifests[0].Platform.Architecture == "amd64",
		"got %+v, %+v", config, index)
	for _, d := range []ocispec.Descriptor{index.Manifests[0], manifest.Config, layer} {
		check.That(t, int64(len(blobs[blobPath(d)])) == d.Size,
			"%s has %d bytes, its descriptor says %d", d.MediaType, len(blobs[blobPath(d)]), d.Size)
	}
}

func TestBootstrapRefuses(t *testing.T) {
	link := symlink("./srv", "/etc")
	for name, c := range map[string]struct {
		items []item
		want  string
	}{
		"traversal":                   {[]item{file("./../etc/passwd", "x")}, `path "./../etc/passwd" is outside the root`},
		"no name":                     {[]item{file(".", "x")}, `"." is not a file, directory or link`},
		"root is a link":              {[]item{symlink("./", "/etc")}, `"./" is not a file, directory or link`},
		"hard link out":               {[]item{hardLink("./x", "../../etc/shadow")}, `x: path "../../etc/shadow" is outside the root`},
		"hard link to a missing file": {[]item{hardLink("./x", "./etc/shadow")}, `x: a hard link to "./etc/shadow", which is not a file of an earlier package`},
		"hard link to itself":         {[]item{hardLink("./x", "./x")}, "which is not a file of an earlier package"},
		"hard link to the root":       {[]item{hardLink("./x", "./")}, "which is not a file of an earlier package"},
		"hard link to a directory":    {[]item{dir("./d/"), hardLink("./x", "./d")}, "which is not a file of an earlier package"},
		"below a link":                {[]item{link, file("./srv/passwd", "x")}, "srv/passwd is below srv, which is not a directory in package hostile"},
		"link below a link":           {[]item{link, symlink("./srv/x", "y")}, "srv/x is below srv"},
		"directory below a link":      {[]item{link, dir("./srv/"), dir("./srv/x/")}, "srv/x is below srv"},
		"below a file":                {[]item{file("./srv", "x"), file("./srv/x", "x")}, "srv/x is below srv"},
		"file, then directory":        {[]item{file("./srv", "x"), dir("./srv/")}, "srv is also in package hostile"},
		"link, then file":             {[]item{link, file("./srv", "x")}, "srv is also in package hostile"},
		"twice":                       {[]item{file("./x", "1"), file("./x", "2")}, "x is also in package hostile"},
		"twice through merged /usr":   {[]item{file("./bin/x", "1"), file("./usr/bin/x", "2")}, "usr/bin/x is also in package hostile"},
		"file for bin":                {[]item{file("./bin", "x")}, "bin is also in the merged /usr"},
		"character device":            {[]item{special("./dev/mem", tar.TypeChar)}, `"./dev/mem" is not a file, directory or link`},
	} {
		t.Run(name, func(t *testing.T) {
			archive := filepath.Join(t.TempDir(), "image.tar")
			err := bootstrap(archive, []Deb{pack(t, "hostile", c.items...)})
			check.That(t, err != nil && strings.Contains(err.Error(), "package hostile: ") && strings.Contains(err.Error(), c.want),
				"got %v, want an error with %q", err, c.want)
			left, _ := os.ReadDir(filepath.Dir(archive))
			check.That(t, len(left) == 0, "left behind: %v", left)
		})
	}
}

// sparseArchives returns data archives of a few hundred bytes, each with a file of a
// claimed size of 1 TiB. There is one for each sparse format of tar.
func sparseArchives(t testing.TB) map[string][]byte {
	t.Helper()
	const size = "1099511627776"
	// archive/tar refuses to write sparse records, so pax replaces their names
	// afterwards.
	pax := func(body string, records map[string]string) []byte {
		i := file("./x", body)
		i.PAXRecords = records
		return bytes.ReplaceAll(data(t, i), []byte("GNUxsparse"), []byte("GNU.sparse"))
	}
	body := "1\n" + size + "\n0\n"
	body += strings.Repeat("\x00", 512-len(body))
	gnu := data(t, file("./x", ""))
	patchHeader(gnu, map[int]string{
		156: string(tar.TypeGNUSparse),
		257: "ustar  \x00",
		483: "\x80\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00", // the size with holes
	})
	return map[string][]byte{
		"0.1": pax("", map[string]string{"GNUxsparse.size": size, "GNUxsparse.numblocks": "1", "GNUxsparse.map": size + ",0"}),
		"1.0": pax(body, map[string]string{"GNUxsparse.major": "1", "GNUxsparse.minor": "0", "GNUxsparse.realsize": size}),
		"GNU": gnu,
	}
}

// patchHeader overwrites fields of an archive's first header, by offset, and mends the
// checksum.
func patchHeader(archive []byte, fields map[int]string) {
	header := archive[:512]
	for at, text := range fields {
		copy(header[at:], text)
	}
	copy(header[148:], "        ")
	sum := 0
	for _, b := range header {
		sum += int(b)
	}
	copy(header[148:], fmt.Sprintf("%06o\x00 ", sum))
}

func TestBootstrapRefusesSparseFiles(t *testing.T) {
	for name, archive := range sparseArchives(t) {
		t.Run(name, func(t *testing.T) {
			h, err := tar.NewReader(bytes.NewReader(archive)).Next()
			must.Hold(t, err == nil && h.Size == 1<<40, "the archive is not what it should be: %+v, %v", h, err)
			err = bootstrap(filepath.Join(t.TempDir(), "image.tar"), []Deb{locked(t, "hostile", debOf(t, ".gz", archive))})
			check.That(t, err != nil && strings.Contains(err.Error(), `"./x" is not a file, directory or link`), "got %v", err)
		})
	}
}

// The claimed size of a directory or a link is ignored: no content follows its header.
func TestBootstrapDropsSizesOfWhatHasNone(t *testing.T) {
	archive := data(t, symlink("./a", "b"), file("./c", "text"))
	patchHeader(archive, map[int]string{124: "00000001000\x00"})
	layer := layerOf(t, bootstrapped(t, locked(t, "p", debOf(t, "", archive))))
	sizes := map[string]int64{}
	_ = eachEntry(bytes.NewReader(layer), func(h *tar.Header, _ io.Reader) error {
		sizes[h.Name] = h.Size
		return nil
	})
	check.That(t, sizes["a"] == 0 && sizes["c"] == 4, "got %v", sizes)
}

func TestPackagesThatDoNotGoTogether(t *testing.T) {
	one, two := pack(t, "one", dir("./etc/"), file("./etc/x", "1")), pack(t, "two", dir("./etc/"), file("./etc/x", "2"))
	err := bootstrap(filepath.Join(t.TempDir(), "image.tar"), []Deb{one, two})
	check.That(t, err != nil && strings.Contains(err.Error(), "package two: etc/x is also in package one"), "got %v", err)
	// As in dpkg, a link to a directory may take the place of the directory.
	bootstrapped(t, pack(t, "three", dir("./run/"), symlink("./var", "run")), pack(t, "four", dir("./var/")))
}

func TestBootstrapNamesEveryBadPackage(t *testing.T) {
	var debs []Deb
	for _, name := range []string{"first", "good", "second"} {
		d := pack(t, name, dir("./"))
		if name != "good" {
			d.Package.SHA256 = strings.Repeat("0", 64)
		}
		debs = append(debs, d)
	}
	debs = append(debs, locked(t, "third", []byte("no package")), Deb{Package{Name: "fourth"}, filepath.Join(t.TempDir(), "absent")})
	err := bootstrap(filepath.Join(t.TempDir(), "image.tar"), debs)
	for _, name := range []string{"first", "second", "third", "fourth"} {
		check.That(t, err != nil && strings.Count(err.Error(), "package "+name+": ") != 0, "%s is not named: %v", name, err)
	}
	check.That(t, !strings.Contains(err.Error(), "good") && diag.CodeOf(err) == diag.Fetch, "class %v: %v", diag.CodeOf(err), err)
}

func TestBootstrapRefusesADamagedDataArchive(t *testing.T) {
	plain := data(t, file("./x", strings.Repeat("x", 2000)))
	damaged := bytes.Clone(plain)
	damaged[100] ^= 0xff // in the mode, covered by the checksum
	for name, archive := range map[string][]byte{"checksum": damaged, "cut": plain[:1024], "cut in the header": plain[:300]} {
		err := bootstrap(filepath.Join(t.TempDir(), "image.tar"), []Deb{locked(t, "p", debOf(t, ".xz", archive))})
		check.That(t, err != nil && strings.Contains(err.Error(), "package p: "), "%s: %v", name, err)
	}
}
