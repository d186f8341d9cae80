package publish

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"builder/internal/artifact"
	"builder/internal/attest"
	"builder/internal/diag"
	"builder/internal/gate"
	"builder/internal/index"
	"builder/internal/oci"
	"builder/internal/wheel"
)

// Registry is a repository of an OCI registry. The files of a cell are one package;
// what was said about the wheel are its referrers; tags name the cell, its key, and
// its place in a channel.
type Registry struct {
	*oci.Repository
	progress func(done, total int64)
}

func openRegistry(text string, insecure bool) (Registry, error) {
	repo, err := oci.OpenRepository(text, oci.Options{Insecure: insecure})
	return Registry{Repository: repo}, err
}

// Media types of what is kept in a registry.
const (
	cellType   = "application/vnd.builder.cell.v1"
	wheelType  = "application/vnd.builder.wheel.v1+zip"
	treeType   = "application/vnd.builder.tree.v1"
	besideType = "application/octet-stream"
	bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	plainType  = "application/json"
)

// Annotations. What they say is for lists; what counts is in the signed files. The
// names of dev.sigstore are those that cosign reads.
const (
	cellNote    = "org.builder.cell"
	keyNote     = "org.builder.key"
	recipeNote  = "org.builder.recipe"
	versionNote = "org.builder.version" // of an archive, whose name does not tell it
	axesNote    = "org.builder.axes"    // JSON
	gatesNote   = "org.builder.gates"   // JSON, gate to status, of one round
	createdNote = "org.opencontainers.image.created"
	contentNote = "dev.sigstore.bundle.content"
	saysNote    = "dev.sigstore.bundle.predicateType"
)

// Put implements [Destination].
func (r Registry) Put(ctx context.Context, b Bundle, channel string) (Receipt, error) {
	p, err := b.parcel()
	if err != nil {
		return Receipt{}, err
	}
	said, err := r.said(ctx, b.Entry.Key())
	if err != nil {
		return Receipt{}, refused(err)
	}
	p.Referrers = slices.DeleteFunc(p.Referrers, func(ref oci.Referrer) bool { return said[ref.File.Name] })
	digest, existed, err := r.Push(ctx, p, r.progress)
	if err != nil {
		return Receipt{}, err
	}
	for _, tag := range []string{tagOf(b.Entry.ID), keyTag(b.Entry.Key())} {
		if err := r.Tag(ctx, digest, tag, oci.TagOptions{}); err != nil {
			return Receipt{}, err
		}
	}
	err = r.Tag(ctx, digest, tagOf(b.Entry.ID+"-"+channel), oci.TagOptions{Move: true})
	return b.Receipt(channel, r.String()+"@"+digest, existed), err
}

// Check implements [Destination]: what is pulled by its digest verifies.
func (r Registry) Check(ctx context.Context, c Client, b Bundle) ([]string, error) {
	return c.pull(ctx, r, b)
}

// refused gives a fault of reading the class of publishing, which it was for.
func refused(err error) error {
	if fault, ok := errors.AsType[*diag.Error](err); ok {
		own := *fault
		own.Code = diag.Publish
		return &own
	}
	return err
}

// find returns the digest of the package of a key; where there is none the error
// is [ErrNotPublished].
func (r Registry) find(ctx context.Context, key string) (digest string, err error) {
	digest, err = r.Resolve(ctx, keyTag(key))
	if isMissing(err) {
		return "", ErrNotPublished
	}
	return digest, err
}

// said names what is said already about the cell of a key: who built it first and
// said how is not contradicted by somebody who built the same bytes again.
func (r Registry) said(ctx context.Context, key string) (map[string]bool, error) {
	digest, err := r.find(ctx, key)
	if errors.Is(err, ErrNotPublished) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := r.Referrers(ctx, digest)
	names := map[string]bool{}
	for _, ref := range all {
		for _, f := range ref.Files {
			names[f.Name] = true
		}
	}
	return names, err
}

// Bring implements [Shelf].
func (r Registry) Bring(ctx context.Context, key, dir string) (string, error) {
	digest, err := r.find(ctx, key)
	if err != nil {
		return "", err
	}
	m, err := r.Manifest(ctx, digest)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for _, f := range m.Files {
		if err := r.Fetch(ctx, f, dir, nil); err != nil {
			return "", err
		}
	}
	found, ok := artifactOf(m)
	if !ok {
		return "", fmt.Errorf("%s@%s holds neither a wheel nor an archive of a tree", r, digest)
	}
	path := filepath.Join(dir, found.Name)
	return path, r.bringSaid(ctx, digest, attest.Dir(path))
}

// artifactOf returns the file that the others of a package were made beside.
func artifactOf(m oci.Manifest) (oci.File, bool) {
	i := slices.IndexFunc(m.Files, func(f oci.File) bool { return filepath.Ext(f.Name) == ".whl" || f.MediaType == treeType })
	if i < 0 {
		return oci.File{}, false
	}
	return m.Files[i], true
}

// bringSaid lays out what was said about a package. What others have put beside it
// and cannot be read, or is no statement of ours, is passed over.
func (r Registry) bringSaid(ctx context.Context, digest, dir string) error {
	all, err := r.Referrers(ctx, digest)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, ref := range all {
		if ref.Fault != nil || ref.ArtifactType != bundleType && ref.ArtifactType != plainType {
			continue
		}
		for _, f := range ref.Files {
			if _, err := os.Stat(filepath.Join(dir, f.Name)); err == nil {
				continue // two publishers at once: one of them is enough
			}
			if err := r.Fetch(ctx, f, dir, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// List implements [Shelf]. The time of a record is that of its build.
func (r Registry) List(ctx context.Context) ([]index.Record, error) {
	named, err := r.named(ctx)
	if err != nil {
		return nil, err
	}
	// What has no key is none of ours: an image that shares the repository, say.
	digests := slices.DeleteFunc(slices.Sorted(maps.Keys(named)), func(d string) bool { return !slices.ContainsFunc(named[d], isKeyTag) })
	records := make([]index.Record, len(digests))
	err = each(len(digests), func(i int) (err error) {
		records[i], err = r.record(ctx, digests[i], named[digests[i]])
		return err
	})
	slices.SortFunc(records, func(a, b index.Record) int {
		return cmp.Or(strings.Compare(a.Project, b.Project), strings.Compare(a.Filename, b.Filename), strings.Compare(a.Key, b.Key))
	})
	return records, err
}

// named returns the tags of each digest. A tag that went meanwhile is none, and a
// repository that is not there has none.
func (r Registry) named(ctx context.Context) (map[string][]string, error) {
	tags, err := r.Tags(ctx)
	if err != nil && !isMissing(err) {
		return nil, err
	}
	digests := make([]string, len(tags))
	err = each(len(tags), func(i int) (err error) {
		digests[i], err = r.Resolve(ctx, tags[i])
		if isMissing(err) {
			return nil
		}
		return err
	})
	named := map[string][]string{}
	for i, digest := range digests {
		if digest != "" {
			named[digest] = append(named[digest], tags[i])
		}
	}
	return named, err
}

// record reads what a package and its referrers say of themselves.
func (r Registry) record(ctx context.Context, digest string, tags []string) (index.Record, error) {
	m, err := r.Manifest(ctx, digest)
	if err != nil {
		return index.Record{}, err
	}
	file, ok := artifactOf(m)
	key := m.Annotations[keyNote]
	if !ok || m.ArtifactType != cellType || !slices.Contains(tags, keyTag(key)) {
		return index.Record{}, diag.Errorf(diag.Fetch, "%s@%s: its tag says that it is a published cell, and it is none", r, digest).
			WithHint("remove the tag %s", strings.Join(slices.DeleteFunc(tags, func(t string) bool { return !isKeyTag(t) }), ", "))
	}
	record := index.Record{
		Schema: 1, Filename: file.Name, SHA256: file.SHA256, Size: file.Size,
		Cell: m.Annotations[cellNote], Key: key, Recipe: m.Annotations[recipeNote], Beside: []index.File{},
	}
	for _, f := range m.Files {
		if f.Name != file.Name {
			record.Beside = append(record.Beside, index.File{Path: f.Name, SHA256: f.SHA256, Size: f.Size})
		}
	}
	name, rest, _ := strings.Cut(file.Name, "-")
	record.Project = wheel.NormalName(name)
	record.Version, _, _ = strings.Cut(rest, "-")
	if file.MediaType == treeType {
		record.Project, record.Version = wheel.NormalName(record.Recipe), m.Annotations[versionNote]
	}
	_ = json.Unmarshal([]byte(m.Annotations[axesNote]), &record.Axes) // none, where nobody says any
	record.Channels, record.Tags = sortTags(record.Cell, tags)
	all, err := r.Referrers(ctx, digest)
	record.Published, record.Gates = notes(all)
	return record, err
}

// sortTags tells the channels of a cell from the tags that somebody else gave it.
func sortTags(cell string, tags []string) (channels, others []string) {
	ours := map[string]string{tagOf(cell): ""}
	for _, c := range Channels() {
		ours[tagOf(cell+"-"+c.Name)] = c.Name
	}
	for _, tag := range tags {
		channel, known := ours[tag]
		switch {
		case channel != "":
			channels = append(channels, channel)
		case !known && !isKeyTag(tag):
			others = append(others, tag)
		}
	}
	return channels, others
}

// notes reads the annotations of referrers: when the wheel was built, and what all
// rounds of gates say.
func notes(all []oci.Reference) (built time.Time, gates map[string]string) {
	created := func(ref oci.Reference) time.Time {
		t, _ := time.Parse(time.RFC3339, ref.Annotations[createdNote])
		return t
	}
	slices.SortStableFunc(all, func(a, b oci.Reference) int { return created(a).Compare(created(b)) })
	var verdicts []gate.Verdict
	for _, ref := range all {
		if ref.Annotations[saysNote] == attest.ProvenanceType {
			built = created(ref)
		}
		var round map[string]gate.Status
		_ = json.Unmarshal([]byte(ref.Annotations[gatesNote]), &round)
		verdicts = attest.Merge(verdicts, verdictsOf(round))
	}
	return built, statuses(verdicts)
}

func verdictsOf(round map[string]gate.Status) []gate.Verdict {
	var verdicts []gate.Verdict
	for name, status := range round {
		verdicts = append(verdicts, gate.Verdict{Gate: name, Status: status})
	}
	return verdicts
}

// Withdraw implements [Catalogue].
func (r Registry) Withdraw(ctx context.Context, keys ...string) error {
	named, err := r.named(ctx)
	if err != nil {
		return refused(err)
	}
	var faults []error
	for digest, tags := range named {
		if slices.ContainsFunc(keys, func(key string) bool { return slices.Contains(tags, keyTag(key)) }) {
			faults = append(faults, refused(r.remove(ctx, digest, tags)))
		}
	}
	return errors.Join(faults...)
}

// remove deletes a package first, then the tags that still stand for it, where the
// registry has not done that itself, and last what speaks of it: nobody finds a
// package about which nothing is said.
func (r Registry) remove(ctx context.Context, digest string, tags []string) error {
	about, err := r.Referrers(ctx, digest)
	if err != nil {
		return err
	}
	if err := r.Delete(ctx, digest); err != nil {
		return err
	}
	for _, tag := range tags {
		_, err := r.Resolve(ctx, tag)
		if err == nil {
			err = r.Untag(ctx, tag)
		}
		if err != nil && !isMissing(err) {
			return err
		}
	}
	for _, ref := range about {
		if err := r.Delete(ctx, ref.Digest); err != nil && !isMissing(err) {
			return err
		}
	}
	return nil
}

func isMissing(err error) bool {
	_, missing := errors.AsType[*oci.NotFound](err)
	return missing
}

// parcel is the bundle as a registry takes it.
func (b Bundle) parcel() (oci.Package, error) {
	axes, err := json.Marshal(b.Entry.Axes)
	if err != nil {
		return oci.Package{}, err
	}
	p := oci.Package{
		ArtifactType: cellType,
		Files:        []oci.File{fileOf(b.Wheel, wheelType)},
		Annotations:  map[string]string{cellNote: b.Entry.ID, keyNote: b.Entry.Key(), recipeNote: b.Entry.Recipe, axesNote: string(axes)},
	}
	if b.isTree() {
		p.Files[0].MediaType, p.Annotations[versionNote] = treeType, b.version
	}
	for _, a := range b.Beside {
		p.Files = append(p.Files, fileOf(a, besideType))
	}
	for _, a := range b.Said {
		ref := oci.Referrer{ArtifactType: plainType, File: fileOf(a, plainType)}
		i := slices.IndexFunc(b.documents, func(d attest.Document) bool { return d.Name == a.Name })
		if i >= 0 {
			ref = oci.Referrer{ArtifactType: bundleType, File: fileOf(a, bundleType)}
			if ref.Annotations, err = annotations(b.documents[i]); err != nil {
				return p, err
			}
		}
		p.Referrers = append(p.Referrers, ref)
	}
	return p, nil
}

// annotations say on the outside what a signed document is about.
func annotations(d attest.Document) (map[string]string, error) {
	notes := map[string]string{contentNote: "dsse-envelope", saysNote: d.PredicateType}
	if !d.Made.IsZero() {
		notes[createdNote] = d.Made.UTC().Format(time.RFC3339)
	}
	if len(d.Verdicts) == 0 {
		return notes, nil
	}
	gates, err := json.Marshal(statuses(d.Verdicts))
	notes[gatesNote] = string(gates)
	return notes, err
}

func fileOf(a artifact.Artifact, mediaType string) oci.File {
	return oci.File{Path: a.Path, Name: a.Name, MediaType: mediaType, SHA256: a.SHA256, Size: a.Size}
}

// maxTag is the length of a tag, in bytes (the distribution specification).
const maxTag = 128

// tagOf returns the tag of a name: a tag has no plus sign, and what is too long for
// one ends in the digest of the whole.
func tagOf(name string) string {
	tag := strings.ReplaceAll(name, "+", "_")
	if len(tag) <= maxTag {
		return tag
	}
	sum := sha256.Sum256([]byte(name))
	end := "-" + hex.EncodeToString(sum[:8])
	return tag[:maxTag-len(end)] + end
}

const keyPrefix = "key-"

func keyTag(key string) string { return keyPrefix + key }

func isKeyTag(tag string) bool { return strings.HasPrefix(tag, keyPrefix) }

// atOnce is how many requests for a list are under way at once.
const atOnce = 8

// each does n things, some at once, and returns all that went wrong.
func each(n int, do func(i int) error) error {
	faults := make([]error, n)
	slots := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			faults[i] = do(i)
		})
	}
	all.Wait()
	return errors.Join(faults...)
}
