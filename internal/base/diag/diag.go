// Package diag defines the error type printed to users: its position, its message, a
// hint, and an exit code.
//
// Inside builder, errors are plain chains of gerunds ("reading lock: …"). An [Error] is
// created where the position or the remedy is known, and found again with [errors.As].
package diag

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/xrash/smetrics"
)

// Code is the exit code of the process, one per class of failure.
type Code int

// The exit codes of docs/exit-codes.md.
const (
	OK          Code = 0
	Unexpected  Code = 1   // an error without a class: a bug, or a problem of the host
	Usage       Code = 2   // flags, recipes, patches or images as written
	Drift       Code = 3   // a lock or the facts of an image differ
	Patch       Code = 4   // a patch did not have its promised effect
	Build       Code = 5   // a build step failed
	Gate        Code = 6   // a gate did not pass
	Publish     Code = 7   // a destination refused an upload
	Fetch       Code = 8   // a server is unreachable, or a digest does not match
	NoEngine    Code = 9   // no engine is available
	Interrupted Code = 130 // SIGINT or SIGTERM
)

var codeNames = map[Code]string{
	OK: "ok", Unexpected: "unexpected", Usage: "usage", Drift: "drift", Patch: "patch",
	Build: "build", Gate: "gate", Publish: "publish", Fetch: "fetch", NoEngine: "no-engine",
	Interrupted: "interrupted",
}

// String returns the code's name in run.json.
func (c Code) String() string {
	if name, ok := codeNames[c]; ok {
		return name
	}
	return fmt.Sprintf("code-%d", int(c))
}

// Pos is a position in a file. Line and Column count from 1; 0 means unknown.
type Pos struct {
	File   string
	Line   int
	Column int
}

// String formats the position as file:line:column, without unknown parts.
func (p Pos) String() string {
	switch {
	case p.File == "":
		return ""
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Error is an error with the information that a user needs to act on it. Log is the
// relevant tail of a log, and LogPath is the whole log. Both may be empty.
type Error struct {
	Pos     Pos
	Err     error
	Hint    string
	Code    Code
	Log     []string
	LogPath string
}

// Error returns position and message, without the hint.
func (e *Error) Error() string {
	if pos := e.Pos.String(); pos != "" {
		return pos + ": " + e.Err.Error()
	}
	return e.Err.Error()
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an error of a class. format is as for [fmt.Errorf].
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...)}
}

// At returns an error of class [Usage] with a position in a file.
func At(pos Pos, format string, args ...any) *Error {
	return &Error{Pos: pos, Code: Usage, Err: fmt.Errorf(format, args...)}
}

// WithHint returns a copy of e with a hint for the user.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// CodeOf returns the exit code for err: the highest code of all [Error]s in it,
// [Interrupted] for a cancelled context without an [Error], or else [Unexpected].
func CodeOf(err error) Code {
	if err == nil {
		return OK
	}
	if worst := Worst(err); worst != OK {
		return worst
	}
	if errors.Is(err, context.Canceled) {
		return Interrupted
	}
	return Unexpected
}

// Worst returns the highest code of all [Error]s in err, or [OK] if there are none.
func Worst(err error) Code {
	worst := OK
	walk(err, func(e *Error) { worst = max(worst, e.Code) })
	return worst
}

// All returns every [Error] joined in err, in order. A chain without one becomes a
// single error of class [Unexpected] or [Interrupted]. If an [Error] wraps another, All
// returns the outermost, with the first hint in the chain.
func All(err error) []*Error {
	var all []*Error
	for _, part := range Split(err) {
		var e *Error
		if !errors.As(part, &e) {
			all = append(all, &Error{Err: part, Code: CodeOf(part)})
			continue
		}
		// Keep the text around the error. It includes the position.
		c := *e
		c.Hint = hintIn(e)
		if part.Error() != e.Error() {
			c.Err, c.Pos = part, Pos{}
		}
		all = append(all, &c)
	}
	return all
}

// hintIn returns the outermost hint of a chain.
func hintIn(err error) string {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return ""
	}
	return cmp.Or(e.Hint, hintIn(e.Err))
}

// HintAll replaces the hints of several errors with one hint on the last error.
func HintAll(err error, hint string) error {
	all := All(err)
	for i, err := range all {
		err.Hint = ""
		if i == len(all)-1 {
			err.Hint = hint
		}
	}
	return Joined(all)
}

// Joined joins errors.
func Joined(all []*Error) error {
	errs := make([]error, len(all))
	for i, err := range all {
		errs[i] = err
	}
	return errors.Join(errs...)
}

// First returns the first of several errors, with the number of the others.
func First(err error) error {
	if all := Split(err); len(all) > 1 {
		return fmt.Errorf("%w (and %d more)", all[0], len(all)-1)
	}
	return err
}

// Split returns the parts of an error made by [errors.Join], or err itself.
func Split(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var parts []error
	for _, e := range joined.Unwrap() {
		parts = append(parts, Split(e)...)
	}
	return parts
}

func walk(err error, visit func(*Error)) {
	for err != nil {
		if e, ok := err.(*Error); ok { //nolint:errorlint // the walk goes link by link
			visit(e)
		}
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, part := range joined.Unwrap() {
				walk(part, visit)
			}
			return
		}
		err = errors.Unwrap(err)
	}
}

// Nearest returns the known word closest to word, or "" if none is close enough to be
// meant. The dashes of a flag make no two words alike.
func Nearest(word string, known []string) string {
	letters := func(word string) string { return strings.ToLower(strings.TrimLeft(word, "-")) }
	of := letters(word)
	best, bound := "", min(len(of)/3+2, len(of)) // one letter is near to every other
	for _, k := range known {
		if d := smetrics.WagnerFischer(of, letters(k), 1, 1, 1); d < bound {
			best, bound = k, d
		}
	}
	return best
}

// maxKnown bounds the known words beside a suggestion.
const maxKnown = 40

// DidYouMean returns a hint with the nearest known word and all known words.
func DidYouMean(word string, known []string) string {
	if len(known) == 0 {
		return "known: none"
	}
	list := strings.Join(known, ", ")
	if near := Nearest(word, known); near != "" && len(known) > maxKnown {
		return fmt.Sprintf("did you mean %q?", near)
	} else if near != "" {
		return fmt.Sprintf("did you mean %q? known: %s", near, list)
	}
	return "known: " + list
}
