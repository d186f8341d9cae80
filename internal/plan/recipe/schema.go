package recipe

import (
	"encoding/json"
	"fmt"

	"github.com/invopop/jsonschema"
)

// Schema returns the JSON schema of v's type. Editors use it. A test checks that it
// agrees with strict decoding.
func Schema(v any) []byte {
	r := jsonschema.Reflector{DoNotReference: true, Anonymous: true}
	data, err := json.MarshalIndent(r.Reflect(v), "", "  ")
	if err != nil {
		panic(fmt.Sprintf("recipe: a schema is not JSON: %v", err)) // depends only on the type; covered by the schema test
	}
	return append(data, '\n')
}
