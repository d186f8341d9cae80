package decode

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Fault is an error in a line of a JSON document. Its text has no line.
type Fault struct {
	Line int // from 1
	Err  error
}

func (f *Fault) Error() string { return f.Err.Error() }

// Unwrap returns the underlying error.
func (f *Fault) Unwrap() error { return f.Err }

// JSON decodes exactly one JSON value into the struct to which into points. It refuses
// unknown and repeated fields, and compares names with their case: another reader of the
// document could use another field. The error is a [Fault].
func JSON(data []byte, into any) error {
	return decodeJSON(data, into, json.RejectUnknownMembers(true))
}

// OpenJSON is like [JSON] for a format whose readers must ignore unknown fields.
func OpenJSON(data []byte, into any) error { return decodeJSON(data, into) }

func decodeJSON(data []byte, into any, o ...json.Options) error {
	err := json.Unmarshal(data, into, o...)
	if err == nil {
		return nil
	}
	var at int64
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		at = syntax.ByteOffset
	} else if meaning, ok := errors.AsType[*json.SemanticError](err); ok {
		at = meaning.ByteOffset
	}
	return &Fault{1 + bytes.Count(data[:min(int(at), len(data))], []byte("\n")), plainJSON(err)}
}

// plainJSON describes an error without Go types and without a value, because the wrong
// file may contain a secret.
func plainJSON(err error) error {
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return fmt.Errorf("%q occurs twice", syntax.JSONPointer.LastToken())
		}
		return syntax.Err
	}
	meaning, ok := errors.AsType[*json.SemanticError](err)
	switch {
	case !ok:
		return err
	case errors.Is(err, json.ErrUnknownName):
		return fmt.Errorf("unknown field %q", meaning.JSONPointer.LastToken())
	}
	return fmt.Errorf("%s has the wrong type", cmp.Or(strings.TrimPrefix(string(meaning.JSONPointer), "/"), "the file"))
}
