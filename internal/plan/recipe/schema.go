package recipe

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/invopop/jsonschema"
)

// Schema returns the JSON schema of v's type. Editors use it. A test checks that it
// agrees with strict decoding.
func Schema(v any) []byte { return encoded(reflector().Reflect(v)) }

// SchemaWith returns the JSON schema of recipes that may name the given gates.
func SchemaWith(gates Promises) []byte {
	r := reflector()
	r.Mapper = func(t reflect.Type) *jsonschema.Schema {
		if t != reflect.TypeFor[Expect]() {
			return nil
		}
		expect := reflector().ReflectFromType(t)
		expect.Version = ""
		for _, name := range slices.Sorted(maps.Keys(gates)) {
			if gates[name].Of != nil {
				expect.Properties.Set(name, gates[name].schema())
			}
		}
		return expect
	}
	return encoded(r.Reflect(&Recipe{}))
}

// schema returns the schema of a gate's settings.
func (p Promise) schema() *jsonschema.Schema {
	s := reflector().ReflectFromType(reflect.TypeOf(p.Of))
	s.Version, s.Description = "", p.Says
	for _, value := range p.OneOf {
		s.Enum = append(s.Enum, value)
	}
	return s
}

func reflector() *jsonschema.Reflector {
	return &jsonschema.Reflector{DoNotReference: true, Anonymous: true}
}

func encoded(schema *jsonschema.Schema) []byte {
	data, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("recipe: a schema is not JSON: %v", err)) // depends only on the type; covered by the schema test
	}
	return append(data, '\n')
}
