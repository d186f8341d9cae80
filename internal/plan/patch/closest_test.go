package patch

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"builder/test/kit/check"
)

// A search without a match names the line that is most like it.
func TestClosestLine(t *testing.T) {
	long := "define_macros = [('XXHASH_VERSION', '0.8.2'), ('USE_SYSTEM_LIBRARY', False), "
	text := "#include <stdio.h>\n\nint main(int argc, char **argv) {\n  return run(argc, argv);\n}\n" + long + "('DEBUG', True)]\n"
	for search, want := range map[string]string{
		"int main(int argc, char *argv[])":            `; the closest line is 3: "int main(int argc, char **argv) {"`,
		"#include <stdlib.h>\n":                       `; the closest line is 1: "#include <stdio.h>"`,
		"#include <stdio.h>\n\nint main(void) {\n":    `; the file lacks the line "int main(void) {", the closest is line 3: "int main(int argc, char **argv) {"`,
		"}\n  return run(argc, argv);\n":              `; the file has its lines with other space or in another order, the first at line 5: "}"`,
		"\treturn run(argc, argv);":                   `; the file has its lines with other space or in another order, the first at line 4: "  return run(argc, argv);"`,
		"MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);": "",
		long + "('DEBUG', False)]":                    `; the file lacks the line "…M_LIBRARY', False), ('DEBUG', False)]", the closest is line 6: "…M_LIBRARY', False), ('DEBUG', True)]"`,
		"":                                            "",
		strings.Repeat("x", 1<<16):                    "",
	} {
		check.Same(t, fmt.Sprintf("%.40q", search), want, closest([]byte(text), search))
	}
	check.Same(t, "in no file", "", closest(nil, "int a;"))
	got := closest(bytes.Repeat([]byte("int aa; "), 1<<20), "int b;")
	check.That(t, strings.HasPrefix(got, "; the closest line is 1: ") && len(got) <= 200, "%v", got)
}
