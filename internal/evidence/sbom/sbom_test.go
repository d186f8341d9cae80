package sbom_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"

	"builder/internal/evidence/sbom"
	"builder/internal/files/wheel"
	"builder/internal/input/pypi"
	"builder/internal/plan/lock"
	"builder/internal/plan/patch"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/elftest"
	"builder/test/kit/must"
	"builder/test/kit/wheeltest"
)

func entry() lock.Entry {
	return lock.Entry{
		Recipe: "tool", ID: "tool-1.0", Epoch: 1700000000,
		Source:  lock.SourcePin{File: pypi.File{Project: "tool", Version: "1.0", Filename: "tool-1.0.tar.gz", SHA256: strings.Repeat("a", 64)}},
		Patches: []patch.Patch{{Name: "seal", Reason: "because of it", Upstream: "https://example.com/1"}},
		Vendored: []recipe.Vendored{
			{Name: "gloo", Path: "third_party/gloo", Repository: "https://example.com/gloo", Commit: strings.Repeat("b", 40), License: "BSD-3-Clause"},
		},
	}
}

func of(t *testing.T, e lock.Entry, files ...wheeltest.File) []byte {
	t.Helper()
	w := must.Get(wheel.Open(wheeltest.Wheel{Name: "tool-1.0+cuda13.0-py3-none-any.whl", Files: files}.Write(t)))(t)
	defer w.Close()
	return must.Get(sbom.Of(e, w))(t)
}

func library(soname string, needed ...string) string {
	return string(elftest.Library{Soname: soname, Needed: needed}.Bytes())
}

// SPDX's own library must be able to read the document.
func TestOf(t *testing.T) {
	data := of(t, entry(),
		wheeltest.File{Name: "tool/a.so", Text: library("liba.so.1", "libnccl.so.2", "libb.so.1", "libc.so.6")},
		wheeltest.File{Name: "tool/libb.so.1", Text: library("libb.so.1", "libc.so.6")},
		wheeltest.File{Name: "tool/script.so", Text: "INPUT(liba.so.1)"},
	)
	doc, err := spdxjson.Read(bytes.NewReader(data))
	must.Hold(t, err == nil, "%v\n%s", err, data)
	var names []string
	for _, p := range doc.Packages {
		names = append(names, p.PackageName+" "+p.PackageVersion)
	}
	want := []string{"tool 1.0+cuda13.0", "tool-1.0.tar.gz 1.0", "gloo " + strings.Repeat("b", 40), "patch seal 7f739462d67e", "libc.so.6 6", "libnccl.so.2 2"}
	check.That(t, slices.Equal(names, want), "packages %q, want %q", names, want)
	for _, want := range []string{
		"DOCUMENT DESCRIBES wheel", "wheel GENERATED_FROM source", "source CONTAINS vendored-third-party-gloo",
		"wheel DEPENDS_ON source", "wheel DEPENDS_ON patch-seal",
		"patch-seal PATCH_FOR source", "wheel DYNAMIC_LINK lib-libnccl.so.2",
	} {
		if !slices.ContainsFunc(doc.Relationships, func(r *spdx.Relationship) bool {
			return string(r.RefA.ElementRefID)+" "+r.Relationship+" "+string(r.RefB.ElementRefID) == want
		}) {
			t.Errorf("no relationship %q in\n%s", want, data)
		}
	}
	if doc.CreationInfo.Created != "2023-11-14T22:13:20Z" || doc.Packages[3].PackageHomePage != "https://example.com/1" ||
		doc.Packages[2].PackageLicenseDeclared != "BSD-3-Clause" {
		t.Errorf("%s", data)
	}
}

// Suppliers are the owners of repositories, and the makers of well-known libraries. An
// unknown library has none, rather than an invented one.
func TestSuppliers(t *testing.T) {
	e := entry()
	e.Homepage, e.License = "https://example.com/tools/tool", "MIT"
	data := of(t, e, wheeltest.File{Name: "tool/a.so", Text: library("liba.so.1", "libnccl.so.2", "libstrange.so", "libc.so.6")})
	doc := must.Get(spdxjson.Read(bytes.NewReader(data)))(t)
	var got []string
	for _, p := range doc.Packages {
		line := p.PackageName + ": " + p.PackageVersion + " by "
		if p.PackageSupplier != nil {
			line += p.PackageSupplier.Supplier
		}
		got = append(got, line+", "+p.PackageLicenseConcluded)
	}
	want := []string{
		"tool: 1.0+cuda13.0 by builder, MIT", "tool-1.0.tar.gz: 1.0 by tools, MIT",
		"gloo: " + strings.Repeat("b", 40) + " by example.com, BSD-3-Clause", "patch seal: 7f739462d67e by builder, NOASSERTION",
		"libc.so.6: 6 by GNU Project, NOASSERTION", "libnccl.so.2: 2 by NVIDIA, NOASSERTION", "libstrange.so: NOASSERTION by NOASSERTION, NOASSERTION",
	}
	check.That(t, slices.Equal(got, want), "%q, want %q", got, want)
}

// The notices in the wheel's licence files are its copyright text. The text of a licence
// is no notice, and neither is a line that a terminal or a reader would stumble over.
func TestNotices(t *testing.T) {
	info := "tool-1.0+cuda13.0.dist-info/"
	data := string(of(t, entry(),
		wheeltest.File{Name: info + "licenses/LICENSE.txt", Text: "  Copyright (c) 2015-2020, Example.\nthe above copyright notice\nCopyright [yyyy] [name]\n"},
		wheeltest.File{Name: info + "NOTICE", Text: "Copyright 2019 Other\nCopyright 2019 Other\nCopyright 2020 \x1b[31mred\n" + strings.Repeat("x", 300) + " Copyright 2021\n"},
		wheeltest.File{Name: "tool/LICENSE", Text: "Copyright 2022 elsewhere\n"},
	))
	want := `"copyrightText": "Copyright (c) 2015-2020, Example.\nCopyright 2019 Other",`
	check.That(t, strings.Contains(data, want), "no %s in\n%s", want, data)
}

// The document is part of the wheel, so it must depend only on the contents of the
// wheel.
func TestOfIsAFunction(t *testing.T) {
	member := wheeltest.File{Name: "tool/a.so", Text: library("a.so", "libc.so.6")}
	first := of(t, entry(), member)
	check.Same(t, "the second time", of(t, entry(), member), first)
	other := entry()
	other.ID, other.Expect.Version, other.Pipeline = "another", "2", "x"
	check.That(t, bytes.Equal(first, of(t, other, member)), "it depends on what is not in the wheel")
	other.Patches = nil
	changed := of(t, other, member)
	check.That(t, !bytes.Equal(first, changed) && namespace(t, changed) != namespace(t, first), "without its patch it has the same name")
	with := of(t, entry(), member, wheeltest.File{Name: "tool-1.0+cuda13.0.dist-info/" + sbom.Member, Text: "{}"})
	check.That(t, bytes.Equal(first, with), "a document that lies there changes it")
}

func namespace(t *testing.T, data []byte) string {
	t.Helper()
	doc := must.Get(spdxjson.Read(bytes.NewReader(data)))(t)
	return doc.DocumentNamespace
}

func TestSourcesOtherThanSdists(t *testing.T) {
	e := entry()
	e.Source.Repository, e.Source.Commit = "https://example.com/tool", strings.Repeat("c", 40)
	if data := string(of(t, e)); !strings.Contains(data, `"git+https://example.com/tool@`+strings.Repeat("c", 40)) || strings.Contains(data, "pkg:pypi/tool@1.0\"") {
		t.Errorf("%s", data)
	}
	e = entry()
	e.Source.Path = "pool/main/t/tool_1.0.orig.tar.gz"
	data := string(of(t, e))
	check.That(t, !strings.Contains(data, "pkg:pypi/tool@1.0\""), "%s", data)
	e.Vendored = append(e.Vendored, e.Vendored[0])
	w, err := wheel.Open(wheeltest.Wheel{Name: "tool-1.0-py3-none-any.whl"}.Write(t))
	must.Succeed(t, err)
	defer w.Close()
	_, err = sbom.Of(e, w)
	check.Fails(t, err, "have the id", "two of one name")
}

func TestPURL(t *testing.T) {
	for want, got := range map[string]string{
		"pkg:pypi/nvidia-nccl-cu13@2.29.7%2Bcuda13.0": sbom.PURL("pypi", "nvidia_nccl_cu13", "2.29.7+cuda13.0"),
		"pkg:deb/debian/x@1:2~rc1":                    sbom.PURL("deb", "debian/x", "1:2~rc1"),
	} {
		check.That(t, got == want, "%s, want %s", got, want)
	}
}

// The document of an archive states its digest. An archive that is in no package index
// has a generic URL, not one of a Python package.
func TestOfTree(t *testing.T) {
	e := entry()
	e.Expect = recipe.Expect{Tree: "tool-1.0+rocm6.1.tar.gz", Version: "1.0+rocm6.1"}
	data := must.Get(sbom.OfTree(e, strings.Repeat("c", 64)))(t)
	doc, err := spdxjson.Read(bytes.NewReader(data))
	must.Hold(t, err == nil, "%v\n%s", err, data)
	about := doc.Packages[0]
	if about.PackageName != "tool" || about.PackageVersion != "1.0+rocm6.1" || about.PrimaryPackagePurpose != "ARCHIVE" ||
		about.PackageChecksums[0].Value != strings.Repeat("c", 64) || about.PackageExternalReferences[0].Locator != "pkg:generic/tool@1.0%2Brocm6.1" {
		t.Errorf("it describes %+v", about)
	}
	check.That(t, len(doc.Packages) == 4 && strings.Contains(string(data), `"relationshipType": "GENERATED_FROM"`), "%s", data)
	again, err := sbom.OfTree(e, strings.Repeat("d", 64))
	check.That(t, err == nil && !bytes.Equal(again, data), "another archive has the same document: %v", err)
}
