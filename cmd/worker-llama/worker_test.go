package main_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/synapse-module/workers/internal/assetstest"
	"github.com/synapse-module/workers/internal/wiretest"
	"github.com/synapse-module/workers/protocol"
)

// oneThread is the runtime_config of all models here: llama.cpp's threads spin
// beside other packages' tests.
const oneThread = `{"threads":1}`

func spawn(t *testing.T) *wiretest.Peer {
	t.Helper()
	return wiretest.Spawn(t, wiretest.Build(t, "cmd/worker-llama"), "--engine-lib", assetstest.LibDir(t, "llama")).Accept(0)
}

// load makes the LOAD of a file with its true digest.
func load(t *testing.T, path string) protocol.Load {
	t.Helper()
	return wiretest.LoadOf(t, path, "gguf", oneThread)
}

// minilm returns a worker with MiniLM loaded.
func minilm(t *testing.T) (p *wiretest.Peer, ref string) {
	t.Helper()
	p = spawn(t)
	return p, p.Load(load(t, assetstest.Path(t, "minilm-gguf-f32")))
}

// Report 20: a row that is longer than llama.cpp's batch is an assert in it, as is a
// position over the model's. Report 22: so is an id that is none.
func TestReport20And22_Rows(t *testing.T) {
	p, ref := minilm(t)
	for _, n := range []int{1, 511, 512} {
		if v := p.Embed(ref, true, slices.Repeat([]int32{2088}, n)); len(v[0]) != 384 {
			t.Errorf("a row of %d has %d dims", n, len(v[0]))
		}
	}
	for name, c := range map[string]struct {
		row  []int32
		says string
	}{
		"minus one":    {[]int32{101, -1, 102}, "has the id -1"},
		"vocabulary":   {[]int32{101, 30522, 102}, "vocabulary is 0 to 30521"},
		"max":          {[]int32{math.MaxInt32}, "2147483647"},
		"no tokens":    {nil, "n_tokens 0"},
		"one too long": {slices.Repeat([]int32{2088}, 513), "513 tokens, this model takes at most 512"},
		"far too long": {slices.Repeat([]int32{2088}, 20000), "20000 tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			p.Send(wiretest.EmbedBatch(ref, "", true, wiretest.HelloWorld, c.row))
			if e := p.ExpectErr(protocol.CodeRequestInvalid); !strings.Contains(e.Msg, c.says) || !strings.Contains(e.Msg, "items[1]") {
				t.Errorf("msg is %q", e.Msg)
			}
			p.ExpectHelloWorld(ref)
		})
	}
	for _, n := range []int{1, 2, 15, 16, 17, 64} {
		for _, v := range p.Embed(ref, true, slices.Repeat([][]int32{{2088}}, n)...) {
			if len(v) != 384 {
				t.Errorf("%d rows of one token: %d dims", n, len(v))
			}
		}
	}
}

// Report 26: a file that is cut or spoiled is a typed error, under a digest that
// fits it; the worker lives.
func TestReport26_SpoiledFiles(t *testing.T) {
	p, ref := minilm(t)
	whole, err := os.ReadFile(assetstest.Path(t, "minilm-gguf-q8_0"))
	if err != nil {
		t.Fatal(err)
	}
	flipped := slices.Clone(whole)
	flipped[8] ^= 0xFF // the number of tensors
	for name, b := range map[string][]byte{
		"half": whole[:len(whole)/2], "less one": whole[:len(whole)-1], "empty": nil, "bit flips": flipped,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "model.gguf")
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			p.Send(load(t, path))
			p.ExpectErr(protocol.CodeArtifactInvalid)
			p.ExpectHelloWorld(ref)
		})
	}
}

// A model without a ranking head gets a number for every pair from llama.cpp, and
// one whose second segment was lost the wrong one.
func TestWhatRanksInNameOnlyIsRefused(t *testing.T) {
	p, ref := minilm(t)
	p.Send(protocol.Rerank{ReqID: "2", ModelRef: ref, QueryNTokens: 1, Candidates: []protocol.Candidate{{NTokens: 1}}}, protocol.Bytes([]int32{2088, 2088}))
	p.ExpectErr(protocol.CodeUnsupported)
	p.ExpectHelloWorld(ref)
	p.Send(load(t, assetstest.Path(t, "minilm-reranker-one-segment-gguf")))
	if e := p.ExpectErr(protocol.CodeArtifactInvalid); !strings.Contains(e.Msg, "two segments") {
		t.Errorf("msg is %q", e.Msg)
	}
	p.ExpectHelloWorld(ref)
}

// Report 49: a grammar that is nested without end is SIGSEGV in llama.cpp, one that
// no token continues an abort, and an empty rule is silently no grammar.
func TestReport49_Grammars(t *testing.T) {
	p := spawn(t)
	ref := p.Load(load(t, assetstest.Path(t, "smollm2-gguf")))
	ask := func(grammar string) {
		p.Send(protocol.Generate{ReqID: "2", ModelRef: ref, MaxTokens: 8, Grammar: grammar}, protocol.Bytes([]int32{504, 3575, 282, 4649, 314}))
	}
	for name, grammar := range map[string]string{
		"nested":         "root ::= " + strings.Repeat("(", 60_000) + `"a"` + strings.Repeat(")", 60_000),
		"left recursion": `root ::= root "a" | "a"`,
		"repetitions":    `root ::= (("a"{1000}){1000}){1000}`,
		"undefined rule": `root ::= missing`,
		"no root":        `start ::= "a"`,
		"no rule":        "\n",
	} {
		t.Run(name, func(t *testing.T) {
			ask(grammar)
			p.ExpectErr(protocol.CodeRequestInvalid)
			ask(`root ::= " Paris" | " Rome"`)
			var text protocol.Text
			if p.Expect(&text); text.Text != " Paris" || text.FinishReason != protocol.FinishGrammar {
				t.Errorf("afterwards %+v", text)
			}
		})
	}
}

// TestTheModulesDeathEndsAComputation: the abort callback, through to the process.
func TestTheModulesDeathEndsAComputation(t *testing.T) {
	p, ref := minilm(t)
	p.Send(wiretest.EmbedBatch(ref, "", true, slices.Repeat([][]int32{slices.Repeat([]int32{2088}, 512)}, 300)...)) // a minute
	time.Sleep(200 * time.Millisecond)
	p.Conn.Close()
	gone := time.Now()
	p.Exit()
	if took := time.Since(gone); took > 5*time.Second { // far over a busy machine's delays, far under the rest
		t.Errorf("the worker ended %v after its module", took)
	}
}
