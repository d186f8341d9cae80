package wheel_test

import (
	"fmt"
	"testing"

	"builder/internal/files/wheel"
	"builder/test/kit/check"
)

func TestDescribed(t *testing.T) {
	const head = "Metadata-Version: 2.1\nName: tool\nVersion: 1\n"
	for name, c := range map[string]struct{ in, want string }{
		"no content type":               {head + "\nText\n====\n", head + "Description-Content-Type: text/x-rst\n\nText\n====\n"},
		"description in the header":     {head + "Description: Text\n        |more\n", head + "Description: Text\n        |more\nDescription-Content-Type: text/x-rst\n\n"},
		"no description":                {head + "Summary: A tool\n", head + "Summary: A tool\nDescription-Content-Type: text/plain\n\nA tool\n"},
		"no description and no summary": {head[:len(head)-1], head + "Description-Content-Type: text/plain\n\ntool\n"},
		"a type without a description":  {head + "Description-Content-Type: text/markdown\n\n\n", head + "Description-Content-Type: text/plain\n\ntool\n"},
		"Windows line ends":             {"Metadata-Version: 2.1\r\nName: tool\r\n\r\nText\r\n", "Metadata-Version: 2.1\r\nName: tool\r\nDescription-Content-Type: text/x-rst\r\n\r\nText\r\n"},
		"complete":                      {head + "Description-Content-Type: text/markdown\n\n# Text\n", head + "Description-Content-Type: text/markdown\n\n# Text\n"},
		"metadata older than the field": {"Metadata-Version: 1.2\nName: tool\n\nText\n", "Metadata-Version: 1.2\nName: tool\n\nText\n"},
		"not metadata":                  {"no field\n\nText\n", "no field\n\nText\n"},
		"an empty file":                 {"", ""},
	} {
		got := wheel.Described([]byte(c.in))
		check.That(t, string(got) == c.want, "%s: %q, want %q", name, got, c.want)
		check.Same(t, fmt.Sprintf("%s: described twice", name), string(got), string(wheel.Described(got)))
	}
}
