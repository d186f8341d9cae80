package oci

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"builder/internal/base/diag"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// The test uses the registry of the distribution project from Debian. It has no
// referrers API.
func TestAgainstDistribution(t *testing.T) {
	binary, err := exec.LookPath("docker-registry")
	if err != nil {
		t.Skip("docker-registry is not installed (Debian's package of that name)")
	}
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	host := distribution(t, binary)
	open := func() *Repository {
		return must.Get(OpenRepository("oci://"+host+"/wheels/horovod", Options{retry: patient}))(t)
	}
	p := sample(t, "a")
	digest := push(t, open(), p)
	reads(t, open(), digest, p)
	check.Same(t, "once more", digest, push(t, open(), p))
	p.Referrers = append(p.Referrers, Referrer{ArtifactType: proofType, File: file(t, "gpu.json", []byte("{}\n"))})
	push(t, open(), p)
	found, err := open().Referrers(t.Context(), digest)
	check.That(t, err == nil && len(found) == 3, "%d referrers, %v", len(found), err)
	other := push(t, open(), sample(t, "b"))
	err = open().Tag(t.Context(), other, "v1", false)
	check.That(t, diag.CodeOf(err) == diag.Publish, "the tag moved: %v", err)
	must.Succeed(t, open().Tag(t.Context(), other, "v1", true))
	var all sync.WaitGroup
	for range 4 {
		r, p := open(), sample(t, "at once")
		all.Go(func() {
			_, err := r.Push(t.Context(), p)
			check.That(t, err == nil, "%v", err)
		})
	}
	all.Wait()
}

// distribution starts the registry on a free port and returns its address.
func distribution(t testing.TB, binary string) string {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	host := listener.Addr().String()
	listener.Close() // the registry takes the port a moment later
	dir := t.TempDir()
	config := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage:\n  filesystem: {rootdirectory: %s}\nhttp: {addr: %s}\n", filepath.Join(dir, "data"), host)
	path := filepath.Join(dir, "config.yml")
	must.Succeed(t, os.WriteFile(path, []byte(config), 0o600))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	server := exec.CommandContext(ctx, binary, "serve", path)
	must.Succeed(t, server.Start())
	t.Cleanup(func() { cancel(); _ = server.Wait() })
	for range 100 {
		if resp, err := http.Get("http://" + host + "/v2/"); err == nil {
			resp.Body.Close()
			return host
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the registry does not start")
	return ""
}
