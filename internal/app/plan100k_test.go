package app

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"builder/internal/app/catalogue"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
)

// builtIn returns the built-in catalogue and a recipe of it.
func builtIn(t testing.TB, name string) (catalogue.Catalogue, *recipe.Recipe) {
	t.Helper()
	cat, err := catalogue.Load("", catalogue.Taken{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := recipe.Find(cat.Recipes, name)
	if err != nil {
		t.Fatal(err)
	}
	return cat, r
}

// repeated returns a request for all cells of Horovod, each n times: an axis that no
// rule names is added to the recipe. The locked cells of the recipe have keys.
func repeated(t testing.TB, n int) (*Session, PlanRequest) {
	t.Helper()
	cat, r := builtIn(t, "horovod")
	wide := *r
	wide.ID += "-{{round}}"
	round := recipe.Axis{Name: "round"}
	for i := range n {
		round.Values = append(round.Values, fmt.Sprint("r", i))
	}
	wide.Axes = append(slices.Clone(r.Axes), round)
	return &Session{Home: t.TempDir(), Catalogue: cat}, PlanRequest{Selection: Selection{Recipe: &wide, Filter: matrix.Everything(&wide)}}
}

// planAll plans all cells, and counts them and those with a key.
func planAll(t testing.TB, s *Session, r PlanRequest, each func()) (cells, keys int) {
	t.Helper()
	_, err := s.eachPlanned(r, func(c PlannedCell) {
		cells++
		if c.Key != "" {
			keys++
		}
		each()
	})
	if err != nil {
		t.Fatal(err)
	}
	return cells, keys
}

// hashed returns the time to hash n entries of 84,000 bytes, the mean of the locked
// cells of Horovod (2026-11-23). No plan with these keys takes less.
func hashed(n int) time.Duration {
	entry := make([]byte, 84_000)
	start := time.Now()
	for range n {
		sha256.Sum256(entry)
	}
	return time.Since(start)
}

// BenchmarkPlan100k plans 100,000 cells with their keys. It reports the time as a
// multiple of hashing their entries, and the largest heap.
func BenchmarkPlan100k(b *testing.B) {
	s, r := repeated(b, 102)
	var peak uint64
	var keys int
	for b.Loop() {
		n := 0
		_, keys = planAll(b, s, r, func() {
			if n++; n%5000 == 0 {
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak = max(peak, m.HeapAlloc)
			}
		})
		if n < 100_000 {
			b.Fatalf("%d cells", n)
		}
	}
	took := b.Elapsed().Seconds() / float64(b.N)
	b.ReportMetric(float64(keys), "keys")
	b.ReportMetric(float64(peak)/1e6, "MB-heap")
	b.ReportMetric(took/hashed(keys).Seconds(), "x-hashing")
}

// TestPlanCostsLittleMoreThanItsKeys: the work for a further cell is a small multiple
// of hashing its entry. With conditions parsed and images encoded for every cell it was
// more than fifty times as much.
func TestPlanCostsLittleMoreThanItsKeys(t *testing.T) {
	const few, many, most = 1, 4, 12.0
	var ratios []float64
	for range 3 { // the machine may do something else meanwhile
		var took [2]time.Duration
		var keys [2]int
		for i, n := range []int{few, many} {
			s, r := repeated(t, n)
			start := time.Now()
			_, keys[i] = planAll(t, s, r, func() {})
			took[i] = time.Since(start)
		}
		ratio := float64(took[1]-took[0]) / float64(hashed(keys[1]-keys[0]))
		if ratios = append(ratios, ratio); ratio < most {
			t.Logf("%d cells more cost %.1f times the hashing of their entries", keys[1]-keys[0], ratio)
			return
		}
	}
	t.Errorf("a further cell costs %.0f times the hashing of its entry, %.0f are the most", ratios, most)
}

// TestPlanKeys: the key in a plan, made of shared parts, is the digest of the entry.
func TestPlanKeys(t *testing.T) {
	cat, err := catalogue.Load("", catalogue.Taken{})
	if err != nil {
		t.Fatal(err)
	}
	s := &Session{Home: t.TempDir(), Catalogue: cat}
	keys := 0
	for _, r := range cat.Recipes {
		of := Selection{Recipe: r, Filter: matrix.Everything(r)}
		p, err := s.plan(PlanRequest{Selection: of})
		if err != nil {
			t.Fatal(err)
		}
		asm := s.Assembler()
		f, err := asm.Locks.Read(r.Name)
		if err != nil {
			t.Fatal(err)
		}
		for i, planned := range p.Cells {
			if planned.Key == "" || i%7 != 0 && r.Name == "horovod" { // whole entries are slow
				continue
			}
			drafts, _, err := s.choose(Selection{Recipe: r, Filter: matrix.Filter(planned.Axes)})
			if err != nil {
				t.Fatal(err)
			}
			entries, err := lock.Assemble(drafts, f, asm.Revision)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := asm.Inputs(t.Context(), drafts[0], &entries[0]); err != nil {
				t.Fatal(err)
			}
			if keys++; entries[0].Key() != planned.Key {
				t.Errorf("%s: the plan says %s, the entry is %s", planned.ID, planned.Key, entries[0].Key())
			}
		}
	}
	if keys < 300 {
		t.Errorf("%d keys", keys)
	}
}
