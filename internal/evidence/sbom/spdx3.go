package sbom

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"builder/internal/files/wheel"
	"builder/internal/plan/lock"
)

// FullType is the type of the document of [Delivered.Document] in an in-toto statement.
const FullType = "https://spdx.dev/Document/v3.0"

// Delivered is an artifact as it is delivered. Supplier and Address name the builder of
// the artifact and its e-mail address; an empty Address is unknown.
type Delivered struct {
	Name           string // of the file
	SHA256, SHA512 string
	Supplier       string
	Address        string
	Made           time.Time
}

// Document returns the SPDX 3.0.1 document of an artifact built from an entry. w is nil
// for an archive of a source tree.
func (f Delivered) Document(e lock.Entry, w *wheel.Wheel) ([]byte, error) {
	b := newGraph(f)
	about := element{
		Name: e.Source.Project, Version: e.Expect.Version, PURL: ProductURL(e), Purpose: "archive",
		Copyright: "see the licence files in the archive",
	}
	var linked []string
	if w != nil {
		var err error
		if linked, err = linkedBy(w); err != nil {
			return nil, fmt.Errorf("listing what %s links: %w", w.Name, err)
		}
		text, err := notices(w)
		if err != nil {
			return nil, fmt.Errorf("reading the licence files of %s: %w", w.Name, err)
		}
		about.Name, about.Version, about.Purpose = w.Metadata.Get("Name"), w.Metadata.Get("Version"), "library"
		about.PURL = PURL("pypi", about.Name, about.Version)
		about.Copyright = cmp.Or(text, "no notice with a year in the wheel; see the licence files of "+e.Source.Filename)
	}
	b.artifact(e, f, about)
	b.vendored(e)
	b.source(e)
	b.patches(e)
	b.linked(linked)
	return b.encode(about.Name + "-" + about.Version)
}

// element is an object of SPDX 3.0.1, with the names of its JSON-LD context. Fields
// without a value are left out.
type element struct {
	Type        string       `json:"type"`
	BlankID     string       `json:"@id,omitempty"`
	ID          string       `json:"spdxId,omitempty"`
	Creation    string       `json:"creationInfo,omitempty"`
	Name        string       `json:"name,omitempty"`
	Comment     string       `json:"comment,omitempty"`
	SpecVersion string       `json:"specVersion,omitempty"`
	Created     string       `json:"created,omitempty"`
	CreatedBy   []string     `json:"createdBy,omitempty"`
	Using       []string     `json:"createdUsing,omitempty"`
	Identifiers []identifier `json:"externalIdentifier,omitempty"`
	Refs        []outside    `json:"externalRef,omitempty"`
	Hashes      []hash       `json:"verifiedUsing,omitempty"`
	Origin      []string     `json:"originatedBy,omitempty"`
	Supplier    string       `json:"suppliedBy,omitempty"`
	From        string       `json:"from,omitempty"`
	To          []string     `json:"to,omitempty"`
	Relation    string       `json:"relationshipType,omitempty"`
	Complete    string       `json:"completeness,omitempty"`
	Scope       string       `json:"scope,omitempty"`
	Root        []string     `json:"rootElement,omitempty"`
	Elements    []string     `json:"element,omitempty"`
	Profiles    []string     `json:"profileConformance,omitempty"`
	DataLicense string       `json:"dataLicense,omitempty"`
	Expression  string       `json:"simplelicensing_licenseExpression,omitempty"`
	SBOMType    []string     `json:"software_sbomType,omitempty"`
	Version     string       `json:"software_packageVersion,omitempty"`
	PURL        string       `json:"software_packageUrl,omitempty"`
	Location    string       `json:"software_downloadLocation,omitempty"`
	Homepage    string       `json:"software_homePage,omitempty"`
	Copyright   string       `json:"software_copyrightText,omitempty"`
	Purpose     string       `json:"software_primaryPurpose,omitempty"`
	Purposes    []string     `json:"software_additionalPurpose,omitempty"`
}

type identifier struct {
	Type  string `json:"type"`
	Kind  string `json:"externalIdentifierType"`
	Value string `json:"identifier"`
}

type outside struct {
	Type    string   `json:"type"`
	Kind    string   `json:"externalRefType"`
	Locator []string `json:"locator"`
}

type hash struct {
	Type      string `json:"type"`
	Algorithm string `json:"algorithm"`
	Value     string `json:"hashValue"`
}

// Ids of the elements that every document has.
const (
	creationID = "_:creation"
	documentID = "document"
	sbomID     = "sbom"
	creatorID  = "builder"
	toolID     = "tool"
	aboutID    = "artifact"
	fileID     = "artifact-file"
)

// A graph is a document under construction. Its ids are relative until it is encoded.
type graph struct{ all []element }

func newGraph(f Delivered) *graph {
	b := &graph{}
	creator := element{Type: "Organization", ID: creatorID, Name: f.Supplier}
	if f.Address != "" {
		creator.Identifiers = []identifier{{"ExternalIdentifier", "email", f.Address}}
	}
	b.all = append(b.all, element{
		Type: "CreationInfo", BlankID: creationID, SpecVersion: "3.0.1", Created: f.Made.UTC().Format(time.RFC3339),
		CreatedBy: []string{creatorID}, Using: []string{toolID},
	})
	b.add(creator)
	b.add(element{Type: "Tool", ID: toolID, Name: "builder"})
	return b
}

// add adds an element once: licences and owners occur several times.
func (b *graph) add(e element) string {
	if !slices.ContainsFunc(b.all, func(x element) bool { return x.ID == e.ID }) {
		e.Creation = creationID
		b.all = append(b.all, e)
	}
	return e.ID
}

// relate adds a relationship. It adds nothing if there is no target.
func (b *graph) relate(from, relation, completeness string, to ...string) {
	if len(to) > 0 {
		b.add(element{Type: "Relationship", ID: relation + "-" + from, From: from, Relation: relation, Complete: completeness, To: to})
	}
}

// license relates a package with its licence, which recipes state after reading it.
func (b *graph) license(id, expression string) {
	if expression == "" {
		return
	}
	of := b.add(element{Type: "simplelicensing_LicenseExpression", ID: "license-" + plain(expression), Expression: expression})
	b.relate(id, "hasDeclaredLicense", "", of)
	b.relate(id, "hasConcludedLicense", "", of)
}

// owner adds the owner of a repository and returns its id, or none.
func (b *graph) owner(repository string) []string {
	o := ownerOf(repository)
	if o.name == "" {
		return nil
	}
	return []string{b.add(element{
		Type: "Organization", ID: "owner-" + plain(o.address), Name: o.name,
		Identifiers: []identifier{{"ExternalIdentifier", "other", o.address}},
	})}
}

// artifact adds the artifact and its file. A wheel and an archive are containers in the
// words of BSI TR-03183: their parts can be told apart.
func (b *graph) artifact(e lock.Entry, f Delivered, about element) {
	about.Type, about.ID, about.Supplier, about.Homepage = "software_Package", aboutID, creatorID, e.Homepage
	about.Origin = append([]string{creatorID}, b.owner(e.Homepage)...)
	about.Identifiers = []identifier{{"ExternalIdentifier", "packageUrl", about.PURL}}
	b.add(about)
	b.add(element{
		Type: "software_File", ID: fileID, Name: f.Name, Purpose: "archive", Purposes: []string{"archive", "container"},
		Hashes: []hash{{"Hash", "sha256", f.SHA256}, {"Hash", "sha512", f.SHA512}},
	})
	b.relate(aboutID, "hasDistributionArtifact", "", fileID)
	b.license(aboutID, e.License)
}

// vendored adds the code of others in the source. It is delivered inside the artifact.
func (b *graph) vendored(e lock.Entry) {
	var all []string
	for _, v := range e.Vendored {
		p := element{
			Type: "software_Package", ID: "vendored-" + plain(v.Path), Name: v.Name, Version: v.Commit, Purpose: "source",
			Location: location(v.Repository, v.Commit), Homepage: v.Repository, Origin: b.owner(v.Repository),
			Copyright: "see the licence files in " + v.Path + " of " + e.Source.Filename, Comment: "at " + v.Path + " in the source",
		}
		if len(p.Origin) > 0 {
			p.Supplier = p.Origin[0]
		}
		if p.PURL = forgeURL(v.Repository, v.Commit); p.PURL != "" {
			p.Identifiers = []identifier{{"ExternalIdentifier", "packageUrl", p.PURL}}
		}
		all = append(all, b.add(p))
		b.relate(p.ID, "hasDistributionArtifact", "", fileID)
		source := b.add(element{
			Type: "software_File", ID: "source-of-" + plain(v.Path), Name: v.Path, Purpose: "source",
			Refs: []outside{{"ExternalRef", "vcs", []string{p.Location}}},
		})
		b.relate(source, "generates", "", p.ID)
		b.license(p.ID, v.License)
	}
	b.relate(aboutID, "contains", "noAssertion", all...) // a recipe names them; nobody proves that it names all
}

// source adds the archive or the tree that the artifact was made from.
func (b *graph) source(e lock.Entry) {
	s := e.Source
	ref := outside{"ExternalRef", "sourceArtifact", []string{PURL("pypi", s.Project, s.Version)}}
	switch {
	case s.Repository != "":
		ref = outside{"ExternalRef", "vcs", []string{location(s.Repository, s.Commit)}}
	case s.Path != "":
		ref.Locator = []string{PURL("generic", s.Project, s.Version)}
	}
	b.add(element{
		Type: "software_File", ID: sourceID, Name: s.Filename, Purpose: "source", Origin: b.owner(e.Homepage),
		Hashes: []hash{{"Hash", "sha256", s.SHA256}}, Refs: []outside{ref},
	})
	b.relate(sourceID, "generates", "", aboutID)
	b.add(element{
		Type: "LifecycleScopedRelationship", ID: "dependsOn-" + aboutID, From: aboutID, Relation: "dependsOn", Scope: "build",
		Complete: "incomplete", To: []string{sourceID}, Comment: "the provenance lists all materials of the build",
	})
}

func (b *graph) patches(e lock.Entry) {
	var all []string
	for _, p := range e.Patches {
		f := element{
			Type: "software_File", ID: "patch-" + plain(p.Name), Name: p.Name, Purpose: "patch", Comment: p.Reason,
			Supplier: creatorID, Hashes: []hash{{"Hash", "sha256", p.Digest()}},
		}
		if p.Upstream != "" {
			f.Refs = []outside{{"ExternalRef", "other", []string{p.Upstream}}}
		}
		all = append(all, b.add(f))
	}
	b.relate(aboutID, "patchedBy", "complete", all...)
}

// linked adds the libraries of the host. They are files, not packages: the artifact
// names a file, and the host decides which release has it.
func (b *graph) linked(sonames []string) {
	var all []string
	for _, soname := range sonames {
		f := element{Type: "software_File", ID: "lib-" + plain(soname), Name: soname, Purpose: "library", Comment: fromHost}
		if name := supplierOf(soname); name != "" {
			f.Supplier = b.add(element{Type: "Organization", ID: "supplier-" + plain(name), Name: name})
		}
		all = append(all, b.add(f))
	}
	b.relate(aboutID, "hasDynamicLink", "complete", all...)
}

// CreatorOf returns the name and the address of a document's creator, or "". The
// document may be anybody's.
func CreatorOf(document []byte) string {
	var d struct {
		Graph []element `json:"@graph"`
	}
	if json.Unmarshal(document, &d) != nil {
		return ""
	}
	for _, e := range d.Graph {
		if e.Type != "Organization" || !strings.HasSuffix(e.ID, "#"+creatorID) || len(e.Identifiers) != 1 {
			continue
		}
		if who := fmt.Sprintf("%s <%s>", e.Name, e.Identifiers[0].Value); len(who) <= maxNotice && printable(who) {
			return who
		}
	}
	return ""
}

func plain(name string) string { return outsideID.ReplaceAllString(name, "-") }

// encode adds the document and the SBOM around the elements, and makes all ids absolute
// with a name derived from the content.
func (b *graph) encode(name string) ([]byte, error) {
	data := b.add(element{Type: "simplelicensing_LicenseExpression", ID: "license-CC0-1.0", Expression: "CC0-1.0"})
	var ids []string
	for _, e := range b.all {
		if e.ID != "" {
			ids = append(ids, e.ID)
		}
	}
	b.add(element{Type: "software_Sbom", ID: sbomID, Name: name, SBOMType: []string{"build"}, Root: []string{aboutID}, Elements: ids, Profiles: profiles})
	b.add(element{
		Type: "SpdxDocument", ID: documentID, Name: name, Root: []string{sbomID}, Elements: append(slices.Clone(ids), sbomID),
		Profiles: profiles, DataLicense: data,
	})
	bare, err := json.Marshal(b.all)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(bare)
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	err = enc.Encode(struct {
		Context string    `json:"@context"`
		Graph   []element `json:"@graph"`
	}{"https://spdx.org/rdf/3.0.1/spdx-context.jsonld", absolute(b.all, "urn:builder:sbom:"+hex.EncodeToString(sum[:])+"#")})
	return out.Bytes(), err
}

var profiles = []string{"core", "software", "simpleLicensing"}

// absolute returns the elements with a prefix before every id.
func absolute(all []element, prefix string) []element {
	one := func(id string) string {
		if id == "" {
			return ""
		}
		return prefix + id
	}
	many := func(ids []string) []string {
		var out []string
		for _, id := range ids {
			out = append(out, one(id))
		}
		return out
	}
	var out []element
	for _, e := range all {
		e.ID, e.Supplier, e.From, e.DataLicense = one(e.ID), one(e.Supplier), one(e.From), one(e.DataLicense)
		e.CreatedBy, e.Using, e.Origin, e.To, e.Root, e.Elements = many(e.CreatedBy), many(e.Using), many(e.Origin), many(e.To), many(e.Root), many(e.Elements)
		out = append(out, e)
	}
	return out
}
