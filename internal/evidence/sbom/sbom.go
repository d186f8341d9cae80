// Package sbom describes the contents of an artifact: the source it was built from,
// third-party code in that source, the patches, and the linked libraries.
//
// [Of] and [OfTree] write SPDX 2.3, which most scanners read. The document of a wheel is a
// member of the wheel (PEP 770), so it depends only on the contents of the wheel. It has
// no time except the release's, no version of this tool and no key of a cell. Build
// requirements are in the provenance, not here. Nothing is added to an archive of
// upstream's source tree, so its document is a file beside it.
package sbom

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"builder/internal/base/regular"
	"builder/internal/files/elf"
	"builder/internal/files/wheel"
	"builder/internal/plan/lock"
)

// Member is the path of the document below a wheel's .dist-info directory.
const Member = wheel.SBOMs + "builder.spdx.json"

// Revision is the version of the output of [Of]. It is part of every cell's key,
// because another document gives another wheel.
const Revision = "sbom2"

// PredicateType is the type of the document in an in-toto statement.
const PredicateType = "https://spdx.dev/Document/v2.3"

// Of returns the document for a wheel built from an entry. A document already in the
// wheel does not affect the result.
func Of(e lock.Entry, w *wheel.Wheel) ([]byte, error) {
	linked, err := linkedBy(w)
	if err != nil {
		return nil, fmt.Errorf("listing the libraries linked by %s: %w", w.Name, err)
	}
	project, version := w.Metadata.Get("Name"), w.Metadata.Get("Version")
	copyright, err := notices(w)
	if err != nil {
		return nil, fmt.Errorf("reading the licence files of %s: %w", w.Name, err)
	}
	d := newDocument(e, wheelID, pkg{
		Name: project, Version: version, Purpose: "LIBRARY", Copyright: copyright,
		Refs: []reference{{"PACKAGE-MANAGER", "purl", PURL("pypi", project, version)}},
	})
	for _, soname := range linked {
		_, version, _ := strings.Cut(soname, ".so.") // 2 of libnccl.so.2
		d.add(pkg{
			Name: soname, Version: cmp.Or(version, noAssertion), Supplier: organization(supplierOf(soname)),
			Purpose: "LIBRARY", Comment: fromHost + "; the version is the one in its soname",
		}, "lib-"+soname)
		d.relate(wheelID, "DYNAMIC_LINK", "lib-"+soname)
	}
	return d.encode()
}

// OfTree returns the document for an archive of an entry's patched source tree. sha256
// is the digest of the archive, which package registries do not know.
func OfTree(e lock.Entry, sha256 string) ([]byte, error) {
	d := newDocument(e, treeID, pkg{
		Name: e.Source.Project, Version: e.Expect.Version, Purpose: "ARCHIVE",
		Checksums: []checksum{{"SHA256", sha256}},
		Refs:      []reference{{"PACKAGE-MANAGER", "purl", PURL("generic", e.Source.Project, e.Expect.Version)}},
	})
	return d.encode()
}

// fromHost says where a linked library comes from.
const fromHost = "provided by the host at run time; DT_NEEDED"

// linkedBy lists the sonames needed by the libraries of a wheel and not contained in
// it.
func linkedBy(w *wheel.Wheel) ([]string, error) {
	var needed, brought []string
	for _, f := range w.Files {
		if !wheel.IsLibrary(f.Name) {
			continue
		}
		lib, err := readLibrary(w, f.Name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		if lib != nil {
			needed, brought = append(needed, lib.Needed...), append(brought, lib.Soname, path.Base(f.Name))
		}
	}
	slices.Sort(needed)
	return slices.DeleteFunc(slices.Compact(needed), func(s string) bool { return slices.Contains(brought, s) }), nil
}

// readLibrary returns nil for a file with the name of a library but other contents,
// such as a linker script.
func readLibrary(w *wheel.Wheel, name string) (*elf.File, error) {
	r, err := w.Open(context.Background(), name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if !elf.Is(r) {
		return nil, nil
	}
	return elf.Read(r)
}

// document is an SPDX 2.3 document, with the field names of its JSON schema.
type document struct {
	Version       string         `json:"spdxVersion"`
	License       string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      creation       `json:"creationInfo"`
	Describes     []string       `json:"documentDescribes"`
	Packages      []pkg          `json:"packages"`
	Relationships []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type pkg struct {
	ID        string      `json:"SPDXID"`
	Name      string      `json:"name"`
	Version   string      `json:"versionInfo,omitempty"`
	Supplier  string      `json:"supplier,omitempty"`
	Origin    string      `json:"originator,omitempty"`
	Location  string      `json:"downloadLocation"`
	Analyzed  bool        `json:"filesAnalyzed"`
	Purpose   string      `json:"primaryPackagePurpose,omitempty"`
	Homepage  string      `json:"homepage,omitempty"`
	Concluded string      `json:"licenseConcluded"`
	Declared  string      `json:"licenseDeclared"`
	Copyright string      `json:"copyrightText"`
	Checksums []checksum  `json:"checksums,omitempty"`
	Refs      []reference `json:"externalRefs,omitempty"`
	Comment   string      `json:"comment,omitempty"`
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type reference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

const (
	noAssertion = "NOASSERTION"
	wheelID     = "wheel"
	treeID      = "archive"
	sourceID    = "source"
)

// newDocument describes the artifact with the given id, its source and its patches.
func newDocument(e lock.Entry, id string, about pkg) *document {
	d := &document{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: about.Name + "-" + about.Version,
		Creation: creation{time.Unix(e.Epoch, 0).UTC().Format(time.RFC3339), []string{"Tool: builder"}},
	}
	about.Supplier, about.Origin = organization(maker), organization(ownerOf(e.Homepage))
	about.Concluded, about.Declared = e.License, e.License
	d.add(about, id)
	d.Describes = []string{spdxID(id)}
	d.relate("DOCUMENT", "DESCRIBES", id)
	d.addSource(e, id)
	d.addPatches(e, id)
	return d
}

// addSource adds the source of id and the third-party code in it.
func (d *document) addSource(e lock.Entry, id string) {
	s := e.Source
	source := pkg{
		Name: s.Filename, Version: s.Version, Purpose: "SOURCE",
		Supplier:  organization(ownerOf(e.Homepage)),
		Checksums: []checksum{{"SHA256", s.SHA256}},
		Location:  location(s.Repository, s.Commit),
		Concluded: e.License, Declared: e.License,
	}
	if s.Repository == "" && s.Path == "" {
		source.Refs = []reference{{"PACKAGE-MANAGER", "purl", PURL("pypi", s.Project, s.Version)}}
	}
	d.add(source, sourceID)
	d.relate(id, "GENERATED_FROM", sourceID)
	d.relate(id, "DEPENDS_ON", sourceID) // the specification: in order to build and run
	for _, v := range e.Vendored {
		id := "vendored-" + v.Path
		d.add(pkg{
			Name: v.Name, Version: v.Commit, Purpose: "SOURCE", Concluded: v.License, Declared: v.License,
			Supplier: organization(ownerOf(v.Repository)),
			Location: location(v.Repository, v.Commit), Comment: "at " + v.Path + " in the source",
		}, id)
		d.relate(sourceID, "CONTAINS", id)
	}
}

// location returns the address of a commit. The place of an archive is configuration
// and does not belong in a document.
func location(repository, commit string) string {
	if repository == "" {
		return noAssertion
	}
	return "git+" + repository + "@" + commit
}

func (d *document) addPatches(e lock.Entry, about string) {
	for _, p := range e.Patches {
		id := "patch-" + p.Name
		d.add(pkg{
			Name: "patch " + p.Name, Version: p.Digest()[:12], Supplier: organization(maker), Purpose: "SOURCE",
			Homepage: p.Upstream, Comment: p.Reason, Checksums: []checksum{{"SHA256", p.Digest()}},
		}, id)
		d.relate(id, "PATCH_FOR", sourceID)
		d.relate(about, "DEPENDS_ON", id)
	}
}

func (d *document) add(p pkg, id string) {
	p.ID = spdxID(id)
	for _, text := range []*string{&p.Supplier, &p.Location, &p.Concluded, &p.Declared, &p.Copyright} {
		if *text == "" {
			*text = noAssertion
		}
	}
	d.Packages = append(d.Packages, p)
}

func (d *document) relate(from, kind, to string) {
	d.Relationships = append(d.Relationships, relationship{spdxID(from), kind, spdxID(to)})
}

var outsideID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func spdxID(name string) string { return "SPDXRef-" + outsideID.ReplaceAllString(name, "-") }

// encode derives the document's namespace from its content: different documents have
// different namespaces, and equal documents the same.
func (d *document) encode() ([]byte, error) {
	seen := map[string]bool{}
	for _, p := range d.Packages {
		if seen[p.ID] {
			return nil, errors.New("two packages of the SBOM have the id " + p.ID)
		}
		seen[p.ID] = true
	}
	bare, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	named := *d
	named.Namespace = "urn:builder:sbom:" + regular.Sum(bare)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	err = enc.Encode(named)
	return b.Bytes(), err
}

// PURL returns the package URL of a release (https://github.com/package-url/purl-spec):
// pkg:pypi/numpy@1.26.4, pkg:deb/debian/libc6@2.41-12.
func PURL(kind, name, version string) string {
	if kind == "pypi" {
		name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	}
	// The specification requires all characters to be percent-encoded except unreserved ones
	// and colons.
	return "pkg:" + kind + "/" + name + "@" + strings.NewReplacer("+", "%20", "%3A", ":").Replace(url.QueryEscape(version))
}
