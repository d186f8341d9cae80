// Package git writes the tree of one commit as an archive. The bytes of the archive
// depend on the commit alone, not on times, owners or the host's git version. Entries
// are sorted and submodules are included. A source from git is therefore pinned by
// sha256 like any other file.
//
// Only this package calls git. It runs nothing of a repository: it uses no hooks, no
// filters and no working tree.
package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
)

// Repository is the address (https, ssh) of a repository or the absolute path of a
// local one.
type Repository string

// Source returns the repository of a source: the first of the user's places, or the
// address in the recipe. Only the user may name a repository of this host.
func Source(address string, places []string) (Repository, error) {
	if len(places) > 0 {
		return Repository(places[0]), nil
	}
	return Repository(address), Repository(address).Remote()
}

var (
	refName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/+-]{0,200}$`)
	commit  = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)
)

// check refuses addresses that git could read as an option or as a program to run.
func (r Repository) check() error {
	if filepath.IsAbs(string(r)) {
		return nil
	}
	return r.Remote()
}

// Remote refuses everything but the address of a repository on another host.
func (r Repository) Remote() error {
	u, err := url.Parse(string(r))
	if err != nil || (u.Scheme != "https" && u.Scheme != "ssh") || u.Host == "" || strings.HasPrefix(u.Host, "-") {
		return diag.Errorf(diag.Usage, "%q is not the address of a repository: write https://… or ssh://…", string(r)).
			WithHint("a recipe cannot name a repository of this host, because it could then read any of them: give its absolute path with --set source.NAME=PATH")
	}
	return nil
}

// Resolve returns the current commit of a tag.
func Resolve(ctx context.Context, r Repository, tag string) (string, error) {
	if err := r.check(); err != nil {
		return "", err
	}
	if !refName.MatchString(tag) {
		return "", diag.Errorf(diag.Usage, "%q is not the name of a tag", tag)
	}
	ref := "refs/tags/" + tag
	out, err := run(ctx, "", "ls-remote", "--", string(r), ref, ref+"^{}")
	if err != nil {
		return "", unreachable(r, err)
	}
	// The peeled line, ^{}, holds the commit of an annotated tag and comes last.
	found := ""
	for line := range strings.Lines(string(out)) {
		found, _, _ = strings.Cut(line, "\t")
	}
	if !commit.MatchString(found) {
		return "", diag.Errorf(diag.Fetch, "%s has no tag %s", r, tag).
			WithHint("`git ls-remote --tags %s` lists its tags: a copy may be older than the release (git fetch --tags), or the recipe names another tag", r)
	}
	return found, nil
}

func unreachable(r Repository, err error) error {
	return diag.Errorf(diag.Fetch, "reaching %s: %w", r, err).
		WithHint("name a local repository that has the commit with --set source.NAME=PATH")
}

// A clone is a bare repository on this host with the fetched commits.
type clone struct {
	dir  string
	from Repository
}

// open makes the clone in dir if it is missing.
func open(ctx context.Context, dir string, from Repository) (*clone, error) {
	if err := from.check(); err != nil {
		return nil, err
	}
	if _, err := run(ctx, "", "init", "--quiet", "--bare", "--", dir); err != nil {
		return nil, fmt.Errorf("cloning %s: %w", from, err)
	}
	return &clone{dir, from}, nil
}

// bring fetches one commit, or everything if the server refuses to serve single
// commits.
func (c *clone) bring(ctx context.Context, from Repository, sha string) error {
	if !commit.MatchString(sha) {
		return diag.Errorf(diag.Usage, "%q is not a commit", sha)
	}
	if c.has(ctx, sha) {
		return nil
	}
	if err := from.check(); err != nil {
		return err
	}
	_, single := run(ctx, c.dir, "fetch", "--quiet", "--no-tags", "--depth", "1", "--", string(from), sha)
	if single == nil && c.has(ctx, sha) {
		return nil
	}
	_, all := run(ctx, c.dir, "fetch", "--quiet", "--no-tags", "--", string(from), "+refs/*:refs/from/*")
	if c.has(ctx, sha) {
		return nil
	}
	if err := errors.Join(ctx.Err(), all); err != nil {
		return unreachable(from, err)
	}
	return diag.Errorf(diag.Fetch, "%s has no commit %s", from, sha)
}

func (c *clone) has(ctx context.Context, sha string) bool {
	_, err := run(ctx, c.dir, "cat-file", "-e", sha+"^{commit}")
	return err == nil
}

// submodules returns the repositories of a commit's submodules, by path.
func (c *clone) submodules(ctx context.Context, from Repository, sha string) (map[string]Repository, error) {
	out, err := run(ctx, c.dir, "config", "--blob", sha+":.gitmodules", "--null", "--list")
	if err != nil {
		return nil, fmt.Errorf("reading .gitmodules of %s: %w", sha, err)
	}
	paths, urls := map[string]string{}, map[string]string{}
	for pair := range bytes.SplitSeq(out, []byte{0}) {
		key, value, _ := strings.Cut(string(pair), "\n")
		name := strings.TrimPrefix(key, "submodule.")
		if at, ok := strings.CutSuffix(name, ".path"); ok {
			paths[at] = value
		}
		if at, ok := strings.CutSuffix(name, ".url"); ok {
			urls[at] = value
		}
	}
	places := map[string]Repository{}
	for name, at := range paths {
		places[at] = submodule(from, name, at, urls[name])
	}
	return places, nil
}

// submodule returns the repository of a submodule: its copy inside a local repository,
// or its address, which may be relative to a remote one. The address comes from the
// source, so [clone.tree] refuses one that names another repository of this host.
func submodule(from Repository, name, at, address string) Repository {
	if dir, ok := inside(from, name, at); ok {
		return Repository(dir)
	}
	if !strings.HasPrefix(address, "./") && !strings.HasPrefix(address, "../") || from.Remote() != nil {
		return Repository(address)
	}
	u, err := url.Parse(string(from))
	if err != nil {
		return Repository(address)
	}
	u.Path = path.Join(u.Path, address)
	return Repository(u.String())
}

// inside returns the copy of a submodule inside a local repository.
func inside(from Repository, name, at string) (dir string, ok bool) {
	if !filepath.IsAbs(string(from)) {
		return "", false
	}
	for _, dir := range []string{filepath.Join(string(from), ".git", "modules", name), filepath.Join(string(from), "modules", name), filepath.Join(string(from), at)} {
		if within(from, Repository(dir)) && isRepository(dir) {
			return dir, true
		}
	}
	return "", false
}

// within reports whether a local repository lies below another.
func within(outer, inner Repository) bool {
	rel, err := filepath.Rel(string(outer), string(inner))
	return err == nil && rel != "." && filepath.IsLocal(rel)
}

// isRepository reports whether dir is a bare repository or a working tree.
func isRepository(dir string) bool {
	for _, name := range []string{"HEAD", ".git"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// run calls git without user configuration that could run a program or ask a question.
// Proxies and credentials stay in effect.
func run(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := command(ctx, dir, args...)
	stdout, stderr := &regular.Buffer{Max: maxAnswer, Whole: true}, &regular.Buffer{Max: maxAnswer}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Run(); err != nil {
		return nil, explain(ctx, err, stderr.String())
	}
	return stdout.Bytes(), nil
}

// maxAnswer bounds the output of git, because a server may send more tags than fit into
// memory. The tags of a large project are a hundredth of it.
const maxAnswer = 64 << 20

func command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	fixed := []string{
		"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "protocol.allow=never",
		"-c", "protocol.https.allow=always", "-c", "protocol.ssh.allow=always", "-c", "protocol.file.allow=always",
		"-c", "safe.directory=*", "-c", "gc.auto=0", "-c", "transfer.fsckObjects=true",
	}
	if dir != "" {
		fixed = append(fixed, "--git-dir", dir)
	}
	cmd := exec.CommandContext(ctx, "git", append(fixed, args...)...)
	cmd.Dir = "/" // git would read the configuration of a repository around the working directory, which names programs
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0")
	return cmd
}

func explain(ctx context.Context, err error, said string) error {
	if errors.Is(err, exec.ErrNotFound) {
		return diag.Errorf(diag.Fetch, "git is not installed").WithHint("apt-get install git")
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	lines := strings.Split(strings.TrimSpace(said), "\n")
	line := lines[len(lines)-1]
	if i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "fatal: ") }); i >= 0 {
		line = lines[i] // git may print advice after it
	}
	return fmt.Errorf("git: %s (%w)", line, err)
}
