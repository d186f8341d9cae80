package stacks_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"builder/internal/gates/gate"
	"builder/internal/plan/lock"
	"builder/internal/plan/profile"
	"builder/internal/plan/recipe"
	"builder/internal/plan/stack"
	"builder/profiles"
	"builder/recipes"
	"builder/stacks"
	"builder/test/kit/golden"
	"builder/test/kit/must"
	"builder/test/kit/recipetest"
)

func TestSchema(t *testing.T) {
	golden.CheckFile(t, "schema.json", recipetest.Schema(&stack.Stack{}))
}

func TestEveryFileIsEmbeddedAndOfAKindThatIsRead(t *testing.T) {
	for name, text := range golden.CheckEmbedded(t, stacks.FS) {
		isLock := strings.HasSuffix(name, ".lock.json")
		switch {
		case name == "schema.json":
		case !isLock && !strings.HasSuffix(name, ".yaml"):
			t.Errorf("%s is neither stack nor lock nor schema", name)
		case !isLock && !bytes.HasPrefix(text, []byte("# yaml-language-server: $schema=schema.json\n")):
			t.Errorf("%s does not tell editors of its schema", name)
		}
	}
}

// environment finds profiles by name.
func environment(t *testing.T) func(string, map[string]string) (string, error) {
	all, err := profile.Load(profiles.FS, "profiles")
	must.Succeed(t, err)
	return func(name string, axes map[string]string) (string, error) {
		i := slices.IndexFunc(all, func(p *profile.Profile) bool { return p.Name == name })
		if i < 0 {
			return "", fmt.Errorf("unknown profile %q", name)
		}
		_, err = all[i].Resolve(axes, nil)
		return "", err
	}
}

// Every stack consists of existing, compatible cells and has a lock.
func TestEveryStackIsARecipe(t *testing.T) {
	all, err := stack.Load(stacks.FS, "stacks")
	must.Succeed(t, err)
	parts, err := recipe.Load(recipes.FS, "recipes", gate.Promises())
	must.Succeed(t, err)
	for _, s := range all {
		if _, err := s.Recipe(stack.Catalogue{Recipes: parts, Profile: environment(t)}); err != nil {
			t.Error(err)
		}
		data, err := fs.ReadFile(stacks.FS, s.Name+".lock.json")
		if err != nil {
			t.Error(err)
			continue
		}
		f, err := lock.Decode("stacks/"+s.Name+".lock.json", data)
		if err != nil || f.Recipe != s.FullName() || !bytes.Equal(f.Encode(), data) {
			t.Errorf("the lock of %q is not as the tool writes it: %v", f.Recipe, err)
		}
	}
}
