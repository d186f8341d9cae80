package recipe

import (
	"encoding/json"
	"fmt"

	"github.com/invopop/jsonschema"
)

// Schema returns the JSON schema of v's type, for editors and for the test that
// keeps schema and strict decoding in step.
func Schema(v any) []byte {
	r := jsonschema.Reflector{DoNotReference: true, Anonymous: true}
	data, err := json.MarshalIndent(r.Reflect(v), "", "  ")
	if err != nil {
		panic(fmt.Sprintf("recipe: a schema is not JSON: %v", err)) // a property of the types, shown by the schema test
	}
	return append(data, '\n')
}
