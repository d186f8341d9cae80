package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var platform = Gate{
	Name:   "platform",
	Asks:   "the installed framework is for the promised platform, loads no library of another platform, and is the framework of the wheel's build",
	Remedy: "the framework is of the other vendor: name the platform's package (tensorflow-rocm for ROCm) in the build and run requirements of the recipe",
	Wants:  wantsPlatform,
	Needs:  Container,
	check:  checkPlatform,
}

// promisedPlatform returns the platform with a promise of NAME_built() = true.
func promisedPlatform(e recipe.Expect) string {
	values := built(e)
	for _, name := range []string{"rocm", "cuda"} {
		if values[name] == "true" {
			return name
		}
	}
	return ""
}

// framework is the answer of the script.
type framework struct {
	Platforms []string            `json:"platforms"` // as the framework reports them
	Loaded    map[string][]string `json:"loaded"`    // files loaded by its process, by platform
	Version   string              `json:"version"`
	Built     string              `json:"built"` // version of the framework in the wheel's build
}

func checkPlatform(ctx context.Context, s Subject) verdict.Verdict {
	said, err := s.in(s.Box).answers(ctx, "platform")
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	var f framework
	is := said[0]
	if err := json.Unmarshal([]byte(jsonLine(is.all.Log)), &f); err != nil || is.Exit == nil || *is.Exit != 0 || f.Version == "" {
		return verdict.Unmeasured("%s", is.how())
	}
	return f.judge(promisedPlatform(s.Expect))
}

func wantsPlatform(e recipe.Expect) bool {
	return promisedPlatform(e) != "" && len(e.Import) > 0 && len(e.Frameworks) > 0
}

// AskFramework asks the framework in a build's container for its platform, so that the
// wrong framework fails before anything is compiled. python runs the interpreter of that
// container and returns its output. An artifact without a promised platform is not asked.
func AskFramework(e recipe.Expect, python func(args ...string) (string, error)) error {
	if !platform.Wants(e) || slices.ContainsFunc(e.Waivers, func(w recipe.Waiver) bool { return w.Gate == platform.Name }) {
		return nil
	}
	_, name, _ := strings.Cut(e.Import[0], ".")
	output, err := python("-I", "-c", script("framework_platform.py"), name)
	if err != nil {
		return fmt.Errorf("asking %s for its platform: %w", name, err)
	}
	var f framework
	if err := json.Unmarshal([]byte(jsonLine(output)), &f); err != nil || f.Version == "" {
		return diag.Errorf(diag.Build, "%s reports no platform: %s", name, lastLine(output))
	}
	if problems := f.problems(promisedPlatform(e)); len(problems) > 0 {
		return diag.Errorf(diag.Build, "nothing was compiled, because the build has a %s for another platform: %s", name, strings.Join(problems, "; ")).
			WithHint("%s", platform.Remedy)
	}
	return nil
}

// says lists the platforms for evidence.
func (f framework) says() string {
	if len(f.Platforms) == 0 {
		return "none"
	}
	return strings.Join(f.Platforms, " and ")
}

// problems compares the framework with the promised platform.
func (f framework) problems(promised string) (problems []string) {
	if !slices.Equal(f.Platforms, []string{promised}) {
		problems = append(problems, fmt.Sprintf("the framework %s reports platform %s, expected %s", f.Version, f.says(), promised))
	}
	for _, other := range []string{"rocm", "cuda"} {
		if files := f.Loaded[other]; other != promised && len(files) > 0 {
			problems = append(problems, fmt.Sprintf("its process loads %s for %s", listed(files, 4), other))
		}
	}
	return problems
}

func (f framework) judge(promised string) verdict.Verdict {
	problems := f.problems(promised)
	if f.Built != f.Version {
		problems = append(problems, fmt.Sprintf("the wheel was built against %q, and %q is installed", f.Built, f.Version))
	}
	seen := []string{fmt.Sprintf("the framework %s is for %s, and the wheel's metadata.json names it", f.Version, f.says())}
	if files := f.Loaded[promised]; len(files) > 0 {
		seen = append(seen, "it loads "+listed(files, 4))
	}
	return verdict.Judge(problems, seen)
}
