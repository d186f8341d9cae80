package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/evidence/translog"
)

// A LogRequest names the transparency log of a site, for its keeper. The zero value
// names none.
type LogRequest struct {
	Dir       string
	Key       string // file of the log's private key
	Witnesses string // file with a policy of witnesses; "" is none
}

// logWriter adds entries to a log. A nil one adds none.
type logWriter struct {
	log  *translog.Log
	key  note.Signer
	note func(format string, args ...any)
}

// openLog returns the writer of a log, or nil for none.
func (s *Session) openLog(r LogRequest) (*logWriter, error) {
	if r == (LogRequest{}) {
		return nil, nil
	}
	if r.Dir == "" || r.Key == "" {
		return nil, diag.Errorf(diag.Usage, "a log needs its directory, --log DIR, and its key, --log-key FILE")
	}
	key, verifier, err := signing.ReadLogKey(r.Key)
	if err != nil {
		return nil, err
	}
	l := &translog.Log{Place: r.Dir, Key: verifier, Memory: s.seenLogs()}
	if r.Witnesses != "" {
		l.Witnesses, err = signing.ReadWitnesses(r.Witnesses)
	}
	if info, err := os.Stat(r.Dir); err != nil || !info.IsDir() {
		return nil, diag.Errorf(diag.Usage, "--log: %s is not a directory with a log", r.Dir).
			WithHint("`builder publish log --new NAME --log DIR --log-key FILE` makes a log")
	}
	if err != nil {
		return nil, err
	}
	// A log that cannot be continued must not be found out after a publication.
	if _, err := l.All(context.Background()); err != nil {
		return nil, diag.Errorf(diag.Publish, "%w", err).
			WithHint("nothing was changed: give the key of this log with --log-key, or restore the log if it is an older copy")
	}
	return &logWriter{l, key, s.Note}, nil
}

// add appends the entries that the log lacks.
func (w *logWriter) add(ctx context.Context, leaves []translog.Leaf) error {
	if w == nil || len(leaves) == 0 {
		return nil
	}
	n, err := w.log.Append(ctx, w.key, leaves)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return diag.Errorf(diag.Publish, "%w", err)
	case n > 0:
		w.note("%s: new entries: %d", w.log, n)
	}
	return nil
}

// adder returns a function that appends entries, and lets the logs of a trust file be
// read again, or nil without a log.
func (w *logWriter) adder(ctx context.Context, trust signing.Trust) func([]translog.Leaf) error {
	if w == nil {
		return nil
	}
	return func(leaves []translog.Leaf) error {
		err := w.add(ctx, leaves)
		for _, l := range trust.Logs {
			l.Forget()
		}
		return err
	}
}

// addRefusals appends the verdicts that refuse the artifacts below paths. These are not
// published, so only the log can tell others.
func (w *logWriter) addRefusals(ctx context.Context, paths []string, trust signing.Trust) error {
	if w == nil {
		return nil
	}
	artifacts, _ := artifactsOf(paths) // the caller has reported the error
	var leaves []translog.Leaf
	for _, a := range artifacts {
		b, _ := attest.Read(a, trust)
		leaves = append(leaves, b.Refusals(a, trust)...)
	}
	return w.add(ctx, leaves)
}

// unlogged returns a trust that asks for no log: the statements to publish are not yet
// in it.
func unlogged(t signing.Trust) signing.Trust {
	t.Logs = nil
	return t
}

// NewLog makes an empty log with its key.
func NewLog(name string, r LogRequest) error {
	if r.Dir == "" || r.Key == "" {
		return diag.Errorf(diag.Usage, "--new: name the directory of the log, --log DIR, and the file of its key, --log-key FILE")
	}
	if _, err := os.Lstat(r.Dir + "/checkpoint"); err == nil {
		return diag.Errorf(diag.Usage, "--log: %s holds a log, and builder replaces none", r.Dir)
	}
	key, err := signing.NewLogKey(r.Key, PublicOf(r.Key), name)
	if err == nil {
		err = translog.Create(r.Dir, key)
	}
	if err != nil && diag.CodeOf(err) != diag.Usage {
		err = diag.Errorf(diag.Usage, "making a log: %w", err)
	}
	return err
}

// LogEntries returns the entries with every word of the logs of the trust file.
func LogEntries(ctx context.Context, s *Session, words []string) ([]translog.Leaf, error) {
	trust, err := s.Trusted()
	if err == nil && len(trust.Logs) == 0 {
		err = diag.Errorf(diag.Usage, "no trust file names a log").WithHint("write log in a trust file, and name the file with --trust")
	}
	if err != nil {
		return nil, err
	}
	all := []translog.Leaf{}
	var errs []error
	for _, l := range trust.Logs {
		leaves, err := l.All(ctx)
		if err != nil {
			err = diag.Errorf(diag.Gate, "%w", err).WithHint("%s", attest.UnreadLog)
		}
		errs = append(errs, err)
		for _, leaf := range leaves {
			text := fmt.Sprint(leaf, " ", leaf.Artifact, " ", leaf.Subject, " ", leaf.Kind)
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
				all = append(all, leaf)
			}
		}
	}
	return all, errors.Join(errs...)
}
