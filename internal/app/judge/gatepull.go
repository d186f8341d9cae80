package judge

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"builder/internal/base/diag"
	"builder/internal/base/shell"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/publishing/publish"
	"builder/internal/publishing/subject"
)

// subjects finds the artifacts of the request. It pulls those in registries. An artifact
// that cannot be found stops all.
func (b *gateRun) subjects(ctx context.Context) ([]subject.Subject, error) {
	paths := slices.Clone(b.options.Paths)
	var errs []error
	for i, path := range paths {
		if publish.InRegistry(path) && ctx.Err() == nil {
			from, found, err := b.pull(ctx, path, false)
			paths[i], b.pulled[found], errs = found, from, append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return subject.Find(paths, b.options.Entry)
}

// tool returns the path of a file for the gates. One in a registry is pulled, and must
// have passed its gates, because the gates execute it.
func (b *gateRun) tool(ctx context.Context, path string) (string, error) {
	if !publish.InRegistry(path) {
		return path, nil
	}
	_, found, err := b.pull(ctx, path, true)
	return found, err
}

// pull copies a publication below the scratch directory.
func (b *gateRun) pull(ctx context.Context, address string, passed bool) (from publish.Digest, path string, err error) {
	policy := attest.Policy("") // a gate can judge an artifact again that it refused before
	if passed {
		policy = attest.Candidate
	}
	start := time.Now()
	b.Display.Start(address, "pull")
	from, path, err = pullBelow(ctx, address, b.options.Insecure, b.scratch, b.trust, policy)
	b.Display.Done(address, "pull", time.Since(start), false, err)
	return from, path, err
}

// pullBelow copies a publication to a new directory below scratch.
func pullBelow(ctx context.Context, address string, insecure bool, scratch string, trust signing.Trust, policy attest.Policy) (from publish.Digest, path string, err error) {
	if from, err = publish.OpenDigest(address, insecure); err != nil {
		return from, "", err
	}
	dir, err := os.MkdirTemp(scratch, "pulled-*")
	if err == nil {
		path, err = from.Pull(ctx, dir, trust, policy)
	}
	return from, path, err
}

// attachThere adds the verdicts of this host to a pulled artifact's publication. If the
// registry refuses them, it keeps the cell in the working directory.
func (b *gateRun) attachThere(ctx context.Context, a artifact.Artifact, key signing.Key) error {
	from, ok := b.pulled[a.Path]
	if !ok {
		return nil
	}
	trust := b.trust
	trust.Keys = append(slices.Clone(trust.Keys), key.Public())
	err := from.Attach(ctx, a, trust)
	if err == nil {
		b.Keys.Note("added the verdicts to %s; whoever takes the cell from there must trust the key %s, or refuses it", from, key.Public().ID)
		return nil
	}
	kept, err2 := os.MkdirTemp(".", "gated-*")
	if kept = filepath.Clean(kept); err2 == nil {
		err2 = os.CopyFS(kept, os.DirFS(filepath.Dir(a.Path)))
	}
	if err2 != nil {
		return errors.Join(err, err2)
	}
	kept = filepath.Join(kept, a.Name)
	return errors.Join(err, diag.Errorf(diag.Publish, "the cell with the verdicts is kept: %s", kept).
		WithHint("when the registry accepts writes, run `%s` with the flags --trust and --key of this command; publish takes no refused artifact, so run the gates again for a refusal", shell.Line("builder", "publish", kept, "--to", from.Registry.String())))
}
