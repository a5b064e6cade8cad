package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/synapse-module/workers/protocol"
)

// fakeTask writes a suite of another task than embedding for the fake engine.
//
//	faketask DIR rerank|generate [KEY=VALUE...]
//
// The reference is computed from the engine's documented formula, not by the
// engine. Keys but these are members of runtime_config:
//
//	off=0.5           added to the reference's score of one pair
//	answer=TEXT       the reference's answer to one prompt
//	grammar=TEXT      a grammar for a further prompt, which must match the letter x
//	controls=YAML     other controls
//	gates=YAML        further gates
func fakeTask(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: faketask DIR rerank|generate [KEY=VALUE...]")
	}
	f := fakeTaskFiles{config: map[string]any{"max_tokens": fakeMax}}
	for _, arg := range args[2:] {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "off", "answer", "grammar", "controls", "gates":
			f.set(key, value)
		default:
			var v any = value
			if err := json.Unmarshal([]byte(value), &v); err != nil {
				v = value
			}
			f.config[key] = v
		}
	}
	switch args[1] {
	case "rerank":
		ts.Check(f.rerank(ts.MkAbs(args[0])))
	case "generate":
		ts.Check(f.generate(ts.MkAbs(args[0])))
	default:
		ts.Fatalf("no task %q", args[1])
	}
}

type fakeTaskFiles struct {
	off, answer, grammar, controls, gates string
	config                                map[string]any
}

func (f *fakeTaskFiles) set(key, value string) {
	*map[string]*string{"off": &f.off, "answer": &f.answer, "grammar": &f.grammar, "controls": &f.controls, "gates": &f.gates}[key] = value
}

// rerank writes queries of which the documents share one, two, ... ids.
func (f *fakeTaskFiles) rerank(dir string) error {
	var lines string
	var scores []float32
	for q := range 3 {
		query := []int32{10, 11, 12, 13}
		var documents []map[string]any
		for d := range 5 {
			row := []int32{100, 101, 102, 103, 104, 105, 106}[:3+q+d/2]
			row = append([]int32{}, row...)
			hits := min(d, len(row))
			copy(row, query[:hits])
			documents = append(documents, map[string]any{"id": fmt.Sprintf("q%dd%d", q, d), "text": fmt.Sprintf("document %d", d), "ids": row})
			scores = append(scores, float32(hits)/float32(len(row)))
		}
		lines += jsonLine(map[string]any{"id": fmt.Sprintf("q%d", q), "text": fmt.Sprintf("query %d", q), "ids": query, "documents": documents, "tags": []string{}})
	}
	if f.off != "" {
		off, err := strconv.ParseFloat(f.off, 32)
		if err != nil {
			return err
		}
		scores[3] += float32(off)
	}
	raw := string(protocol.Bytes(scores))
	return f.write(dir, fakeRerankYAML, "shuffled_documents: true", lines, "scores.f32.zst", raw, map[string]any{
		"inputs": map[string]any{"count": 3, "sha256": hexDigest([]byte(lines))},
		"scores": map[string]any{"count": len(scores), "sha256": hexDigest([]byte(raw))},
	})
}

// generate writes prompts that the engine says over, one of which it ends by
// itself.
func (f *fakeTaskFiles) generate(dir string) error {
	const most = 6
	var lines, answers string
	prompts := [][]int32{{5, 6, 7, 8}, {9, 10, 2, 11}, {20}}
	for i, ids := range prompts {
		id := fmt.Sprintf("p%d", i)
		lines += jsonLine(map[string]any{"id": id, "text": fmt.Sprintf("prompt %d", i), "ids": ids, "max_tokens": most, "tags": []string{}})
		pieces, tokens, finish := []string{}, []int32{}, protocol.FinishLength
		for n := range most {
			next := ids[n%len(ids)]
			if next == 2 {
				finish = protocol.FinishStop
				break
			}
			piece := strconv.Itoa(int(next))
			if n > 0 {
				piece = " " + piece
			}
			pieces, tokens = append(pieces, piece), append(tokens, next)
		}
		if i == 0 && f.answer != "" {
			pieces[3] = f.answer
		}
		answers += jsonLine(map[string]any{"id": id, "ids": tokens, "pieces": pieces, "finish": finish})
	}
	count := len(prompts)
	if f.grammar != "" {
		lines += jsonLine(map[string]any{"id": "g0", "text": "grammar", "ids": []int32{5}, "max_tokens": 2, "grammar": f.grammar, "obeys": map[string]any{"regexp": "x"}, "tags": []string{}})
		count++
	}
	return f.write(dir, fakeGenerateYAML, "truncated_prompt: true", lines, "answers.jsonl.zst", answers, map[string]any{
		"inputs":  map[string]any{"count": count, "sha256": hexDigest([]byte(lines))},
		"answers": map[string]any{"sha256": hexDigest([]byte(answers))},
	})
}

func jsonLine(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // what is written here is JSON
	}
	return string(b) + "\n"
}

func (f *fakeTaskFiles) write(dir, yaml, controls, inputs, reference, data string, provenance map[string]any) error {
	if f.controls != "" {
		controls = f.controls
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	provenance["schema"], provenance["model"] = 1, map[string]any{"name": "fake"}
	packer, err := zstd.NewWriter(nil)
	if err != nil {
		return err
	}
	defer packer.Close()
	for name, content := range map[string][]byte{
		"inputs.jsonl.zst": packer.EncodeAll([]byte(inputs), nil),
		reference:          packer.EncodeAll([]byte(data), nil),
		"reference.json":   []byte(jsonLine(provenance)),
		"suite.yaml":       fmt.Appendf(nil, yaml, hexDigest([]byte(fakeModel)), strings.TrimSpace(jsonLine(f.config)), f.gates, controls),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

const fakeRerankYAML = `version: 1
name: fake
title: The fake engine's scores against their formula
task: rerank
model: {family: fake, pair_tokens: 0}
data: {inputs: inputs.jsonl.zst, scores: scores.f32.zst, provenance: reference.json}
artifacts:
  - name: model
    engine: fake
    format: fake
    digest: sha256:%s
    runtime_config: %s
gates:
  score: {max: 0.00001, mean: 0.00001}
  order: {kendall: 0.999, first: 1}
  invariance: {tolerance: 0.00001, batches: [1, 2, 4], beside_longest: 3}
  repeats: {count: 5, rows: 2}
  max_tokens: {min: 20}
  %s
controls: {%s}
` + fakeTaskPerformanceYAML

const fakeGenerateYAML = `version: 1
name: fake
title: The fake engine's answers against their formula
task: generate
model: {family: fake}
data: {inputs: inputs.jsonl.zst, answers: answers.jsonl.zst, provenance: reference.json}
artifacts:
  - name: model
    engine: fake
    format: fake
    digest: sha256:%s
    runtime_config: %s
gates:
  greedy: {tokens: 5}
  limits: {counts: [1, 2, 5]}
  repeats: {count: 3, rows: 2}
  max_tokens: {min: 20}
  %s
controls: {%s}
` + fakeTaskPerformanceYAML

const fakeTaskPerformanceYAML = `performance:
  shapes: [{rows: 2, tokens: 9}]
  batches: 3
  memory_batches: 60
  memory_settle: 20
  memory_tokens: 20
  max_growth: 1.5
  idle: 1s
  max_idle_share: 0.5
`
