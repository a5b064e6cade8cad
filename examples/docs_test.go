package examples_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var codeBlock = regexp.MustCompile("(?ms)^```(go|python)\n(.*?)^```$")

// TestDocumentedCodeIsTheExamples holds every block of code in the documentation
// to an example that the tests run: it must stand there, line for line.
func TestDocumentedCodeIsTheExamples(t *testing.T) {
	const doc = "../docs/embedding-in-your-module.md"
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{}
	for language, pattern := range map[string]string{"go": "go-module/*.go", "python": "python-module/*.py"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, f := range files {
			source, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			sources[language] += string(source)
		}
	}
	blocks := codeBlock.FindAllStringSubmatch(string(text), -1)
	if len(blocks) == 0 {
		t.Fatalf("%s holds no code", doc)
	}
	for _, b := range blocks {
		if !strings.Contains(sources[b[1]], b[2]) {
			t.Errorf("%s shows code that is in no example:\n%s", doc, b[2])
		}
	}
}
