package stacks_test

import (
	"bytes"
	"io/fs"
	"os"
	"strings"
	"testing"

	"builder/internal/golden"
	"builder/internal/lock"
	"builder/internal/recipe"
	"builder/internal/stack"
	"builder/recipes"
	"builder/stacks"
)

func TestSchema(t *testing.T) {
	golden.CheckFile(t, "schema.json", recipe.Schema(&stack.Stack{}))
}

// Embedding leaves files out without a word.
func TestEveryFileIsEmbeddedAndOfAKindThatIsRead(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := e.Name()
		if strings.HasSuffix(name, ".go") {
			continue
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := fs.ReadFile(stacks.FS, name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: what is embedded is not what is there: %v", name, err)
		}
		isLock := strings.HasSuffix(name, ".lock.json")
		switch {
		case name == "schema.json":
		case !isLock && !strings.HasSuffix(name, ".yaml"):
			t.Errorf("%s is neither stack nor lock nor schema", name)
		case !isLock && !bytes.HasPrefix(want, []byte("# yaml-language-server: $schema=schema.json\n")):
			t.Errorf("%s does not tell editors of its schema", name)
		}
	}
}

// Every stack is of cells that there are and that agree, and has a lock.
func TestEveryStackIsARecipe(t *testing.T) {
	all, err := stack.Load(stacks.FS, "stacks")
	if err != nil {
		t.Fatal(err)
	}
	parts, err := recipe.Load(recipes.FS, "recipes")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if _, err := s.Recipe(parts); err != nil {
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
