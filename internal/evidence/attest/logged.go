package attest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"builder/internal/evidence/signing"
	"builder/internal/evidence/translog"
	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
)

// UnreadLog is the remedy for a log that cannot be read or contradicts what this host saw.
const UnreadLog = "ask who keeps the log, and use nothing that it is about before you know the reason"

// checkLogs requires that each log of the trust file holds every statement, and that no
// statement of the log about the artifact is missing here. There is no check without a
// log.
func (b Bundle) checkLogs(a artifact.Artifact, trust signing.Trust) []Check {
	if len(trust.Logs) == 0 {
		return nil
	}
	c := Check{Name: "log", Remedy: "get the artifact with all its statements from where it is published; its publisher logs them with `builder publish --log`, and publishes no verdict that refuses an artifact: ask there why one is missing"}
	for _, l := range trust.Logs {
		leaves, err := l.About(context.Background(), a.SHA256)
		if err != nil {
			c.Wrong = append(c.Wrong, err.Error())
			c.Remedy = UnreadLog
			continue
		}
		wrong, withdrawn := b.against(l, leaves)
		if c.Wrong = append(c.Wrong, wrong...); withdrawn != "" {
			c.Wrong = append(c.Wrong, withdrawn)
			c.Remedy = "do not use it; ask its publisher for another version"
		}
		c.Seen = fmt.Sprintf("%d statements and no other in %s", len(b.Documents), l)
	}
	return []Check{c}
}

// against compares the statements with the entries of a log about the same artifact. It
// also returns the mark of a withdrawal, if the newest mark is one.
func (b Bundle) against(l *translog.Log, leaves []translog.Leaf) (wrong []string, withdrawn string) {
	var unlogged []string
	for _, d := range b.Documents {
		if !slices.ContainsFunc(leaves, func(x translog.Leaf) bool { return x.Statement == d.SHA256 && x.Kind == d.PredicateType }) {
			unlogged = append(unlogged, shown(d.Name))
		}
	}
	if len(unlogged) > 0 {
		wrong = append(wrong, fmt.Sprintf("%s lacks %s", l, strings.Join(unlogged, ", ")))
	}
	var mark translog.Leaf // the newest
	for _, x := range leaves {
		if x.Kind == translog.Yank || x.Kind == translog.Unyank {
			mark = x
			continue
		}
		// The first publisher of the same bytes keeps its place, so that one statement of
		// each kind is enough. Verdicts all count: the newest may refuse.
		here := slices.ContainsFunc(slices.Concat(b.Documents, b.forbidden), func(d Document) bool {
			return d.PredicateType == x.Kind && (d.SHA256 == x.Statement || x.Kind != TestResultType)
		})
		if !here {
			wrong = append(wrong, fmt.Sprintf("%s has a statement about it that is missing here: %s", l, x))
		}
	}
	if mark.Kind == translog.Yank {
		withdrawn = fmt.Sprintf("%s says that it was withdrawn: %s; %s", l, mark.Because, mark)
	}
	return wrong, withdrawn
}

// Leaves returns the entries of a log for the statements about an artifact.
func (b Bundle) Leaves(a artifact.Artifact) (all []translog.Leaf) {
	for _, d := range b.Documents {
		all = append(all, d.leaf(a))
	}
	return all
}

// Refusals returns the entries for the rounds with a verdict that refuses the artifact.
func (b Bundle) Refusals(a artifact.Artifact, trust signing.Trust) (all []translog.Leaf) {
	refused := map[string]bool{}
	for _, v := range b.Judged(trust.Now) {
		refused[v.Gate] = v.Refuses()
	}
	for _, d := range b.Documents {
		if slices.ContainsFunc(d.Verdicts, func(v verdict.Verdict) bool { return v.Refuses() && refused[v.Gate] }) {
			all = append(all, d.leaf(a))
		}
	}
	return all
}

func (d Document) leaf(a artifact.Artifact) translog.Leaf {
	return translog.Leaf{Kind: d.PredicateType, Subject: a.SHA256, Statement: d.SHA256, Name: d.Name, Artifact: a.Name}
}
