package elf

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"builder/internal/elf/elftest"
)

func TestTexts(t *testing.T) {
	long := strings.Repeat("x", maxText)
	file := elftest.Library{
		Texts: []string{"libb.so.1", "liba.so", "other", "libb.so.1", long + "libc.so", "libd.so" + long},
		Sections: []elftest.Section{
			{Name: ".rodata.str1.1", Data: []byte("libe.so\x00libf.so")}, // the last has no end
			{Name: ".data", Data: []byte("\x00libg.so\x00")},
		},
	}.Bytes()
	got, err := Texts(bytes.NewReader(file), regexp.MustCompile(`^lib\w\.so`))
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range got {
		got[i] = text[:min(len(text), 9)]
	}
	// A text that is too long is looked at in pieces: libc.so begins the second.
	if diff := cmp.Diff([]string{"liba.so", "libb.so.1", "libc.so", "libd.soxx", "libe.so", "libf.so"}, got); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
}

func TestTextsAreBounded(t *testing.T) {
	many := elftest.Library{Texts: strings.Split(strings.Repeat("text,", 3*maxTexts), ",")}
	for i := range many.Texts {
		many.Texts[i] += string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676))
	}
	got, err := Texts(bytes.NewReader(many.Bytes()), regexp.MustCompile("text"))
	if err != nil || len(got) != maxTexts || !slices.IsSorted(got) {
		t.Errorf("%d texts, %v", len(got), err)
	}
}

func TestTextsRefuses(t *testing.T) {
	if got, err := Texts(strings.NewReader("text"), regexp.MustCompile("text")); err == nil {
		t.Errorf("a file that is no library gives %q", got)
	}
	if got, err := Texts(bytes.NewReader(elftest.Library{}.Bytes()), regexp.MustCompile("text")); err != nil || got != nil {
		t.Errorf("a library without texts gives %q, %v", got, err)
	}
}

func FuzzTexts(f *testing.F) {
	f.Add(elftest.Library{Texts: []string{"libibverbs.so.1"}}.Bytes())
	pattern := regexp.MustCompile(`^lib`)
	f.Fuzz(func(t *testing.T, file []byte) {
		found, err := Texts(bytes.NewReader(file), pattern)
		if err != nil && found != nil || len(found) > maxTexts {
			t.Errorf("%d texts, %v", len(found), err)
		}
	})
}
