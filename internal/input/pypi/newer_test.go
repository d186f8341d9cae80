package pypi

import (
	"strings"
	"testing"
	"time"

	"builder/internal/base/diag"
)

// answers is a program that answers the n-th question with the n-th release, and then
// as uv does if no version is left.
const answers = `
n=$(cat "$0.asked" 2>/dev/null | wc -l); echo >> "$0.asked"
case $n in
0) v=2.15.0 d=2026-10-28T16:00:00Z ;;
1) v=2.14.1 d=2026-09-30T16:00:00Z ;;
*) echo "  × No solution found when resolving dependencies:" >&2; exit 1 ;;
esac
cat > "$(dirname "$0")/lock" <<LOCK
[[packages]]
name = "torch"
version = "$v"
wheels = [{ name = "torch-$v-cp312-cp312-manylinux_2_28_x86_64.whl", url = "https://index.invalid/torch-$v-cp312-cp312-manylinux_2_28_x86_64.whl", upload-time = $d, size = 7, hashes = { sha256 = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" } }]
LOCK
`

func TestNewer(t *testing.T) {
	uv, asked := fakeUV(t, nil, answers)
	same := func(text string) string { return text }
	got, err := uv.Newer(t.Context(), t.TempDir(), "torch", "2.11.0", "3.12", time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC), same)
	if err != nil || len(got) != 2 || got[0].Version != "2.15.0" || got[1].Uploaded.Format(time.DateOnly) != "2026-09-30" {
		t.Errorf("%v, %v", got, err)
	}
	for _, want := range []string{"torch>2.11.0\n", "torch>2.11.0,<2.15.0\n", "--exclude-newer 2026-11-16T00:00:00Z"} {
		if !strings.Contains(asked(), want) {
			t.Errorf("uv is not asked %q:\n%s", want, asked())
		}
	}
}

// TestNewerFails: an index that cannot be asked is no index without releases.
func TestNewerFails(t *testing.T) {
	uv, _ := fakeUV(t, nil, "echo 'error: Could not connect' >&2; exit 2")
	if got, err := uv.Newer(t.Context(), t.TempDir(), "torch", "2.11.0", "3.12", time.Now(), nil); diag.CodeOf(err) != diag.Fetch || got != nil {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := uv.Newer(t.Context(), t.TempDir(), "--help", "1", "3.12", time.Now(), nil); diag.CodeOf(err) != diag.Usage {
		t.Errorf("%v", err)
	}
}
