package builder_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
)

// TestBand prints how large the rooms of this repository are, and those of the
// checkouts that BUILDER_BAND names (separated by ":"). It demands nothing: the
// figures are for docs/architecture.md, and small says nothing of good. Functions
// of more than 80 lines are named, for somebody to look at.
func TestBand(t *testing.T) {
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "project\tcode\ttests/code\tpackage p50/p90 (max)\tfile p50/p90 (max)\tfunction p50/p99/max\tover 100\texported with comment")
	var long []string
	for _, root := range append([]string{"."}, filepath.SplitList(os.Getenv("BUILDER_BAND"))...) {
		b, err := measure(root)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(table, b)
		if root == "." {
			long = b.long
		}
	}
	table.Flush()
	t.Logf("in lines\n%s", &text)
	for _, name := range long {
		t.Logf("more than 80 lines: %s", name)
	}
}

// band is the measure of one repository, in lines with blanks and comments.
type band struct {
	name                       string
	code, tests                int
	packages, files, functions []int
	exported, documented       int
	long                       []string // functions of more than 80 lines
}

// String is a row of the table.
func (b band) String() string {
	over := 0
	for _, n := range b.functions {
		if n > 100 {
			over++
		}
	}
	return fmt.Sprintf("%s\t%d\t%.2f\t%d/%d (%d)\t%d/%d (%d)\t%d/%d/%d\t%.1f %%\t%d %%",
		b.name, b.code, float64(b.tests)/float64(b.code),
		quantile(b.packages, 50), quantile(b.packages, 90), slices.Max(b.packages),
		quantile(b.files, 50), quantile(b.files, 90), slices.Max(b.files),
		quantile(b.functions, 50), quantile(b.functions, 99), slices.Max(b.functions),
		100*float64(over)/float64(len(b.functions)), 100*b.documented/max(b.exported, 1))
}

// quantile returns the smallest value that is not smaller than p of a hundred.
func quantile(values []int, p int) int {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)*p+99)/100-1]
}

// measure reads the Go files below a directory, without those that a program wrote,
// that tests read, or that belong to others.
func measure(root string) (band, error) {
	full, err := filepath.Abs(root)
	b := band{name: filepath.Base(full)}
	if err != nil {
		return b, err
	}
	packages := map[string]int{}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"testdata", "vendor", "third_party"}, d.Name())) {
			return fs.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		lines := bytes.Count(text, []byte("\n"))
		if strings.HasSuffix(path, "_test.go") {
			b.tests += lines
			return nil
		}
		positions := token.NewFileSet()
		file, err := parser.ParseFile(positions, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if ast.IsGenerated(file) {
			return nil
		}
		b.code += lines
		b.files = append(b.files, lines)
		packages[filepath.Dir(path)] += lines
		b.add(positions, file)
		return nil
	})
	for _, lines := range packages {
		b.packages = append(b.packages, lines)
	}
	slices.Sort(b.long)
	return b, err
}

// add counts what one file declares.
func (b *band) add(positions *token.FileSet, file *ast.File) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			first, last := positions.Position(d.Pos()), positions.Position(d.End())
			lines := last.Line - first.Line + 1
			b.functions = append(b.functions, lines)
			if lines > 80 {
				b.long = append(b.long, fmt.Sprintf("%s:%d %s, %d", first.Filename, first.Line, d.Name.Name, lines))
			}
			if d.Name.IsExported() && ast.IsExported(receiver(d)) {
				b.count(d.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						b.count(d.Doc, s.Doc, s.Comment)
					}
				case *ast.ValueSpec:
					for _, name := range s.Names {
						if name.IsExported() {
							b.count(d.Doc, s.Doc, s.Comment)
						}
					}
				}
			}
		}
	}
}

// count counts an exported name and whether one of the comments speaks of it.
func (b *band) count(comments ...*ast.CommentGroup) {
	b.exported++
	if slices.ContainsFunc(comments, func(c *ast.CommentGroup) bool { return c != nil }) {
		b.documented++
	}
}

// receiver returns the name of the type that a method belongs to, and of a function
// its own.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	of := d.Recv.List[0].Type
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}
