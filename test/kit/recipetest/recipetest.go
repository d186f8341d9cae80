// Package recipetest makes the schemas of formats, and validates JSON with a schema alone,
// as an editor does, for tests.
package recipetest

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"

	invopop "github.com/invopop/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"builder/internal/plan/recipe"
	"builder/test/kit/must"
)

// Schema returns the JSON schema of v's type.
func Schema(v any) []byte { return encoded(reflector().Reflect(v)) }

// RecipeSchema returns the JSON schema of recipes that may name the given gates.
func RecipeSchema(gates recipe.Promises) []byte {
	r := reflector()
	r.Mapper = func(t reflect.Type) *invopop.Schema {
		if t != reflect.TypeFor[recipe.Expect]() {
			return nil
		}
		expect := reflector().ReflectFromType(t)
		expect.Version = ""
		for _, name := range slices.Sorted(maps.Keys(gates)) {
			if gates[name].Of != nil {
				expect.Properties.Set(name, schemaOf(gates[name]))
			}
		}
		return expect
	}
	return encoded(r.Reflect(&recipe.Recipe{}))
}

// schemaOf returns the schema of a gate's settings.
func schemaOf(p recipe.Promise) *invopop.Schema {
	s := reflector().ReflectFromType(reflect.TypeOf(p.Of))
	s.Version, s.Description = "", p.Says
	for _, value := range p.OneOf {
		s.Enum = append(s.Enum, value)
	}
	return s
}

func reflector() *invopop.Reflector {
	return &invopop.Reflector{DoNotReference: true, Anonymous: true}
}

func encoded(schema *invopop.Schema) []byte {
	data, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		panic(err) // depends only on the type
	}
	return append(data, '\n')
}

// Validator returns a function that validates a JSON document against a schema.
func Validator(t testing.TB, schema []byte) func(doc []byte) error {
	t.Helper()
	doc := must.Get(jsonschema.UnmarshalJSON(bytes.NewReader(schema)))(t)
	c := jsonschema.NewCompiler()
	must.Succeed(t, c.AddResource("schema.json", doc))
	compiled := must.Get(c.Compile("schema.json"))(t)
	return func(doc []byte) error {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
		if err != nil {
			return err
		}
		return compiled.Validate(value)
	}
}
