package suite

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// FuzzDecode: whatever a suite.yaml holds, it is read or refused with errors that
// name the file.
func FuzzDecode(f *testing.F) {
	src, err := os.ReadFile("testdata/suite.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(src))
	f.Add(taskYAML)
	f.Add("version: 1\nname: [&a *a]\n")
	f.Fuzz(func(t *testing.T, src string) {
		if _, err := Decode("s.yaml", []byte(src)); err != nil && !strings.Contains(err.Error(), "s.yaml") {
			t.Errorf("%v does not name the file", err)
		}
	})
}

// FuzzTaskData: whatever the lines of the other tasks hold, they are read or
// refused.
func FuzzTaskData(f *testing.F) {
	f.Add(`{"id":"q","text":"q","ids":[1],"documents":[{"id":"d0","text":"x","ids":[2]},{"id":"d1","text":null,"ids":[3]}],"tags":[]}`)
	f.Add(`{"id":"p","text":"p","ids":[1],"max_tokens":2,"grammar":"root ::= \"a\"","obeys":{"schema":{"$ref":"http://example.org"}},"tags":[]}`)
	f.Add(`{"id":"p","ids":[7,2],"pieces":["x",""],"finish":"stop"}`)
	f.Fuzz(func(_ *testing.T, lines string) {
		r := reader{fstest.MapFS{}, "fuzz"}
		_, _ = decodeLines(r, "inputs", []byte(lines), checkQuery)
		_, _ = decodeLines(r, "answers", []byte(lines), checkAnswer)
		prompts, err := decodeLines(r, "prompts", []byte(lines), checkPrompt)
		if err != nil {
			return
		}
		for _, p := range prompts {
			if p.Obeys != nil {
				_ = p.Obeys.Check(lines)
			}
		}
	})
}
