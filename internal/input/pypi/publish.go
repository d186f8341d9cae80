package pypi

import (
	"bytes"
	"context"
	"encoding/base64"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"builder/internal/base/diag"
	"builder/internal/input/store"
)

// Publish uploads a wheel to the address of an upload server. The directory of the wheel
// must hold no other file. uv finds the credentials: in its variables, netrc, a keyring,
// or by trusted publishing. It asks no index before. It reads no configuration file:
// it would look for one above the wheel too, where everybody can write temporary files.
func (t Tool) Publish(ctx context.Context, address, wheel string) error {
	env := t.ownEnviron()
	for _, name := range []string{"UV_PUBLISH_URL", "UV_PUBLISH_INDEX", "UV_PUBLISH_CHECK_URL", "UV_CONFIG_FILE"} {
		delete(env, name) // they name another place
	}
	for _, name := range []string{"UV_PUBLISH_TOKEN", "UV_PUBLISH_USERNAME", "UV_PUBLISH_PASSWORD"} {
		if env[name] == "" {
			delete(env, name) // uv would send an empty token
		}
	}
	// The name of the wheel alone: uv takes it as a pattern, and a directory may have any name.
	cmd := exec.CommandContext(ctx, t.Path, "publish", "--no-config", "--publish-url", address, "--quiet", "--no-progress", "--color", "never", filepath.Base(wheel))
	cmd.Dir, cmd.Env = filepath.Dir(wheel), env.list()
	cmd.WaitDelay = 5 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	if err == nil || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// An answer that is a web page has many lines. The first one has the status.
	said := message(strings.Split(strings.TrimSpace(store.Redact(env.withoutSecrets(stderr.String()))), "\n"))
	return diag.Errorf(diag.Publish, "uv publish: %.600s (%w)", said, err).
		WithHint("uv takes credentials from UV_PUBLISH_TOKEN, or UV_PUBLISH_USERNAME and UV_PUBLISH_PASSWORD, netrc, or a keyring (UV_KEYRING_PROVIDER=subprocess). If they are right, run the same command again: it sends nothing that the index shows")
}

// withoutSecrets removes the secrets from the output of uv, which quotes the answer of
// the server. Without the password among the variables the whole answer goes, because
// it may hold one that only uv knows.
func (v vars) withoutSecrets(output string) string {
	user, password := v["UV_PUBLISH_USERNAME"], v["UV_PUBLISH_PASSWORD"]
	if token := v["UV_PUBLISH_TOKEN"]; token != "" {
		user, password = "__token__", token
	}
	if password == "" {
		own, _, _ := strings.Cut(output, " Server says:")
		return own
	}
	for _, secret := range []string{base64.StdEncoding.EncodeToString([]byte(user + ":" + password)), password} {
		output = strings.ReplaceAll(output, secret, "…")
	}
	return output
}
