package images_test

import (
	"bytes"
	"strings"
	"testing"

	"builder/images"
	"builder/internal/plan/image"
	"builder/test/kit/check"
	"builder/test/kit/golden"
	"builder/test/kit/must"
	"builder/test/kit/recipetest"
)

func TestSchema(t *testing.T) {
	golden.CheckFile(t, "schema.json", recipetest.Schema(&image.Catalogue{}))
}

func TestEveryFileIsEmbeddedAndRead(t *testing.T) {
	for name, text := range golden.CheckEmbedded(t, images.FS) {
		switch {
		case name == "schema.json":
		case !strings.HasSuffix(name, ".yaml"):
			t.Errorf("%s is neither a catalogue nor the schema", name)
		case !bytes.HasPrefix(text, []byte("# yaml-language-server: $schema=schema.json\n")):
			t.Errorf("%s does not tell editors of its schema", name)
		}
	}
}

func TestEveryImageLoads(t *testing.T) {
	all, err := image.Load(images.FS, "images")
	must.Hold(t, err == nil && len(all) != 0, "%d images, %v", len(all), err)
	for _, img := range all {
		found, err := image.Find(all, img.Name)
		check.That(t, err == nil && found.Summary == img.Summary && img.Summary != "", "%s: found %q, %v", img.Name, found.Summary, err)
		check.That(t, img.Facts()["python"] != "" && img.Facts()["glibc"] != "",
			"%s does not state its python and glibc, which every wheel depends on", img.Name)
		for name, fact := range img.Provides {
			check.That(t, !strings.Contains(fact.Probe, "://") && !strings.Contains(fact.Probe, "{{"),
				"%s: the probe of %s is more than a look at the image: %s", img.Name, name, fact.Probe)
		}
	}
}
