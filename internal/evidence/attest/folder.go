package attest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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

// Limits of reading a folder.
const (
	maxStatements = 256
	maxStatement  = 32 << 20  // bytes
	maxFolder     = 128 << 20 // bytes of all files
)

// A Bundle holds the statements of trusted keys about one artifact. Provenance is nil
// and SBOM is empty if there is no such statement.
type Bundle struct {
	Provenance *Provenance
	Artifacts  []Subject           // subjects of the provenance
	Beside     []artifact.Artifact // other subjects [Verify] found beside the artifact with the right digest
	SBOM       json.RawMessage
	Rounds     []TestResult
	Documents  []Document // the statements; only their files are published
	Keys       []string   // ids of the keys, without duplicates
	maker      string     // id of the key that signed the provenance
	strangers  int        // statements of keys that are not trusted
	others     int        // statements of trusted keys about other bytes or another name
}

// A Document is the file of a statement.
type Document struct {
	artifact.Artifact
	PredicateType string
	Verdicts      []verdict.Verdict // of a round of gates
	Signer        string            // id of the key
	content       []byte
}

// Files returns the files of the statements.
func (b Bundle) Files() []artifact.Artifact {
	var all []artifact.Artifact
	for _, d := range b.Documents {
		all = append(all, d.Artifact)
	}
	return all
}

// Read reads every statement about an artifact. The error joins all problems. A
// statement without a trusted signature, a statement about other bytes or another name,
// and an unsigned file are problems and add nothing to the bundle. Read returns
// [fs.ErrNotExist] if the folder is missing.
func Read(a artifact.Artifact, trust signing.Trust) (Bundle, error) {
	said, err := list(Dir(a.Path))
	if err != nil {
		return Bundle{}, err
	}
	return readSaid(a, said, trust)
}

// list returns the files of a folder, without temporary files of a writer.
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

// readSaid is [Read] for files at any paths. The problems of trusted keys come first.
func readSaid(a artifact.Artifact, said []artifact.Artifact, trust signing.Trust) (Bundle, error) {
	r := reader{about: a, trust: trust, left: maxFolder}
	var trusted, others []problem
	for _, file := range said {
		err := errors.New("it is unsigned, and this folder may hold only signed files: remove it")
		if strings.HasSuffix(file.Name, suffix) {
			err = r.read(file)
		}
		switch {
		case errors.Is(err, signing.ErrStranger):
			r.strangers++
			others = append(others, problem{file.Name, err})
		case err != nil:
			trusted = append(trusted, problem{file.Name, err})
		}
	}
	return r.Bundle, joined(append(trusted, others...))
}

// A problem is the error of a file.
type problem struct {
	file string
	err  error
}

// joined returns one error for each text, with the first of its files and the number of
// the others. A changed wheel has the same one with each of its statements, and so has a
// key that is not trusted.
func joined(all []problem) error {
	var errs []error
	for len(all) > 0 {
		first := all[0]
		rest := slices.DeleteFunc(slices.Clone(all), func(x problem) bool { return x.err.Error() == first.err.Error() })
		file := shown(first.file)
		if more := len(all) - len(rest) - 1; more > 0 {
			file += fmt.Sprintf(" and %d more", more)
		}
		errs = append(errs, fmt.Errorf("%s: %w", file, first.err))
		all = rest
	}
	return errors.Join(errs...)
}

// shown quotes a name with characters other than plain text.
func shown(name string) string {
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

// A reader reads the statements about one artifact.
type reader struct {
	Bundle // of those read so far
	about  artifact.Artifact
	trust  signing.Trust
	left   int64 // bytes that it may still read
}

// read adds one statement.
func (r *reader) read(file artifact.Artifact) error {
	data, err := regular.Read(file.Path, min(maxStatement, r.left))
	if err != nil {
		return err
	}
	// Later copies must match the bytes read, so only checked bytes are passed on.
	file.SHA256, file.Size = regular.Sum(data), int64(len(data))
	r.left -= file.Size
	signed, err := r.trust.Open(data)
	if err != nil {
		return err
	}
	var s Statement
	if err := read(signed.Statement, &s); err != nil {
		return fmt.Errorf("reading its statement: %w", err)
	}
	if s.Type != statementType {
		return fmt.Errorf("its type is %q, this version reads %s", s.Type, statementType)
	}
	if problem := s.problem(r.about); problem != "" {
		r.others++
		return errors.New(problem)
	}
	verdicts, err := r.add(s)
	if err != nil {
		return err
	}
	switch s.PredicateType {
	case ProvenanceType:
		r.maker = signed.KeyID
	case TestResultType:
		r.Rounds[len(r.Rounds)-1].signer = signed.KeyID
	}
	r.Documents = append(r.Documents, Document{file, s.PredicateType, verdicts, signed.KeyID, data})
	if !slices.Contains(r.Keys, signed.KeyID) {
		r.Keys = append(r.Keys, signed.KeyID)
	}
	return nil
}

// clockError is the largest difference of two clocks for which statements still count.
const clockError = 24 * time.Hour

// errFuture means that a statement has a time in the future.
var errFuture = errors.New("it is from the future")

// notLater returns an error if a statement was made more than a day after now. A pass with
// such a time would hide every later refusal.
func notLater(made, now time.Time) error {
	if made.After(now.Add(clockError)) {
		return fmt.Errorf("%w: it was made on %s, and here it is %s", errFuture, made.UTC().Format(time.DateOnly), now.UTC().Format(time.DateOnly))
	}
	return nil
}

// add adds the predicate of a statement to the bundle, and returns the verdicts in it. It
// ignores unknown types.
func (r *reader) add(s Statement) ([]verdict.Verdict, error) {
	twice := fmt.Errorf("the folder holds more than one %s", s.PredicateType)
	switch s.PredicateType {
	case ProvenanceType:
		var p Provenance
		if r.Provenance != nil {
			return nil, twice
		}
		if err := read(s.Predicate, &p); err != nil {
			return nil, fmt.Errorf("reading its provenance: %w", err)
		}
		if err := notLater(p.Run.Metadata.Finished, r.trust.Now); err != nil {
			return nil, err
		}
		r.Provenance, r.Artifacts = &p, s.Subject
	case sbom.PredicateType:
		if r.SBOM != nil {
			return nil, twice
		}
		r.SBOM = s.Predicate
	case TestResultType:
		var t TestResult
		if err := read(s.Predicate, &t); err != nil {
			return nil, fmt.Errorf("reading its verdicts: %w", err)
		}
		if wrong := t.contradiction(); wrong != "" {
			return nil, fmt.Errorf("it contradicts itself: %s", wrong)
		}
		if err := notLater(t.Finished, r.trust.Now); err != nil {
			return nil, err
		}
		r.Rounds = append(r.Rounds, t)
		return t.Verdicts, nil
	}
	return nil, nil
}

// A Sealer signs statements about artifacts.
type Sealer struct{ Key signing.Key }

// Seal writes the provenance of all artifacts of a cell, and the SBOM of the first one,
// to the folder of the first artifact. The first artifact is the wheel or the archive in
// its place. Seal first deletes the old contents of the folder, which belong to another
// build.
func (s Sealer) Seal(artifacts []artifact.Artifact, p Provenance) error {
	dir, e := Dir(artifacts[0].Path), p.Definition.Internal.Entry
	var spdx []byte
	var err error
	if e.Expect.Tree != "" {
		spdx, err = sbom.OfTree(e, artifacts[0].SHA256)
	} else {
		spdx, err = sbomIn(artifacts[0].Path)
	}
	if err != nil {
		return fmt.Errorf("the SBOM of %s: %w", artifacts[0].Name, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := s.write(dir, "provenance"+suffix, artifacts, ProvenanceType, p); err != nil {
		return err
	}
	return s.write(dir, "sbom"+suffix, artifacts[:1], sbom.PredicateType, json.RawMessage(spdx))
}

// AddRound writes the results of one round of gates for an artifact.
func (s Sealer) AddRound(a artifact.Artifact, r TestResult) error {
	data, err := encode(r)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("verdicts-%s-%.8s%s", r.Finished.Format("20060102T150405Z"), regular.Sum(data), suffix)
	return s.write(Dir(a.Path), name, []artifact.Artifact{a}, TestResultType, r)
}

// Keep writes documents to the folder of an artifact.
func Keep(a artifact.Artifact, documents []Document) error {
	for _, d := range documents {
		if err := atomicfile.Write(filepath.Join(Dir(a.Path), d.Name), d.content); err != nil {
			return err
		}
	}
	return nil
}

// write signs a statement and writes its file atomically.
func (s Sealer) write(dir, name string, about []artifact.Artifact, predicateType string, predicate any) error {
	signed, err := s.sign(about, predicateType, predicate)
	if err != nil {
		return err
	}
	if _, err := list(dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // refuse what Read would refuse, such as a link
		return err
	}
	return atomicfile.Write(filepath.Join(dir, name), signed)
}

// sign returns a signed statement with any predicate that encodes to JSON.
func (s Sealer) sign(about []artifact.Artifact, predicateType string, predicate any) ([]byte, error) {
	data, err := encode(predicate)
	if err == nil {
		data, err = encode(Statement{statementType, subjects(about), predicateType, data})
	}
	if err != nil {
		return nil, fmt.Errorf("encoding the statement %s: %w", predicateType, err)
	}
	return signing.Sign(s.Key, data)
}

// SignAgain signs every statement about an artifact in place of the trusted keys that
// signed it, and returns how many it signed. It reads nothing but the folder and the
// digest of the artifact: a host that runs no artifact can vouch for the hosts that did.
// A folder with a problem stays as it is.
func (s Sealer) SignAgain(a artifact.Artifact, trust signing.Trust) (int, error) {
	said, err := Read(a, trust)
	if err != nil {
		return 0, err
	}
	if len(said.Documents) == 0 {
		return 0, errors.New("no trusted key signed a statement about it")
	}
	var signed []Document
	for _, d := range said.Documents {
		if d.Signer == s.Key.Public().ID {
			continue
		}
		before, err := trust.Open(d.content)
		if err != nil {
			return 0, err
		}
		if d.content, err = signing.Sign(s.Key, before.Statement); err != nil {
			return 0, err
		}
		signed = append(signed, d)
	}
	return len(signed), Keep(a, signed)
}
