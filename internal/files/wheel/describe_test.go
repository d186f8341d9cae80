package wheel_test

import (
	"testing"

	"builder/internal/files/wheel"
)

func TestDescribed(t *testing.T) {
	const head = "Metadata-Version: 2.1\nName: tool\nVersion: 1\n"
	for name, c := range map[string]struct{ in, want string }{
		"its type is missing":   {head + "\nText\n====\n", head + "Description-Content-Type: text/x-rst\n\nText\n====\n"},
		"it stands in the head": {head + "Description: Text\n        |more\n", head + "Description: Text\n        |more\nDescription-Content-Type: text/x-rst\n\n"},
		"there is none":         {head + "Summary: A tool\n", head + "Summary: A tool\nDescription-Content-Type: text/plain\n\nA tool\n"},
		"nor a summary":         {head[:len(head)-1], head + "Description-Content-Type: text/plain\n\ntool\n"},
		"a type of nothing":     {head + "Description-Content-Type: text/markdown\n\n\n", head + "Description-Content-Type: text/plain\n\ntool\n"},
		"lines of Windows":      {"Metadata-Version: 2.1\r\nName: tool\r\n\r\nText\r\n", "Metadata-Version: 2.1\r\nName: tool\r\nDescription-Content-Type: text/x-rst\r\n\r\nText\r\n"},
		"all is there":          {head + "Description-Content-Type: text/markdown\n\n# Text\n", head + "Description-Content-Type: text/markdown\n\n# Text\n"},
		"older than the field":  {"Metadata-Version: 1.2\nName: tool\n\nText\n", "Metadata-Version: 1.2\nName: tool\n\nText\n"},
		"what is no metadata":   {"no field\n\nText\n", "no field\n\nText\n"},
		"an empty file":         {"", ""},
	} {
		got := wheel.Described([]byte(c.in))
		if string(got) != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if again := wheel.Described(got); string(again) != string(got) {
			t.Errorf("%s: described twice it is %q", name, again)
		}
	}
}
