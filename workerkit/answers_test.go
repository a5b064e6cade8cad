package workerkit_test

import (
	"errors"
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/synapse-module/workers/engines/fake"
	"github.com/synapse-module/workers/internal/wiretest"
	"github.com/synapse-module/workers/protocol"
)

// run runs worker-fake to its end and returns its status and output.
func run(t *testing.T, args ...string) (int, string) {
	t.Helper()
	out, err := exec.Command(wiretest.Build(t, "cmd/worker-fake"), args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		return exit.ExitCode(), string(out)
	}
	return 0, string(out)
}

func TestPoolings(t *testing.T) {
	p, ref := start(t, "")
	row := []int32{7, 8, 9}
	want := map[string]float64{
		"":     (fake.State(7, 3) + fake.State(8, 3) + fake.State(9, 3)) / 3,
		"mean": (fake.State(7, 3) + fake.State(8, 3) + fake.State(9, 3)) / 3,
		"cls":  fake.State(7, 3),
		"last": fake.State(9, 3),
	}
	for pooling, w := range want {
		p.Send(wiretest.EmbedBatch(ref, pooling, false, row))
		if got := p.Vectors()[0][3]; got != float32(w) {
			t.Errorf("pooling %q gives %v, want %v", pooling, got, float32(w))
		}
	}
}

// Report 16: the flag is obeyed, for every engine in one place.
func TestReport16_NormalizeIsObeyed(t *testing.T) {
	p, ref := start(t, "")
	rows := [][]int32{{1}, {2, 3}, {4, 5, 6}}
	norm := func(v []float32) float64 {
		var s float64
		for _, x := range v {
			s += float64(x) * float64(x)
		}
		return math.Sqrt(s)
	}
	plain, unit := p.Embed(ref, false, rows...), p.Embed(ref, true, rows...)
	for i := range rows {
		if n := norm(unit[i]); math.Abs(n-1) > 1e-6 {
			t.Errorf("row %d: norm %v with normalize", i, n)
		}
		if n := norm(plain[i]); math.Abs(n-1) < 1e-3 {
			t.Errorf("row %d: norm %v without normalize", i, n)
		}
	}
}

func TestNoItemsIsAnAnswerOfNothing(t *testing.T) {
	p, ref := start(t, "")
	if v := p.Embed(ref, true); len(v) != 0 {
		t.Fatalf("%d vectors", len(v))
	}
	p.Send(protocol.Rerank{ReqID: "1", ModelRef: ref, QueryNTokens: 1, Candidates: []protocol.Candidate{}}, protocol.Bytes([]int32{1}))
	var s protocol.Scores
	p.Expect(&s)
	if f := p.Floats(); s.N != 0 || len(f) != 0 {
		t.Fatalf("n %d, %d values", s.N, len(f))
	}
}

func TestRerankAndGenerate(t *testing.T) {
	p, ref := start(t, `{"max_tokens":6}`)
	p.Send(protocol.Rerank{ReqID: "1", ModelRef: ref, QueryNTokens: 2, Candidates: []protocol.Candidate{{NTokens: 2}, {NTokens: 1}, {NTokens: 1}}},
		protocol.Bytes([]int32{10, 11 /* query */, 10, 99, 11, 98}))
	var s protocol.Scores
	p.Expect(&s)
	if got := p.Floats(); !slices.Equal(got, []float32{0.5, 1, 0}) {
		t.Fatalf("scores %v", got)
	}
	for _, c := range []struct {
		prompt []int32
		most   int
		want   protocol.Text
	}{
		{[]int32{7, 8}, 3, protocol.Text{Text: "7 8 7", NPrompt: 2, NGen: 3, FinishReason: protocol.FinishLength}},
		{[]int32{7, 2}, 3, protocol.Text{Text: "7", NPrompt: 2, NGen: 1, FinishReason: protocol.FinishStop}},
		{[]int32{7, 8, 9, 10}, 99, protocol.Text{Text: "7 8", NPrompt: 4, NGen: 2, FinishReason: protocol.FinishLength}},
	} {
		p.Send(protocol.Generate{ReqID: "1", ModelRef: ref, MaxTokens: c.most}, protocol.Bytes(c.prompt))
		var got protocol.Text
		p.Expect(&got)
		c.want.ReqID = "1"
		if got != c.want {
			t.Errorf("got %+v, want %+v", got, c.want)
		}
	}
}

// Report 12: a vector that is not finite is an error that names its row, never a
// frame. Report 18: rows out must be rows in.
func TestReport12And18_SpoiledAnswers(t *testing.T) {
	for fault, says := range map[string]string{
		"nan":        "items[1] (id 1) holds a value that is not finite",
		"wrong_dims": "7 values for items[0] (id 0), this model has 8 dims",
		"fewer_rows": "1 vectors for 2 rows",
	} {
		t.Run(fault, func(t *testing.T) {
			p, ref := start(t, "")
			bad := p.Load(artifact(t, `{"fault":"`+fault+`"}`))
			p.Send(wiretest.EmbedBatch(bad, "", true, []int32{1}, []int32{2}))
			if e := p.ExpectErr(protocol.CodeEngineFailed); !strings.Contains(e.Msg, says) {
				t.Fatalf("msg is %q", e.Msg)
			}
			good(t, p, ref)
		})
	}
}

func TestResponseTooLargeIsSaidBeforeTheWork(t *testing.T) {
	p := spawn(t).Accept(protocol.MinMaxFrame)
	// A hang in the engine would show that it was called.
	ref := p.Load(artifact(t, `{"dims":16384,"fault":"hang","fault_after":1}`))
	if v := p.Embed(ref, false, []int32{1}); len(v[0]) != 16384 {
		t.Fatalf("%d dims", len(v[0]))
	}
	p.Send(wiretest.EmbedBatch(ref, "", false, []int32{1}, []int32{2}))
	if e := p.ExpectErr(protocol.CodeResponseTooLarge); !strings.Contains(e.Msg, "131072 bytes, a frame takes 65536") {
		t.Fatalf("msg is %q", e.Msg)
	}
	p.Send(protocol.Ping{ReqID: "1"})
	p.Expect(&protocol.Pong{})
}

func TestModelsComeAndGo(t *testing.T) {
	p := spawn(t).Accept(0)
	m := artifact(t, `{"placement_share":0.75}`)
	first := p.Load(m)
	second := p.Load(artifact(t, ""))
	pong := func() (pong protocol.Pong) {
		p.Send(protocol.Ping{ReqID: "1"})
		p.Expect(&pong)
		return pong
	}
	if g := pong(); g.ModelsLoaded != 2 || g.RSSMB <= 0 || g.PlacementShare == nil || *g.PlacementShare != 0.75 {
		t.Fatalf("PONG is %+v", g)
	}
	p.Send(protocol.Unload{ReqID: "1", ModelRef: first})
	p.Expect(&protocol.Unloaded{})
	if g := pong(); g.ModelsLoaded != 1 || g.PlacementShare != nil {
		t.Fatalf("PONG is %+v", g)
	}
	p.Send(protocol.Unload{ReqID: "1", ModelRef: first})
	p.ExpectErr(protocol.CodeModelNotFound)
	third := p.Load(m)
	if third == first || third == second {
		t.Fatalf("the ref %s was used twice", third)
	}
}

// Report 6: the maximum that is reported is the one that is enforced.
func TestReport06_DescribedMaximumIsEnforced(t *testing.T) {
	p, ref := start(t, `{"max_tokens":17,"poolings":["cls","last"],"pooling":"last"}`)
	p.Send(protocol.Describe{ReqID: "1", ModelRef: ref})
	var d protocol.Description
	p.Expect(&d)
	if d.MaxTokens != 17 || d.VocabSize != 1000 || d.Dims != 8 || d.DefaultPooling != "last" || !slices.Equal(d.Pooling, []string{"cls", "last"}) || !d.Rerank || !d.Generate || d.Grammar || d.Engine.Name != "fake" {
		t.Fatalf("DESCRIPTION is %+v", d)
	}
	if !strings.Contains(string(d.Config), `"max_tokens":17`) || !strings.Contains(string(d.Config), `"dims":8`) {
		t.Fatalf("config is %s", d.Config)
	}
	p.Embed(ref, false, make([]int32, d.MaxTokens))
	p.Send(wiretest.EmbedBatch(ref, "", false, make([]int32, d.MaxTokens+1)))
	p.ExpectErr(protocol.CodeRequestInvalid)
}
