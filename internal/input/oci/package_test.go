package oci

import (
	"slices"
	"strings"
	"testing"

	"oras.land/oras-go/v2/content"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// The bytes of a manifest depend on the package alone: otherwise every package pushed
// again gets a new digest.
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
		time  = `"org.opencontainers.image.created":"1970-01-01T00:00:00Z"`
	)
	layers := `,"layers":[{"mediaType":"application/zip","digest":"sha256:` + sum + `","size":7,"annotations":{"org.opencontainers.image.title":"a.whl"}}]`
	from := newUpload(nil)
	must.Succeed(t, from.pack(t.Context(), p))
	bytes, err := content.FetchAll(t.Context(), from, from.root)
	want := head + `"` + wheelType + `","config":` + empty + layers + `,"annotations":{"a":"1","b":"2",` + time + `}}`
	check.That(t, err == nil && string(bytes) == want, "%v\ngot  %s\nwant %s", err, bytes, want)
	subject := `,"subject":{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"` + from.root.Digest.String() + `","size":573}`
	about, err := content.FetchAll(t.Context(), from, from.referrers[0])
	want = head + `"` + proofType + `","config":` + empty + layers + subject + `,"annotations":{` + time + `}}`
	check.That(t, err == nil && string(about) == want, "%v\ngot  %s\nwant %s", err, about, want)
	m, err := read(bytes)
	f.Path = ""
	check.That(t, err == nil && slices.Equal(m.Files, []File{f}), "%+v, %v", m, err)
}
