package gate

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"builder/internal/files/wheel"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
	"builder/test/kit/wheeltest"
)

// licensed is the gate explained in docs/writing-a-gate.md.
var licensed = Gate{
	Name:   "licensed",
	Asks:   "the wheel holds the text of its licence",
	Remedy: "let the build script copy the licence into .dist-info/licenses",
	Wants:  func(e recipe.Expect) bool { return len(e.Packages) > 0 },
	check:  checkLicensed,
}

func checkLicensed(_ context.Context, s Subject) verdict.Verdict {
	w, err := wheel.Open(s.Artifact)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	defer w.Close()
	for _, f := range w.Files {
		if path.Dir(f.Name) == w.DistInfo+"/licenses" && f.Size > 0 {
			return verdict.Passed("%s has %d bytes", f.Name, f.Size)
		}
	}
	return verdict.Failed("no file of %s is below licenses", w.DistInfo)
}

func ExampleGate() {
	dir, err := os.MkdirTemp("", "example-*")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ask := func(name string, files ...wheeltest.File) {
		file := filepath.Join(dir, name)
		if len(files) > 0 {
			err = os.WriteFile(file, wheeltest.Wheel{Name: name, Files: files}.Bytes(), 0o644)
		}
		if err != nil {
			panic(err)
		}
		v := licensed.Check(context.Background(), Subject{Artifact: file, Expect: recipe.Expect{Packages: []string{"dotprod"}}})
		fmt.Printf("%s: %t\n", v.Status, v.Remedy != "")
	}
	text := wheeltest.File{Name: "dotprod-1.1.dist-info/licenses/LICENSE", Text: "do what you like\n"}
	code := wheeltest.File{Name: "dotprod/__init__.py", Text: "\n"}
	ask("dotprod-1.1-py3-none-any.whl", code, text)
	ask("dotprod-1.0-py3-none-any.whl", code)
	ask("dotprod-0.9-py3-none-any.whl") // does not exist
	// Output:
	// pass: false
	// fail: true
	// not-measured: true
}
