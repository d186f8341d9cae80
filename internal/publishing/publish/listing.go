package publish

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sourcegraph/conc/pool"

	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
	"builder/internal/files/wheel"
	"builder/internal/gates/verdict"
	"builder/internal/input/oci"
	"builder/internal/publishing/index"
)

// List implements [Source]. Published is the time of the build.
func (r Registry) List(ctx context.Context) ([]index.Record, error) {
	named, err := r.named(ctx)
	if err != nil {
		return nil, err
	}
	// A manifest without a key tag is not a cell, for example an image in the same
	// repository.
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

// named returns the tags of each digest. It skips tags deleted during the listing. A
// missing repository has no tags.
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

// record reads the record of a package from its manifest and its referrers.
func (r Registry) record(ctx context.Context, digest string, tags []string) (index.Record, error) {
	m, err := r.Manifest(ctx, digest)
	if err != nil {
		return index.Record{}, err
	}
	file, ok := artifactOf(m)
	key := m.Annotations[keyNote]
	if !ok || m.ArtifactType != cellType || !slices.Contains(tags, keyTag(key)) {
		return index.Record{}, diag.Errorf(diag.Fetch, "%s@%s has the tag of a published cell, but is not one", r, digest).
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
	if file.MediaType == treeType {
		record.Project, record.Version = wheel.NormalName(record.Recipe), m.Annotations[versionNote]
	} else if name, err := wheel.ParseName(file.Name); err == nil {
		record.Project, record.Version = wheel.NormalName(name.Distribution), name.Version
	}
	_ = json.Unmarshal([]byte(m.Annotations[axesNote]), &record.Axes) // no axes if the annotation is missing
	record.Channels, record.Tags = sortTags(record.Cell, tags)
	all, err := r.Referrers(ctx, digest)
	record.Published, record.Gates = notes(all)
	return record, err
}

// sortTags separates the channels of a cell from tags set by others.
func sortTags(cell string, tags []string) (channels, others []string) {
	ours := map[string]string{tagOf(cell): ""}
	for _, channel := range attest.Policies() {
		ours[tagOf(cell+"-"+channel)] = channel
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

// notes reads the annotations of referrers: the time of the build, and the results of
// all rounds of gates.
func notes(all []oci.Manifest) (built time.Time, gates map[string]string) {
	created := func(ref oci.Manifest) time.Time {
		t, _ := time.Parse(time.RFC3339, ref.Annotations[createdNote])
		return t
	}
	slices.SortStableFunc(all, func(a, b oci.Manifest) int { return created(a).Compare(created(b)) })
	var verdicts []verdict.Verdict
	for _, ref := range all {
		if ref.Annotations[saysNote] == attest.ProvenanceType {
			built = created(ref)
		}
		var round map[string]verdict.Status
		_ = json.Unmarshal([]byte(ref.Annotations[gatesNote]), &round)
		verdicts = verdict.Merge(verdicts, verdictsOf(round))
	}
	return built, statuses(verdicts)
}

func verdictsOf(round map[string]verdict.Status) []verdict.Verdict {
	var verdicts []verdict.Verdict
	for name, status := range round {
		verdicts = append(verdicts, verdict.Verdict{Gate: name, Status: status})
	}
	return verdicts
}

// atOnce is the number of concurrent requests for a list.
const atOnce = 8

// each calls do n times, partly concurrently, and joins the errors.
func each(n int, do func(i int) error) error {
	errs := make([]error, n)
	all := pool.New().WithMaxGoroutines(atOnce)
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}
