package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// uploadServer installs a real pypiserver with pip and starts it. It returns the
// address for uploads and the address of the index.
func uploadServer(t *testing.T) (destination, simple string) {
	t.Helper()
	dir := t.TempDir()
	program, packages := filepath.Join(dir, "program"), filepath.Join(dir, "packages")
	if err := os.Mkdir(packages, 0o755); err != nil {
		t.Fatal(err)
	}
	install := exec.Command("python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", program, "pypiserver", "setuptools<81")
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("installing pypiserver: %v\n%s", err, out)
	}
	address := freeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	ctx, cancel := context.WithCancel(context.Background())
	var said bytes.Buffer
	server := exec.CommandContext(ctx, "python3", "-m", "pypiserver", "run", "--interface", "127.0.0.1", "--port", port, "--authenticate", ".", "--passwords", ".", packages)
	server.Env = append(os.Environ(), "PYTHONPATH="+program)
	server.Stdout, server.Stderr = &said, &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = server.Wait() })
	for range 100 {
		if resp, err := http.Get("http://" + address + "/simple/"); err == nil {
			resp.Body.Close()
			return "pypi:http://" + address + "/", "http://" + address + "/simple/"
		}
		time.Sleep(100 * time.Millisecond)
	}
	cancel()
	_ = server.Wait()
	t.Fatalf("pypiserver does not start: %s", &said)
	return "", ""
}

// freeAddress returns a free address of this host. A server binds it a moment later.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

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
	if err != nil {
		t.Fatalf("auditwheel show %s: %v\n%s%s", wheel, err, out, &stderr)
	}
	return is.SymTag
}

// pipDownload downloads a wheel by its hash with the host's pip and returns the sha256
// of the file.
func pipDownload(t *testing.T, simple, wheel string) string {
	t.Helper()
	data, err := os.ReadFile(wheel)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(wheel)
	parts := strings.Split(name, "-")
	dir := t.TempDir()
	requirements := filepath.Join(dir, "requirements.txt")
	if err := os.WriteFile(requirements, []byte(parts[0]+"=="+parts[1]+" --hash=sha256:"+sum(data)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pip := exec.Command("python3", "-m", "pip", "download", "--isolated", "--disable-pip-version-check", "--no-cache-dir", "--no-deps", "--require-hashes",
		"--only-binary", ":all:", "--index-url", simple, "--dest", dir, "--implementation", "cp", "--python-version", "3.11", "--abi", parts[3],
		"--platform", strings.TrimSuffix(parts[4], ".whl"), "-r", requirements)
	if out, err := pip.CombinedOutput(); err != nil {
		t.Fatalf("pip: %v\n%s", err, out)
	}
	came, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return sum(came)
}

func sum(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}
