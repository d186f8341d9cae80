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
	text := "#include <stdio.h>\n\nint main(int argc, char **argv) {\n  return run(argc, argv);\n}\n"
	for search, want := range map[string]string{
		"int main(int argc, char *argv[])":         `; the file lacks the line "int main(int argc, char *argv[])", the closest is line 3: "int main(int argc, char **argv) {"`,
		"#include <stdlib.h>\n":                    `; the file lacks the line "#include <stdlib.h>", the closest is line 1: "#include <stdio.h>"`,
		"#include <stdio.h>\n\nint main(void) {\n": `; the file lacks the line "int main(void) {"`,
		"}\n  return run(argc, argv);\n":           "; the file has its lines with other space or in another order",
		"\treturn run(argc, argv);":                "; the file has its lines with other space or in another order",
		"MPI_Comm_rank(MPI_COMM_WORLD);":           `; the file lacks the line "MPI_Comm_rank(MPI_COMM_WORLD);"`,
		"":                                         "",
	} {
		check.Same(t, fmt.Sprintf("%.40q", search), want, closest([]byte(text), search))
	}
	got := closest(bytes.Repeat([]byte("int aa; "), 1<<20), strings.Repeat("x", 1<<16))
	check.That(t, len(got) <= 200, "%v", got)
}
