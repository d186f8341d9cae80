package oci

import (
	"slices"
	"strings"
	"testing"
)

// The bytes of a manifest must not change: otherwise every package pushed again gets a
// new digest.
func TestTheBytesOfAManifest(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	f := File{Path: "/any/where", Name: "a.whl", MediaType: "application/zip", SHA256: sum, Size: 7}
	p := Package{
		ArtifactType: wheelType, Files: []File{f}, Annotations: map[string]string{"b": "2", "a": "1"},
		Referrers: []Referrer{{ArtifactType: proofType, File: f}},
	}
	const (
		empty = `{"mediaType":"application/vnd.oci.empty.v1+json","digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","size":2,"data":"e30="}`
		head  = `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","artifactType":`
	)
	layers := `,"layers":[{"mediaType":"application/zip","digest":"sha256:` + sum + `","size":7,"annotations":{"org.opencontainers.image.title":"a.whl"}}]`
	want := head + `"` + wheelType + `","config":` + empty + layers + `,"annotations":{"a":"1","b":"2"}}`
	parts, err := pack(p)
	if err != nil || string(parts.manifest.data) != want {
		t.Fatalf("%v\ngot  %s\nwant %s", err, parts.manifest.data, want)
	}
	about := string(parts.referrers[0].data)
	if want := head + `"` + proofType + `","config":` + empty + layers + `,"subject":{"mediaType":`; !strings.HasPrefix(about, want) || !strings.Contains(about, parts.manifest.Digest.String()) {
		t.Errorf("got  %s\nwant %s", about, want)
	}
	if len(parts.blobs) != 2 {
		t.Errorf("%d blobs, of which two are the same: want the configuration and one", len(parts.blobs))
	}
	m, err := read(parts.manifest.data)
	f.Path = ""
	if err != nil || !slices.Equal(m.Files, []File{f}) {
		t.Errorf("%+v, %v", m, err)
	}
}
