package gate

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var platform = Gate{
	Name:   "platform",
	Asks:   "the framework that runs beside the wheel is made for the promised platform, loads no library of another, and is the one that the wheel was built against",
	Remedy: "the framework is of the other vendor: name the package that is made for the platform (tensorflow-rocm for ROCm) in the build and run requirements of the recipe",
	Wants: func(e recipe.Expect) bool {
		return promisedPlatform(e) != "" && len(e.Import) > 0 && len(e.Frameworks) > 0
	},
	Needs: Container,
	check: checkPlatform,
}

//go:embed scripts/framework_platform.py
var platformScript string

// promisedPlatform returns the platform with a promise of NAME_built() = true.
func promisedPlatform(e recipe.Expect) string {
	for _, name := range []string{"rocm", "cuda"} {
		if e.Built[name] == "true" {
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
	out, err := s.run(ctx, Command{
		Name: "platform", Args: []string{"PYTHON", "framework_platform.py", s.Expect.Import[0]},
		Files: map[string]string{"framework_platform.py": platformScript},
	})
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	var f framework
	if err := json.Unmarshal([]byte(jsonLine(out.Output)), &f); err != nil || out.Exit != 0 || f.Version == "" {
		return verdict.Unmeasured("exit %d: %s", out.Exit, lastLine(out.Output))
	}
	return f.judge(promisedPlatform(s.Expect))
}

func (f framework) judge(promised string) verdict.Verdict {
	says := "no platform"
	if len(f.Platforms) > 0 {
		says = strings.Join(f.Platforms, " and ")
	}
	var problems, seen []string
	if !slices.Equal(f.Platforms, []string{promised}) {
		problems = append(problems, fmt.Sprintf("the framework %s says that it is made for %s, promised is %s", f.Version, says, promised))
	}
	for _, other := range []string{"rocm", "cuda"} {
		if files := f.Loaded[other]; other != promised && len(files) > 0 {
			problems = append(problems, fmt.Sprintf("its process loads %s of %s", listed(files, 4), other))
		}
	}
	if f.Built != f.Version {
		problems = append(problems, fmt.Sprintf("the wheel was built against %q, beside it runs %q", f.Built, f.Version))
	}
	seen = append(seen, fmt.Sprintf("the framework %s is made for %s, and the wheel was built against it", f.Version, says))
	if files := f.Loaded[promised]; len(files) > 0 {
		seen = append(seen, "it loads "+listed(files, 4))
	}
	return verdict.Judge(problems, seen)
}
