// Package builder_test holds the tests over the whole repository: who imports
// whom, who owns which library, and that every package says what it is for.
package builder_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// may lists, for each package, the packages of this module that it may import.
// Tests of the data folders may load the data. The table has no cycle, because
// Go has none; what it adds is direction.
var may = map[string][]string{
	"recipes":                            {},
	"patches":                            {},
	"images":                             {},
	"stacks":                             {},
	"internal/diag":                      {},
	"internal/artifact":                  {"internal/regular"},
	"internal/atomicfile":                {},
	"internal/regular":                   {},
	"internal/curve":                     {},
	"internal/bench":                     {"internal/curve", "internal/diag", "internal/nccltests"},
	"internal/benchpage":                 {"internal/bench", "internal/chart", "internal/curve"},
	"internal/chart":                     {"internal/curve"},
	"internal/x86":                       {},
	"internal/syntax":                    {},
	"internal/complete":                  {"internal/syntax"},
	"internal/manual":                    {"internal/syntax"},
	"internal/config":                    {"internal/decode", "internal/diag", "internal/recipe", "internal/regular", "internal/store", "internal/version"},
	"internal/elf":                       {"internal/x86"},
	"internal/gpu":                       {},
	"internal/nccltests":                 {"internal/elf", "internal/nccllog"},
	"internal/retry":                     {},
	"internal/shell":                     {},
	"internal/golden":                    {},
	"internal/browsertest":               {},
	"internal/pagetest":                  {},
	"internal/decode":                    {"internal/diag"},
	"internal/docscript":                 {"internal/diag", "internal/golden", "internal/markdown"},
	"internal/markdown":                  {"internal/diag"},
	"internal/subst":                     {"internal/diag"},
	"internal/version":                   {"internal/diag", "internal/elf"},
	"internal/progress":                  {"internal/diag", "internal/term"},
	"internal/term":                      {"internal/diag"},
	"internal/diagnose":                  {"internal/decode", "internal/diag", "internal/elf", "internal/version", "internal/wheel"},
	"internal/oci":                       {"internal/diag", "internal/regular", "internal/retry"},
	"internal/store":                     {"internal/atomicfile", "internal/diag", "internal/regular", "internal/retry"},
	"internal/unpack":                    {},
	"internal/deb":                       {"internal/diag", "internal/shell", "internal/store", "internal/unpack"},
	"internal/pypi":                      {"internal/atomicfile", "internal/diag", "internal/store", "internal/wheel"},
	"internal/recipe":                    {"internal/decode", "internal/diag", "internal/shell", "internal/subst", "internal/version"},
	"internal/image":                     {"internal/decode", "internal/diag", "internal/shell", "internal/subst"},
	"internal/patch":                     {"internal/decode", "internal/diag", "internal/subst", "internal/version"},
	"internal/wheel":                     {},
	"internal/matrix":                    {"internal/diag", "internal/recipe", "internal/subst", "internal/version"},
	"internal/ci":                        {"internal/diag", "internal/matrix", "internal/patch", "internal/recipe", "internal/version"},
	"internal/git":                       {"internal/diag"},
	"internal/sourcetree":                {"internal/patch", "internal/wheel"},
	"internal/audit":                     {"internal/patch", "internal/sourcetree", "internal/version"},
	"internal/elf/elftest":               {},
	"internal/wheel/wheeltest":           {},
	"internal/oci/ocitest":               {},
	"internal/upload/uploadtest":         {},
	"internal/recipe/recipetest":         {},
	"internal/sourcetree/sourcetreetest": {},
	"internal/history":                   {"internal/atomicfile", "internal/regular", "internal/store"},
	"internal/steplog":                   {},
	"diagnoses":                          {},
	"profiles":                           {},
	"internal/profile":                   {"internal/decode", "internal/diag", "internal/matrix", "internal/recipe", "internal/version"},
	"internal/nccllog":                   {},
	"internal/ci/actionstest":            {"internal/decode"},
	"internal/lock": {
		"internal/atomicfile", "internal/deb", "internal/diag", "internal/git", "internal/image", "internal/matrix", "internal/oci",
		"internal/patch", "internal/pypi", "internal/recipe", "internal/regular", "internal/store", "internal/subst", "internal/wheel",
	},
	"internal/daemon":  {"internal/diag"},
	"internal/native":  {"internal/atomicfile", "internal/diag", "internal/host", "internal/regular"},
	"internal/locate":  {"internal/artifact", "internal/bench", "internal/diag", "internal/elf", "internal/gpu", "internal/host", "internal/wheel"},
	"internal/subject": {"internal/artifact", "internal/diag", "internal/gate", "internal/inspect", "internal/locate", "internal/lock", "internal/recipe", "internal/run", "internal/store"},
	"internal/reuse":   {"internal/artifact", "internal/attest", "internal/diag", "internal/lock", "internal/publish", "internal/results", "internal/run", "internal/signing", "internal/store"},
	"internal/needs":   {"internal/assemble", "internal/diag", "internal/doctor", "internal/fetch", "internal/lock", "internal/matrix", "internal/oci", "internal/pypi", "internal/recipe", "internal/store"},
	"internal/runlog":  {"internal/report", "internal/steplog"},
	"internal/catalogue": {
		"diagnoses", "images", "internal/diag", "internal/diagnose", "internal/gate", "internal/image", "internal/lock", "internal/matrix", "internal/patch",
		"internal/profile", "internal/recipe", "internal/regular", "internal/shell", "internal/stack", "internal/store", "patches", "profiles", "recipes", "stacks",
	},
	"internal/assemble":   {"internal/catalogue", "internal/diag", "internal/lock", "internal/matrix", "internal/recipe"},
	"internal/stack":      {"internal/artifact", "internal/atomicfile", "internal/decode", "internal/diag", "internal/inspect", "internal/matrix", "internal/recipe", "internal/regular", "internal/subst", "internal/wheel"},
	"internal/inspect":    {"internal/diag", "internal/elf", "internal/wheel"},
	"internal/verdict":    {"internal/curve", "internal/recipe"},
	"internal/device":     {"internal/curve", "internal/gpu", "internal/nccllog", "internal/nccltests", "internal/recipe", "internal/verdict"},
	"internal/gate":       {"internal/device", "internal/elf", "internal/inspect", "internal/patch", "internal/recipe", "internal/sourcetree", "internal/stack", "internal/unpack", "internal/verdict", "internal/version", "internal/wheel", "internal/x86"},
	"internal/index":      {"internal/artifact", "internal/atomicfile", "internal/diag", "internal/regular", "internal/store"},
	"internal/publish":    {"internal/artifact", "internal/attest", "internal/diag", "internal/index", "internal/lock", "internal/oci", "internal/signing", "internal/store", "internal/upload", "internal/verdict", "internal/wheel"},
	"internal/host":       {"internal/store"},
	"internal/fabric":     {"internal/host"},
	"internal/doctor":     {"internal/elf", "internal/fabric", "internal/gpu", "internal/host", "internal/inspect", "internal/native"},
	"internal/difference": {"internal/elf", "internal/unpack", "internal/wheel"},
	"internal/sbom":       {"internal/elf", "internal/lock", "internal/wheel"},
	"internal/signing":    {"internal/diag", "internal/regular"},
	"internal/attest":     {"internal/artifact", "internal/atomicfile", "internal/diag", "internal/gate", "internal/gpu", "internal/lock", "internal/patch", "internal/pypi", "internal/recipe", "internal/regular", "internal/sbom", "internal/signing", "internal/stack", "internal/verdict", "internal/wheel"},
	"internal/fleet":      {"internal/artifact", "internal/diag", "internal/lock", "internal/run"},
	"internal/run":        {"internal/artifact", "internal/attest", "internal/diag", "internal/gate", "internal/lock", "internal/stack", "internal/verdict"},
	"internal/fetch":      {"internal/deb", "internal/diag", "internal/git", "internal/lock", "internal/pypi", "internal/recipe", "internal/store"},
	"internal/proven":     {"internal/atomicfile", "internal/attest", "internal/diag", "internal/regular", "internal/verdict"},
	"internal/results":    {"internal/artifact", "internal/atomicfile", "internal/attest", "internal/diag", "internal/lock", "internal/run", "internal/signing", "internal/stack", "internal/store"},
	"internal/report":     {"internal/artifact", "internal/atomicfile", "internal/curve", "internal/diag", "internal/regular", "internal/stack", "internal/term"},
	"internal/reportpage": {"internal/artifact", "internal/chart", "internal/curve", "internal/diag", "internal/report", "internal/shell", "internal/stack", "internal/term"},
	"internal/carry":      {"internal/diag", "internal/lock", "internal/store"},
	"internal/upload":     {"internal/artifact", "internal/diag", "internal/regular", "internal/retry", "internal/store", "internal/wheel"},
	"pipelines": {
		"internal/artifact", "internal/atomicfile", "internal/deb", "internal/diag", "internal/gate", "internal/lock", "internal/patch",
		"internal/pypi", "internal/run", "internal/sbom", "internal/stack", "internal/store", "internal/wheel",
	},
}

// owner is the one package that may import a library; a test of another package
// must not either. What makes files for tests lies below the owner and may.
var owner = map[string]string{
	"archive/zip":                            "internal/wheel",
	"debug/elf":                              "internal/elf",
	"dagger.io/dagger":                       "pipelines",
	"github.com/elastic/go-seccomp-bpf":      "pipelines",
	"github.com/moby/profiles/seccomp":       "pipelines",
	"github.com/opencontainers/runtime-spec": "pipelines",
	"github.com/bluekeyes/go-gitdiff":        "internal/patch",
	"github.com/cenkalti/backoff":            "internal/retry",
	"github.com/hashicorp/go-version":        "internal/version",
	"github.com/invopop/jsonschema":          "internal/recipe",
	"github.com/pierrec/lz4":                 "internal/elf",
	"github.com/santhosh-tekuri":             "internal/recipe",
	"github.com/sourcegraph/conc":            "internal/run",
	"github.com/ulikunitz/xz":                "internal/unpack",
	"github.com/urfave/cli":                  "cmd/builder",
	"github.com/BurntSushi/toml":             "internal/pypi",
	"go.yaml.in/yaml":                        "internal/decode",
	"oras.land/oras-go":                      "internal/oci",
	"github.com/google/go-containerregistry": "internal/oci",
	"github.com/opencontainers/go-digest":    "internal/oci",
	"github.com/distribution/reference":      "internal/oci",
	"charm.land/lipgloss":                    "internal/term",
	"github.com/sigstore":                    "internal/signing",
	"golang.org/x/term":                      "internal/term",
	"github.com/cpuguy83/go-md2man/v2":       "internal/manual",
	"github.com/in-toto/attestation":         "internal/attest",
	"github.com/opencontainers/image-spec":   "internal/oci",
	"github.com/spdx/tools-golang":           "internal/sbom",
}

type pkg struct {
	ImportPath, Doc                    string
	GoFiles                            []string
	Imports, TestImports, XTestImports []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Doc,GoFiles,Imports,TestImports,XTestImports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		p.ImportPath = local(p.ImportPath)
		if len(p.GoFiles) > 0 { // the others are tests and nothing else
			all = append(all, p)
		}
	}
}

func local(path string) string { return strings.TrimPrefix(path, "builder/") }

func TestImportsFollowTheTable(t *testing.T) {
	for _, p := range packages(t) {
		allowed, listed := may[p.ImportPath]
		if p.ImportPath == "cmd/builder" {
			continue // joins them all
		}
		if !listed {
			t.Errorf("%s is not in the table", p.ImportPath)
			continue
		}
		for _, path := range p.Imports {
			if strings.HasPrefix(path, "builder/") && !slices.Contains(allowed, local(path)) {
				t.Errorf("%s may not import %s", p.ImportPath, local(path))
			}
		}
	}
}

func TestTheTableListsWhatIsThere(t *testing.T) {
	all := packages(t)
	for name, allowed := range may {
		i := slices.IndexFunc(all, func(p pkg) bool { return p.ImportPath == name })
		if i < 0 {
			t.Errorf("%s is in the table and not in the tree", name)
			continue
		}
		for _, path := range allowed {
			if !slices.Contains(all[i].Imports, "builder/"+path) {
				t.Errorf("%s may import %s and does not: narrow the table", name, path)
			}
		}
	}
}

func TestEveryLibraryHasOneOwner(t *testing.T) {
	for _, p := range packages(t) {
		for _, path := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			for library, by := range owner {
				if within(path, library) && !mayImport(p.ImportPath, by) {
					t.Errorf("%s imports %s, which belongs to %s", p.ImportPath, path, by)
				}
			}
		}
	}
}

// mayImport reports whether a package is the owner of a library, or makes files
// for tests below it.
func mayImport(pkg, owner string) bool {
	return pkg == owner || pkg == owner+"/"+path.Base(owner)+"test"
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for _, p := range packages(t) {
		if p.Doc == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}
