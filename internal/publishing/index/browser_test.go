package index_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"builder/test/kit/browsertest"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// Visitors get the pip command with the address of the page.
func TestPageInABrowser(t *testing.T) {
	x, dir := open(t)
	for n := range 3 {
		p := publication(t, n, strings.Repeat("wheel", n+1))
		p.Record.Gates["import"] = "pass"
		p.Record.Evidence = map[string]string{"import": `loaded <b>librccl.so.1</b>`}
		add(t, x, p)
	}
	must.Get(x.Yank(t.Context(), key(0), `wrong <sums> & "more"`))(t)
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()

	browsertest.Picture(t, server.URL+"/", "1000,1200", "index")
	all := browsertest.DOM(t, server.URL+"/")
	for _, want := range []string{
		`<p>3 wheels, newest first</p>`, `--index-url <span class="base">` + server.URL + `/</span>simple/`,
		"loaded &lt;b&gt;librccl.so.1&lt;/b&gt;", `</strong> wrong &lt;sums&gt; &amp; "more"</p>`,
		`href="files/tool/tool-1.1%2Bcuda13.0-py3-none-any.whl.attestations/provenance.sigstore.json"`,
	} {
		check.That(t, strings.Contains(all, want), "the page lacks %s", want)
	}
}
