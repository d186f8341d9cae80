// Package recipetest validates JSON with a schema alone, as an editor does, for tests.
package recipetest

import (
	"bytes"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"builder/test/kit/must"
)

// Validator returns a function that validates a JSON document against a schema.
func Validator(t testing.TB, schema []byte) func(doc []byte) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	must.Succeed(t, err)
	c := jsonschema.NewCompiler()
	must.Succeed(t, c.AddResource("schema.json", doc))
	compiled, err := c.Compile("schema.json")
	must.Succeed(t, err)
	return func(doc []byte) error {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
		if err != nil {
			return err
		}
		return compiled.Validate(value)
	}
}
