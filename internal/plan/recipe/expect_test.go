package recipe_test

import (
	"encoding/json"
	"testing"

	"builder/internal/base/decode"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// Facts and settings of gates are one object, and the key of an entry depends on it:
// reading and writing changes no byte.
func TestExpectAsJSON(t *testing.T) {
	for _, text := range []string{
		`{}`,
		`{"packages":["tool"]}`,
		`{"elf-needed":{"needed":["a"]},"size":"1MB..2MB"}`,
		`{"version":"1","waivers":[{"gate":"size","because":"b","issue":"i","until":"2099-01-01"}],"a-later-gate":[1,{"b":true}],"rdma":"linked"}`,
	} {
		var e recipe.Expect
		must.Succeed(t, decode.OpenJSON([]byte(text), &e))
		got, err := json.Marshal(e)
		must.Succeed(t, err)
		check.Same(t, "JSON", text, string(got))
	}
	for _, text := range []string{`{"rdma":"linked","rdma":"absent"}`, `{"size":{"a":1,"a":2}}`, `[]`, `{"packages":"tool"}`} {
		var e recipe.Expect
		err := decode.OpenJSON([]byte(text), &e)
		check.That(t, err != nil, "%s was read as %+v", text, e)
	}
}
