package pagetest

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Text is the minimum contrast of text by WCAG 2.2 (1.4.3).
const Text = 4.5

// Contrasts returns an error message for each colour with too little contrast to the
// ground, in each theme: light, dark and print, as defined by the variables of :root.
func Contrasts(css string, least float64, ground string, colours ...string) []string {
	var problems []string
	all := themes(css)
	for _, theme := range slices.Sorted(maps.Keys(all)) {
		for _, colour := range colours {
			have, err := contrast(all[theme][ground], all[theme][colour])
			switch {
			case err != nil:
				problems = append(problems, fmt.Sprintf("%s: %s on %s: %v", theme, colour, ground, err))
			case have < least:
				problems = append(problems, fmt.Sprintf("%s: %s on %s has a contrast of %.2f, the minimum is %.1f", theme, colour, ground, have, least))
			}
		}
	}
	return problems
}

var (
	media    = regexp.MustCompile(`@media ([^{]*)\{((?:[^{}]*\{[^{}]*\})*[^{}]*)\}`)
	rootRule = regexp.MustCompile(`:root \{([^}]*)\}`)
	variable = regexp.MustCompile(`(--[a-z0-9]+): (#[0-9a-f]+);`)
)

// themes returns the variables of a style by theme. light holds the variables outside
// of media queries. The other themes inherit from it.
func themes(css string) map[string]map[string]string {
	found := map[string]map[string]string{"light": variables(media.ReplaceAllString(css, ""))}
	for _, m := range media.FindAllStringSubmatch(css, -1) {
		theme := ""
		switch strings.TrimSpace(m[1]) {
		case "(prefers-color-scheme: dark)":
			theme = "dark"
		case "print":
			theme = "print"
		}
		own := variables(m[2])
		if theme == "" || len(own) == 0 {
			continue
		}
		if found[theme] == nil {
			found[theme] = maps.Clone(found["light"])
		}
		maps.Copy(found[theme], own)
	}
	return found
}

func variables(css string) map[string]string {
	all := map[string]string{}
	for _, rule := range rootRule.FindAllStringSubmatch(css, -1) {
		for _, v := range variable.FindAllStringSubmatch(rule[1], -1) {
			all[v[1]] = v[2]
		}
	}
	return all
}

// contrast returns the contrast ratio of two colours, 1 to 21.
func contrast(a, b string) (float64, error) {
	first, err := luminance(a)
	if err != nil {
		return 0, err
	}
	second, err := luminance(b)
	if err != nil {
		return 0, err
	}
	return (max(first, second) + 0.05) / (min(first, second) + 0.05), nil
}

// luminance returns the relative luminance of an opaque colour by WCAG, 0 to 1. The
// colour is written #123 or #112233.
func luminance(colour string) (float64, error) {
	digits := strings.TrimPrefix(colour, "#")
	if len(digits) == 3 {
		digits = string([]byte{digits[0], digits[0], digits[1], digits[1], digits[2], digits[2]})
	}
	n, err := strconv.ParseUint(digits, 16, 24)
	if err != nil || len(digits) != 6 {
		return 0, fmt.Errorf("%q is not a colour such as #112233", colour)
	}
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		part := float64(n>>(16-8*i)&0xff) / 255
		if part <= 0.04045 {
			part /= 12.92
		} else {
			part = math.Pow((part+0.055)/1.055, 2.4)
		}
		sum += weight * part
	}
	return sum, nil
}
