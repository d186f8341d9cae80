package pagetest

import (
	"slices"
	"strings"
	"testing"

	"builder/test/kit/check"
)

const good = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Page</title><style>a > b { }</style></head>
<body>
<a class="skip" href="#m">to the main part</a>
<header><h1>Page</h1></header>
<main id="m">
<section aria-labelledby="t"><h2 id="t">Table</h2>
<div class="scroll" role="region" aria-label="Numbers" tabindex="0"><table>
<thead><tr><th scope="col">a</th></tr></thead>
<tbody><tr><th scope="row">1</th><td>2<br>3</td></tr></tbody>
</table></div></section>
<label>pick<select name="pick"><option>x</option></select></label>
<svg role="img" aria-label="a curve"></svg><svg aria-hidden="true"></svg>
<details open><summary>more</summary></details>
</main>
<script>if (a < b && c) d();</script>
</body>
</html>`

func TestFaults(t *testing.T) {
	problems := Faults(good)
	check.That(t, len(problems) == 0, "a good page: %q", problems)
	for want, edit := range map[string][2]string{
		"does not state its language":                {` lang="en"`, ``},
		"has no title":                               {`<title>Page</title>`, `<title> </title>`},
		"forbids zoom":                               {`<meta charset="utf-8">`, `<meta name="viewport" content="maximum-scale=1">`},
		"has 0 main elements":                        {`main`, `div`},
		"<p> is outside every landmark":              {`<header>`, `<p>x</p><header>`},
		`has no unique name: ""`:                     {` aria-label="Numbers"`, ``},
		`has no unique name: "Table"`:                {`aria-label="Numbers"`, `aria-label="Table"`},
		`"Table" follows a heading of level 1`:       {`h2`, `h3`},
		`"Page" follows a heading of level 0`:        {`h1`, `h2`},
		`the id "m" occurs 2 times`:                  {`id="t"`, `id="m"`},
		`refers to the missing id "n"`:               {`href="#m"`, `href="#n"`},
		"<svg role=\"img\"> has no text alternative": {` aria-label="a curve"`, ``},
		"<select> has no label":                      {`label>`, `span>`},
		`"1" has no scope`:                           {` scope="row"`, ``},
		"has no column headers":                      {`<th scope="col">a</th>`, `<td>a</td>`},
		`the row "1 23" has no header`:               {`<th scope="row">1</th>`, `<td>1 </td>`},
		"scrolls only with a mouse":                  {` tabindex="0"`, ``},
		"<summary> has no text":                      {`more`, ``},
		"takes the focus out of order":               {`tabindex="0"`, `tabindex="2"`},
	} {
		problems := Faults(strings.ReplaceAll(good, edit[0], edit[1]))
		check.That(t, slices.ContainsFunc(problems, func(f string) bool { return strings.Contains(f, want) }),
			"got %q, want %q", problems, want)
	}
}

const style = `:root {
	--ground: #fff; --text: #000; --quiet: #777777; --glass: #00000080;
}
@media (prefers-color-scheme: dark) {
	:root { --ground: #000000; --text: #ffffff; }
}
:root { --late: #767676; }
@media (max-width: 40rem) {
	:root { --text: #ffffff; }
}
@media print {
	p { color: red; }
}
`

func TestContrasts(t *testing.T) {
	want := []string{
		"dark: --none on --ground: \"\" is not a colour such as #112233",
		"dark: --glass on --ground: \"#00000080\" is not a colour such as #112233",
		"light: --quiet on --ground has a contrast of 4.48, the minimum is 4.5",
		"light: --none on --ground: \"\" is not a colour such as #112233",
		"light: --glass on --ground: \"#00000080\" is not a colour such as #112233",
	}
	check.Same(t, "the contrasts", want, Contrasts(style, Text, "--ground", "--text", "--quiet", "--late", "--none", "--glass"))
	ratio, err := contrast("#000", "#ffffff")
	check.That(t, err == nil && ratio == 21, "black on white: %v, %v", ratio, err)
}
