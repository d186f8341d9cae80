package gate

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/elftest"
	"builder/test/kit/wheeltest"
)

// bombs returns a wheel of libraries that unpack to 10 GB each.
func bombs(t *testing.T, libraries int) Subject {
	bomb := elftest.Compress(3, 1, elftest.Bundle(elftest.Code{ID: "hipv4-amdgcn-amd-amdhsa--gfx90a", Data: make([]byte, 64<<20)}))
	library := string(elftest.Library{Sections: []elftest.Section{{Name: ".hip_fatbin", Data: bytes.Repeat(bomb, 160)}}}.Bytes())
	w := wheeltest.Wheel{Name: "x-1.0-cp311-cp311-linux_x86_64.whl"}
	for i := range libraries {
		w.Files = append(w.Files, wheeltest.File{Name: "x/" + string(rune('a'+i)) + ".so", Text: library})
	}
	return Subject{Artifact: w.Write(t), Expect: recipe.Expect{Extensions: []string{"x/*.so"}, DeviceCode: []string{"gfx90a"}}}
}

func TestAGateEndsWithItsContext(t *testing.T) {
	s := bombs(t, 8)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	v := deviceCode.Check(ctx, s)
	took := time.Since(start)
	check.That(t, took <= 10*time.Second && v.Status == verdict.NotMeasured, "after %v: %+v", took, v)
}

// All libraries of a wheel, and all gates, share one budget.
func TestAnExpensiveWheelIsNotMeasured(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	s := bombs(t, 8) // a fast processor reads four within the budget
	s.Unpacked = NewUnpacked()
	defer s.Unpacked.Close()
	v := deviceCode.Check(t.Context(), s)
	judged(t, v, verdict.NotMeasured, "takes more than 3s of a processor")
	start := time.Now()
	s.Expect.Glibc = "2.17"
	if v := glibcFloor.Check(t.Context(), s); v.Status != verdict.NotMeasured || !strings.Contains(v.Evidence, "takes more than 3s of a processor") || time.Since(start) > 5*time.Second {
		t.Errorf("the next gate: %+v", v)
	}
}

func TestEvidenceIsCut(t *testing.T) {
	v := Gate{Name: "x"}.complete(verdict.Failed("%s", strings.Repeat("é", maxEvidence)), time.Now())
	if len(v.Evidence) > maxEvidence+100 || !strings.HasSuffix(v.Evidence, "… and 65536 bytes more") {
		t.Errorf("%d bytes: %s", len(v.Evidence), v.Evidence[len(v.Evidence)-100:])
	}
}
