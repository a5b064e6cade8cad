package report

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/synapse-module/workers/certify"
	"github.com/synapse-module/workers/certify/gate"
	"github.com/synapse-module/workers/certify/machine"
	"github.com/synapse-module/workers/certify/suite"
	"github.com/synapse-module/workers/protocol"
)

// sample is a result with everything that a page can show, in the words of
// somebody who would like to break it.
func sample() *certify.Result {
	const hostile = `</td><script>alert(1)</script><img src="http://example.org/x.png"> & a very long word: ` + "supercalifragilisticexpialidocious"
	text, share := hostile, 0.97
	passed := []gate.Check{
		{Gate: "cosine", Figure: "min", Value: 0.99999, Relation: gate.AtLeast, Limit: 0.9999, Passed: true, Worst: "t1"},
		{Gate: "max_abs_diff", Figure: "max", Value: 3e-7, Relation: gate.AtMost, Limit: 1e-4, Passed: true},
	}
	embed := certify.ArtifactResult{
		Artifact: "model-f32", Digest: protocol.Digest("sha256:" + strings.Repeat("a", 64)), Format: "onnx", Verdict: certify.Passed, Seconds: 12, RuntimeConfig: []byte("{}"),
		Model:  protocol.Description{Arch: "bert", Config: []byte(`{"threads":2}`), Placement: &protocol.Placement{Share: share, CostShare: &share, Coverage: 1, NeuralEngine: 97, CPU: 3, ComputeUnits: "all", OS: "26", Chip: "M9", OffEngine: []string{"ios17.gather"}}},
		Checks: passed,
		Controls: []gate.Control{
			{Name: "swapped_pooling", Held: true, Checks: []gate.Check{{Gate: "cosine", Figure: "min", Value: 0.2, Relation: gate.AtLeast, Limit: 0.9999}}},
			{Name: "unguarded_int8", Hidden: "this processor has VNNI, which hides the fault"},
		},
		Agreement:   []certify.Agreement{{Set: "lee", Pairs: 3, Pearson: certify.Correlation{Ours: 0.65, Reference: 0.66}, Spearman: certify.Correlation{Ours: 0.5, Reference: 0.51}}},
		Performance: &certify.Performance{Shapes: []certify.Shape{{Rows: 1, Tokens: 8, Batches: 5, P50MS: 1, P99MS: 2, TokensPerSecond: 8000}}},
	}
	for i := range 40 {
		embed.Rows = append(embed.Rows, certify.Row{ID: "t1", Text: &text, Tokens: 1 + i, Cosine: gate.Figure(1 - float64(i)*1e-8)})
		embed.Similarities = append(embed.Similarities, certify.Similarity{Ours: gate.Figure(float64(i) / 40), Reference: gate.Figure(float64(i) / 40)})
		embed.People = append(embed.People, certify.Judged{Set: "lee", Ours: gate.Figure(float64(i) / 40), Score: float64(i % 7)})
	}
	failed := certify.ArtifactResult{
		Artifact: "model-int8", Digest: embed.Digest, Format: "onnx", Verdict: certify.Failed, RuntimeConfig: []byte("{}"),
		Problem:  &certify.Problem{Message: hostile, LogTail: hostile + "\n" + strings.Repeat("x", 300)},
		Checks:   []gate.Check{{Gate: "cosine", Figure: "min", Value: 0.5, Relation: gate.AtLeast, Limit: 0.9999, Worst: "t1", Detail: hostile}},
		Controls: []gate.Control{{Name: "shuffled_rows", Checks: passed}},
	}
	ranked := certify.ArtifactResult{
		Artifact: "ranker", Digest: embed.Digest, Format: "onnx", Verdict: certify.Passed, RuntimeConfig: []byte("{}"),
		Checks: []gate.Check{{Gate: "score", Figure: "max error", Value: 1e-6, Relation: gate.AtMost, Limit: 1e-5, Passed: true}},
		Pairs:  []certify.Scored{{ID: "q0d0", Query: hostile, Text: &text, Tokens: 9, Ours: 0.5, Reference: 0.5}, {ID: "q0d1", Query: "q", Tokens: 12, Ours: 0.1, Reference: 0.2}},
	}
	answered := certify.ArtifactResult{
		Artifact: "decoder", Digest: embed.Digest, Format: "gguf", Verdict: certify.Passed, RuntimeConfig: []byte("{}"),
		Checks: []gate.Check{{Gate: "greedy", Figure: "least leading tokens equal", Value: 32, Relation: gate.AtLeast, Limit: 32, Passed: true}},
		Answers: []certify.Answered{
			{ID: "p0", Prompt: hostile, Tokens: 4, Text: hostile, NGen: 9, Finish: protocol.FinishLength, Reference: "another", Equal: 3},
			{ID: "p1", Prompt: "prompt", Tokens: 4, Text: "yes", NGen: 1, Finish: protocol.FinishGrammar, Grammar: `root ::= "yes"`},
		},
	}
	one := func(name string, task suite.Task, runs ...certify.ArtifactResult) certify.SuiteResult {
		return certify.SuiteResult{Name: name, Title: "A title", Task: task, Digest: embed.Digest, Model: "a model", Inputs: 40, Tokens: 400, References: map[string]string{"torch": "2"}, Runs: runs}
	}
	return &certify.Result{
		Schema: certify.ResultSchema, Verdict: certify.Failed, Tool: "test", Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Seconds: 60,
		Machine: machine.Machine{OS: "linux", OSName: "debian", OSVersion: "12", Arch: "amd64", CPU: "a CPU", Cores: 2, ISA: "x86-64-v4+AVX512VNNI"},
		Worker:  certify.Worker{Name: "worker", Digest: embed.Digest, Engine: protocol.Engine{Name: "onnx", Version: "1", BuildFlags: []string{"a", "b"}}},
		Suites:  []certify.SuiteResult{one("embed", suite.Embed, embed, failed), one("rank", suite.Rerank, ranked), one("generate", suite.Generate, answered)},
	}
}

func rendered(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, sample()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// references are the attributes by which a page can ask for something that is
// not in it.
var references = []string{"src", "srcset", "href", "xlink:href", "action", "formaction", "data", "poster", "background", "ping"}

// The page asks for nothing, runs nothing, and every link in it leads to a place
// in it.
func TestThePageNeedsNothingButItself(t *testing.T) {
	src := rendered(t)
	ids, links := map[string]bool{}, []string{}
	styles := 0
	for z := html.NewTokenizer(bytes.NewReader(src)); ; {
		kind := z.Next()
		if kind == html.ErrorToken {
			if !errors.Is(z.Err(), io.EOF) {
				t.Fatal(z.Err())
			}
			break
		}
		token := z.Token()
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		if slices.Contains([]string{"script", "link", "iframe", "object", "embed", "base", "form", "img", "video", "audio"}, token.Data) {
			t.Errorf("the page has a %s", token)
		}
		if token.Data == "style" {
			styles++
		}
		for _, a := range token.Attr {
			switch {
			case a.Key == "id":
				ids[a.Val] = true
			case strings.HasPrefix(a.Key, "on"):
				t.Errorf("%s has a handler", token)
			case slices.Contains(references, a.Key) && token.Data == "a" && strings.HasPrefix(a.Val, "#"):
				links = append(links, a.Val[1:])
			case slices.Contains(references, a.Key):
				t.Errorf("%s refers to %q", token, a.Val)
			}
		}
	}
	for _, l := range links {
		if !ids[l] {
			t.Errorf("a link leads to #%s, which is nowhere", l)
		}
	}
	if len(links) != 4 || styles == 0 {
		t.Errorf("%d links to runs, %d styles", len(links), styles)
	}
	if found := regexp.MustCompile(`(?i)url\(|@import`).Find(src); found != nil {
		t.Errorf("a style asks for something: %s", found)
	}
}

// Each colour that the page uses is there for a light and for a dark one.
func TestThePageHasBothColourSchemes(t *testing.T) {
	src := string(rendered(t))
	light, rest, ok := strings.Cut(src, "@media (prefers-color-scheme: dark)")
	dark, _, closed := strings.Cut(rest, "* { box-sizing")
	if !ok || !closed {
		t.Fatal("no dark scheme")
	}
	colour := regexp.MustCompile(`(--[a-z0-9-]+): (#[0-9a-f]{6})`)
	of := func(s string) map[string]string {
		found := map[string]string{}
		for _, m := range colour.FindAllStringSubmatch(s, -1) {
			found[m[1]] = m[2]
		}
		return found
	}
	a, b := of(light), of(dark)
	for _, m := range regexp.MustCompile(`var\((--[a-z0-9-]+)\)`).FindAllStringSubmatch(src, -1) {
		if a[m[1]] == "" || b[m[1]] == "" || a[m[1]] == b[m[1]] {
			t.Errorf("%s is %q in light, %q in dark", m[1], a[m[1]], b[m[1]])
		}
	}
	if len(a) != len(b) || len(a) < 10 {
		t.Errorf("%d colours in light, %d in dark", len(a), len(b))
	}
}

func TestThePageShowsEveryTask(t *testing.T) {
	src := string(rendered(t))
	for _, want := range []string{
		"Agreement with people: lee", "<h3>Agreement with people</h3>", "Length against error", "<h3>Placement</h3>", "ios17.gather",
		"Pairs farthest from the reference", "Prompts and answers", "the reference: ", ">obeys<", ">not shown<", ">PASSED<", ">caught<",
	} {
		if !strings.Contains(src, want) {
			t.Errorf("the page does not hold %q", want)
		}
	}
}
