package publish

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// ordinary filters an environment down to the variables that programs need to find
// other programs, the user and the network. It drops tokens and installer settings.
func ordinary(environ []string) []string {
	return slices.DeleteFunc(environ, func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return !slices.Contains([]string{
			"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "TZ", "XDG_CACHE_HOME", "XDG_DATA_HOME", "PYTHONHOME", "LD_LIBRARY_PATH",
			"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
			"http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
		}, name) && !strings.HasPrefix(name, "LC_")
	})
}

// runProgram runs a program to its end and returns its output. env replaces every setting
// of the host for package indexes.
func runProgram(ctx context.Context, env []string, name string, args ...string) (string, error) {
	var b bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = slices.Concat(ordinary(os.Environ()), env), &b, &b
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	return b.String(), err
}
