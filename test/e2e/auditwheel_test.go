package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"builder/test/kit/must"
)

// auditwheelVersion is the release whose table of symbols internal/files/linux holds.
const auditwheelVersion = "6.8.2"

// auditwheel returns the platform tag that auditwheel reads from the symbols of a wheel,
// such as manylinux_2_35_x86_64.
func auditwheel(t *testing.T, wheel string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "auditwheel")
	install := exec.Command("python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", program, "auditwheel=="+auditwheelVersion)
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("pip install auditwheel: %v\n%s", err, out)
	}
	show := exec.Command("python3", "-m", "auditwheel", "show", "--json", wheel)
	show.Env = append(os.Environ(), "PYTHONPATH="+program)
	var stderr bytes.Buffer
	show.Stderr = &stderr
	out, err := show.Output()
	var is struct {
		SymTag string `json:"sym_tag"`
	}
	if err == nil {
		err = json.Unmarshal(out, &is)
	}
	must.Hold(t, err == nil, "auditwheel show %s: %v\n%s%s", wheel, err, out, &stderr)
	return is.SymTag
}

func sum(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}
