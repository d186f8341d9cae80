package attest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"builder/internal/base/atomicfile"
	"builder/internal/base/regular"
	"builder/internal/evidence/sbom"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
)

// Bounds of what is read from a folder.
const (
	maxStatements = 256
	maxStatement  = 32 << 20  // bytes
	maxFolder     = 128 << 20 // bytes of all
)

// A Bundle is what trusted keys say about one artifact. Provenance is nil and the
// documents are empty where nobody says anything.
type Bundle struct {
	Provenance *Provenance
	Artifacts  []Subject           // what the provenance speaks of
	Beside     []artifact.Artifact // of these what [Verify] found beside the artifact and right
	Said       []artifact.Artifact // the signed files, and the plain ones that are equal to what was signed; nothing else is handed on
	SBOM, VEX  json.RawMessage
	Rounds     []TestResult
	Documents  []Document
	Keys       []string // ids of the keys, each once
	Signed     int      // statements
}

// A Document is a signed file of the folder and what it is about.
type Document struct {
	Name, PredicateType string
	Made                time.Time         // zero where the statement does not say
	Verdicts            []verdict.Verdict // of a round of gates
}

// Read opens every statement about an artifact. All that is wrong with any of
// them comes together; a statement that is not signed by a key of the trust, or
// that speaks of other bytes or of another name, is such a fault and adds nothing,
// and so is a file that nobody signed. Where there is no folder the error is
// [fs.ErrNotExist].
func Read(a artifact.Artifact, trust signing.Trust) (Bundle, error) {
	said, err := list(Dir(a.Path))
	if err != nil {
		return Bundle{}, err
	}
	return readAll(a, said, trust)
}

// list names the files of a folder. What a writer has not ended is none of them.
func list(dir string) ([]artifact.Artifact, error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if len(entries) > maxStatements {
		return nil, fmt.Errorf("%s holds %d files, more than %d", dir, len(entries), maxStatements)
	}
	var said []artifact.Artifact
	for _, entry := range entries {
		if name := entry.Name(); !atomicfile.IsTemp(name) {
			said = append(said, artifact.Artifact{Name: name, Path: filepath.Join(dir, name)})
		}
	}
	return said, nil
}

// readAll is Read for files that lie anywhere, by their names and paths.
func readAll(a artifact.Artifact, said []artifact.Artifact, trust signing.Trust) (Bundle, error) {
	var b Bundle
	var faults []error
	var plain []artifact.Artifact
	left := int64(maxFolder)
	for _, file := range said {
		var err error
		switch {
		case file.Name == plainSBOM || file.Name == plainVEX:
			plain = append(plain, file) // after what was signed of them
		case strings.HasSuffix(file.Name, suffix):
			err = b.read(a, file, &left, trust)
		default:
			err = errors.New("nobody signed it, and nothing else may lie here: remove it")
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", shown(file.Name), err))
		}
	}
	for _, file := range plain {
		if err := b.readPlain(file, &left); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", shown(file.Name), err))
		}
	}
	return b, errors.Join(faults...)
}

// shown quotes a name that is not plain text.
func shown(name string) string {
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

// read adds one statement about an artifact.
func (b *Bundle) read(a, file artifact.Artifact, left *int64, trust signing.Trust) error {
	data, err := readFile(&file, left)
	if err != nil {
		return err
	}
	signed, err := trust.Open(data)
	if err != nil {
		return err
	}
	var s Statement
	if err := decode(signed.Statement, &s); err != nil {
		return fmt.Errorf("reading its statement: %w", err)
	}
	if s.Type != statementType {
		return fmt.Errorf("it is of the type %q, this version reads %s", s.Type, statementType)
	}
	if fault := s.fault(a); fault != "" {
		return errors.New(fault)
	}
	d, err := b.add(s)
	if err != nil {
		return err
	}
	d.Name, d.PredicateType = file.Name, s.PredicateType
	b.Documents, b.Said = append(b.Documents, d), append(b.Said, file)
	b.Signed++
	if !slices.Contains(b.Keys, signed.KeyID) {
		b.Keys = append(b.Keys, signed.KeyID)
	}
	return nil
}

// add takes what a statement says. One of an unknown type says nothing to us.
func (b *Bundle) add(s Statement) (d Document, err error) {
	twice := fmt.Errorf("there is more than one %s", s.PredicateType)
	switch s.PredicateType {
	case ProvenanceType:
		var p Provenance
		if b.Provenance != nil {
			return d, twice
		}
		if err := decode(s.Predicate, &p); err != nil {
			return d, fmt.Errorf("reading its provenance: %w", err)
		}
		b.Provenance, b.Artifacts, d.Made = &p, s.Subject, p.Run.Metadata.Finished
	case sbom.PredicateType:
		if b.SBOM != nil {
			return d, twice
		}
		b.SBOM = s.Predicate
	case VEXType:
		if b.VEX != nil {
			return d, twice
		}
		b.VEX = s.Predicate
	case TestResultType:
		var r TestResult
		if err := decode(s.Predicate, &r); err != nil {
			return d, fmt.Errorf("reading its verdicts: %w", err)
		}
		b.Rounds, d.Made, d.Verdicts = append(b.Rounds, r), r.Finished, r.Verdicts
	}
	return d, nil
}

// The names in a folder. The documents lie there plain too, for programs that
// read no signatures.
const (
	provenanceFile = "provenance" + suffix
	sbomFile       = "sbom" + suffix
	vexFile        = "vex" + suffix
	plainSBOM      = "sbom.spdx.json"
	plainVEX       = "vex.openvex.json"
)

// readPlain adds a plain file, which says what was signed and nothing else.
func (b *Bundle) readPlain(file artifact.Artifact, left *int64) error {
	signed := b.SBOM
	if file.Name == plainVEX {
		signed = b.VEX
	}
	data, err := readFile(&file, left)
	switch {
	case err != nil:
		return err
	case signed == nil:
		return errors.New("nobody who is trusted has signed it")
	case !equalJSON(data, signed):
		return errors.New("it is not what was signed")
	}
	b.Said = append(b.Said, file)
	return nil
}

// readFile reads a file of a folder and measures what it read: who hands it on has
// the bytes that were checked, or none.
func readFile(file *artifact.Artifact, left *int64) ([]byte, error) {
	data, err := regular.Read(file.Path, min(maxStatement, *left))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	file.SHA256, file.Size = hex.EncodeToString(sum[:]), int64(len(data))
	*left -= file.Size
	return data, nil
}

// A Sealer signs what is said about artifacts.
type Sealer struct{ Key signing.Key }

// Seal writes the provenance of all artifacts of a cell, and the SBOM and the VEX
// document of the first, which is its wheel or the archive in its place, into the
// folder of that one. The manifest of a stack has neither: the wheels have their
// own. Whatever lay there speaks of another build and goes.
func (s Sealer) Seal(artifacts []artifact.Artifact, p Provenance) error {
	dir := Dir(artifacts[0].Path)
	spdx, err := sbomOf(artifacts[0], p)
	if err != nil {
		return fmt.Errorf("the SBOM of %s: %w", artifacts[0].Name, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := s.write(dir, provenanceFile, artifacts, ProvenanceType, p); err != nil {
		return err
	}
	if p.isStack() {
		return nil
	}
	if err := s.write(dir, sbomFile, artifacts[:1], sbom.PredicateType, json.RawMessage(spdx)); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(dir, plainSBOM), spdx); err != nil {
		return err
	}
	return s.sealVEX(dir, artifacts[0], p)
}

// sbomOf takes the document of a wheel out of it, and makes that of an archive. A
// stack has none.
func sbomOf(a artifact.Artifact, p Provenance) ([]byte, error) {
	switch e := p.Definition.Internal.Entry; {
	case p.isStack():
		return nil, nil
	case e.Expect.Tree == "":
		return sbomIn(a.Path)
	default:
		return sbom.OfTree(e, a.SHA256)
	}
}

// AddRound writes what one round of gates found about an artifact.
func (s Sealer) AddRound(a artifact.Artifact, r TestResult) error {
	data, err := encode(r)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	name := fmt.Sprintf("verdicts-%s-%s%s", r.Finished.Format("20060102T150405Z"), hex.EncodeToString(sum[:4]), suffix)
	return s.write(Dir(a.Path), name, []artifact.Artifact{a}, TestResultType, r)
}

// write signs a statement and puts it into its file, as a whole or not at all.
func (s Sealer) write(dir, name string, about []artifact.Artifact, predicateType string, predicate any) error {
	statement, err := newStatement(about, predicateType, predicate)
	if err != nil {
		return err
	}
	data, err := encode(statement)
	if err != nil {
		return err
	}
	signed, err := signing.Sign(s.Key, data)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if _, err := list(dir); err != nil { // others would read there what this host signs
		return err
	}
	return writeFile(filepath.Join(dir, name), signed)
}

func writeFile(path string, data []byte) error {
	if err := atomicfile.Write(path, data); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
