package index_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// browser returns the page as a real browser has it once its script has run, and a
// picture of it where BUILDER_TEST_PICTURES names a directory.
func browser(t *testing.T, address, picture string) string {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Skip("this host has no Chromium")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	show := func(args ...string) string {
		args = append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--window-size=1000,1200", "--virtual-time-budget=2000", "--user-data-dir=" + t.TempDir()}, args...)
		out, err := exec.CommandContext(ctx, program, append(args, address)...).Output()
		if err != nil {
			t.Fatalf("%s: %v", program, err)
		}
		return string(out)
	}
	if dir := os.Getenv("BUILDER_TEST_PICTURES"); dir != "" {
		show("--screenshot=" + filepath.Join(dir, picture+".png"))
	}
	return show("--dump-dom")
}

// People choose by axis, and get the line for pip with the address that they see.
func TestPageInABrowser(t *testing.T) {
	x, dir := open(t)
	for n := range 3 {
		p := publication(t, n, strings.Repeat("wheel", n+1))
		p.Record.Gates["import"] = "pass"
		p.Record.Evidence = map[string]string{"import": `loaded <b>librccl.so.1</b>`}
		add(t, x, p)
	}
	if _, err := x.Yank(t.Context(), key(0), `wrong <sums> & "more"`); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()

	all := browser(t, server.URL+"/", "all")
	for _, want := range []string{
		`role="status">3 wheels<`, `--index-url <span class="base">` + server.URL + `/</span>simple/`,
		"loaded &lt;b&gt;librccl.so.1&lt;/b&gt;", `</strong> wrong &lt;sums&gt; &amp; "more"</p>`,
		`href="files/tool/tool-1.1%2Bcuda13.0-py3-none-any.whl.attestations/provenance.sigstore.json"`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if n := shownIn(all); n != 3 {
		t.Errorf("%d wheels are shown", n)
	}
	one := browser(t, server.URL+"/#version=1&cuda=13.0", "one")
	if !strings.Contains(one, `role="status">1 wheel<`) || shownIn(one) != 1 {
		t.Errorf("%d wheels are shown", shownIn(one))
	}
	if n := shownIn(browser(t, server.URL+"/#version=%3Cscript%3E&os=plan9", "none")); n != 3 {
		t.Errorf("a value that no wheel has hides: %d wheels are shown", n)
	}
}

var article = regexp.MustCompile(`<article [^>]*>`)

func shownIn(page string) int {
	shown := 0
	for _, tag := range article.FindAllString(page, -1) {
		if !strings.Contains(tag, "hidden") {
			shown++
		}
	}
	return shown
}
