package suite

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/synapse-module/workers/protocol"
)

const taskYAML = `version: 1
name: tiny
title: Tiny
task: TASK
model: {family: tiny}
data: {inputs: inputs.jsonl.zst, DATA, provenance: reference.json}
artifacts:
  - {name: tiny, engine: fake, format: fake, digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}
gates:
  GATES
  repeats: {count: 2, rows: 1}
  max_tokens: {min: 5}
controls: {CONTROLS}
`

func taskSuite(t *testing.T, replace *strings.Replacer, inputs, file, reference string, provenance map[string]any) fstest.MapFS {
	t.Helper()
	provenance["schema"] = 1
	provenance["inputs"] = map[string]any{"count": strings.Count(inputs, "\n"), "sha256": digest([]byte(inputs))}
	b, err := json.Marshal(provenance)
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{
		File:               {Data: []byte(replace.Replace(taskYAML))},
		"inputs.jsonl.zst": {Data: pack(t, []byte(inputs))},
		file:               {Data: pack(t, []byte(reference))},
		"reference.json":   {Data: b},
	}
}

func rankingSuite(t *testing.T, edit *strings.Replacer) fstest.MapFS {
	t.Helper()
	inputs := edit.Replace(`{"id":"q","text":"q","ids":[1],"documents":[{"id":"d0","text":"x","ids":[2]},{"id":"d1","text":null,"ids":[3]}],"tags":[]}` + "\n")
	scores := string(protocol.Bytes([]float32{0.5, -1}))
	return taskSuite(t, strings.NewReplacer(
		"TASK", "rerank", "family: tiny", "family: tiny, pair_tokens: 3", "DATA", "scores: scores.f32.zst", "CONTROLS", "shuffled_documents: true",
		"GATES", "score: {max: 0.1, mean: 0.1}\n  order: {kendall: 1, first: 1}\n  invariance: {tolerance: 0.1, batches: [2], beside_longest: 1}",
	), inputs, "scores.f32.zst", scores, map[string]any{"scores": map[string]any{"count": 2, "sha256": digest([]byte(scores))}})
}

func generationSuite(t *testing.T, edit *strings.Replacer) fstest.MapFS {
	t.Helper()
	inputs := edit.Replace(`{"id":"p","text":"p","ids":[1],"max_tokens":2,"tags":[]}` + "\n" +
		`{"id":"g","text":"g","ids":[1],"max_tokens":9,"grammar":"root ::= \"a\"","obeys":{"regexp":"a|bb"},"tags":[]}` + "\n")
	answers := edit.Replace(`{"id":"p","ids":[7,2],"pieces":["x",""],"finish":"stop"}` + "\n")
	return taskSuite(t, strings.NewReplacer(
		"TASK", "generate", "DATA", "answers: answers.jsonl.zst", "CONTROLS", "no_grammar: true", "GATES", "greedy: {tokens: 2}\n  limits: {counts: [1]}",
	), inputs, "answers.jsonl.zst", answers, map[string]any{"answers": map[string]any{"sha256": digest([]byte(answers))}})
}

func TestLoadReadsOtherTasks(t *testing.T) {
	nothing := strings.NewReplacer()
	s, err := Load(rankingSuite(t, nothing), "tiny")
	if err != nil {
		t.Fatal(err)
	}
	if d := s.Queries[0].Documents; d[0].Score != 0.5 || d[1].Score != -1 || s.Tokens(s.Queries[0], d[0]) != 5 {
		t.Errorf("%+v", s.Queries)
	}
	if s, err = Load(generationSuite(t, nothing), "tiny"); err != nil {
		t.Fatal(err)
	}
	if p := s.Prompts; p[0].Answer == nil || p[0].Answer.Pieces[0] != "x" || p[1].Answer != nil {
		t.Errorf("%+v", p)
	}
	for text, want := range map[string]bool{"a": true, "bb": true, "": false, "ab": false, "a\n": false, "b": false} {
		if err := s.Prompts[1].Obeys.Check(text); (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestLoadRefusesTaskDataThatDoesNotFit(t *testing.T) {
	for _, c := range []struct {
		make           func(*testing.T, *strings.Replacer) fstest.MapFS
		old, new, want string
	}{
		{rankingSuite, `"id":"d1"`, `"id":"d0"`, `inputs.jsonl.zst:1: a second input "d0"`},
		{rankingSuite, `,{"id":"d1","text":null,"ids":[3]}`, "", "an order needs a query and two documents"},
		{rankingSuite, `"ids":[3]`, `"ids":[]`, `"d1" has no token ids`},
		{rankingSuite, `"ids":[3]}`, `"ids":[3]},{"id":"d2","text":null,"ids":[3]}`, "holds 3 documents, its provenance says 2 scores"},
		{rankingSuite, `"ids":[3]`, `"ids":[3,3]`, "gates.max_tokens.min: 5 is less than the longest input, which has 6 tokens"},
		{generationSuite, `"max_tokens":2`, `"max_tokens":0`, `"p" has max_tokens 0`},
		{generationSuite, `"max_tokens":2`, `"max_tokens":1`, "has more tokens than its prompt allows"},
		{generationSuite, `,"obeys":{"regexp":"a|bb"}`, "", "grammar and obeys belong together"},
		{generationSuite, `"regexp":"a|bb"`, `"regexp":"a("`, `inputs.jsonl.zst:2: "g": obeys: error parsing regexp`},
		{generationSuite, `"regexp":"a|bb"`, `"schema":{"type":7}`, `"g": obeys: `},
		{generationSuite, `"finish":"stop"`, `"finish":"length"`, "no answer ends by itself"},
		{generationSuite, `"finish":"stop"`, `"finish":"soon"`, `"p" ends by "soon"`},
		{generationSuite, `{"id":"p","ids"`, `{"id":"z","ids"`, `answers.jsonl.zst:1: "z" is no prompt`},
	} {
		t.Run(c.want, func(t *testing.T) {
			_, err := Load(c.make(t, strings.NewReplacer(c.old, c.new)), "tiny")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestATaskHasItsOwnFields(t *testing.T) {
	fsys := rankingSuite(t, strings.NewReplacer())
	for old, want := range map[string]string{
		"order: {":   "gates.ordre: no such field",
		"family":     "model.ordre: no such field",
		"shuffled_d": "controls.ordre: no such field",
	} {
		src := strings.Replace(string(fsys[File].Data), old, "ordre: 1, "+old, 1)
		if old == "order: {" {
			src = strings.Replace(string(fsys[File].Data), old, "ordre: {", 1)
		}
		if _, err := Decode("s.yaml", []byte(src)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
