package pypi

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// publisher returns a program that writes its arguments and variables to a file, and then
// runs the script.
func publisher(t *testing.T, script string) (uv Tool, asked func() string) {
	t.Helper()
	isolate(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "uv")
	text := "#!/bin/sh\n{ echo \"$@\"; pwd; env; } >" + dir + "/asked\n" + script + "\n"
	must.Succeed(t, os.WriteFile(path, []byte(text), 0o755))
	return Tool{Path: path}, func() string {
		data, _ := os.ReadFile(filepath.Join(dir, "asked"))
		return string(data)
	}
}

func TestPublish(t *testing.T) {
	uv, asked := publisher(t, "")
	t.Setenv("UV_PUBLISH_TOKEN", "")
	t.Setenv("UV_PUBLISH_USERNAME", "ann")
	t.Setenv("UV_PUBLISH_PASSWORD", "geheim-4711")
	for _, elsewhere := range []string{"UV_PUBLISH_URL", "UV_PUBLISH_INDEX", "UV_PUBLISH_CHECK_URL", "UV_CONFIG_FILE"} {
		t.Setenv(elsewhere, "https://elsewhere.invalid/")
	}
	dir := t.TempDir()
	must.Succeed(t, uv.Publish(t.Context(), "https://h.invalid/up/", filepath.Join(dir, "a-1-py3-none-any.whl")))
	args, rest, _ := strings.Cut(asked(), "\n")
	check.That(t, args == "publish --no-config --publish-url https://h.invalid/up/ --quiet --no-progress --color never a-1-py3-none-any.whl",
		"the arguments are %s", args)
	for _, want := range []string{dir + "\n", "\nUV_PUBLISH_USERNAME=ann\n", "\nUV_PUBLISH_PASSWORD=geheim-4711\n"} {
		check.That(t, strings.Contains(rest, want), "%q is not in\n%s", want, rest)
	}
	for _, unwanted := range []string{"elsewhere", "UV_PUBLISH_TOKEN"} {
		check.That(t, !strings.Contains(rest, unwanted), "%q is in\n%s", unwanted, rest)
	}
}

// A server can repeat the credentials in its answer. If builder does not know them, it
// prints no answer.
func TestPublishPrintsNoSecret(t *testing.T) {
	const secret = "geheim-4711"
	basic := func(user string) string { return base64.StdEncoding.EncodeToString([]byte(user + ":" + secret)) }
	for _, c := range []struct{ user, password, token, sent string }{
		{"ann", secret, "", basic("ann")},
		{"", "", secret, basic("__token__")},
		{"", "", "", basic("from netrc")},
	} {
		uv, _ := publisher(t, `printf 'error: Failed to publish\n  cause: Server returned status code 400 Bad Request. Server says: you are Basic `+c.sent+` with `+secret+`\n' >&2; exit 2`)
		t.Setenv("UV_PUBLISH_USERNAME", c.user)
		t.Setenv("UV_PUBLISH_PASSWORD", c.password)
		t.Setenv("UV_PUBLISH_TOKEN", c.token)
		err := uv.Publish(t.Context(), "https://h.invalid/", filepath.Join(t.TempDir(), "a-1-py3-none-any.whl"))
		if diag.CodeOf(err) != diag.Publish || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), c.sent) || !strings.Contains(err.Error(), "400 Bad Request") {
			t.Errorf("%+v: %v", c, err)
		}
		said := strings.Contains(err.Error(), "Server says")
		check.That(t, said == (c.user+c.token != ""), "%+v: %v", c, err)
	}
}
