package gate

import (
	"context"
	"fmt"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var importModule = Gate{
	Name:   "import",
	Asks:   "the promised modules (for Horovod, the framework's extension) import in a clean container",
	Remedy: "the extension does not fit the installed framework: an undefined symbol names the differing library; or the run-time packages lack a needed module; or the wheel lacks the module: correct expect.import",
	Wants:  func(e recipe.Expect) bool { return len(e.Import) > 0 },
	Needs:  Container,
	check:  checkImport,
}

func checkImport(ctx context.Context, s Subject) verdict.Verdict {
	var problems, seen []string
	for _, module := range s.Expect.Import {
		if len(s.Expect.Frameworks) > 0 {
			module += ".mpi_ops" // the package of a framework imports even without its extension
		}
		out, err := s.run(ctx, Command{Name: "import", Args: []string{"PYTHON", "-c", "import " + module}})
		if err != nil {
			return verdict.Unmeasured("%v", err)
		}
		if out.Exit != 0 {
			problems = append(problems, fmt.Sprintf("import %s: exit %d: %s", module, out.Exit, lastLine(out.Output)))
			continue
		}
		seen = append(seen, "import "+module)
	}
	return verdict.Judge(problems, seen)
}
