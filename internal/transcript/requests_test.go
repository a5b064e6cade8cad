package transcript_test

import (
	"strings"

	"github.com/synapse-module/workers/internal/transcript"
	"github.com/synapse-module/workers/protocol"
)

// requests are sound requests of every type and their answers.
var requests = []*script{
	handshaken("load-embed-unload", "A model is loaded, embeds two batches and is unloaded.").
		load(4, `{"dims":4}`).
		embeds("m1", "", true, 4, []int32{7, 8, 9}, []int32{10}).
		embeds("m1", "mean", false, 4, []int32{999}).
		module(protocol.Unload{ReqID: "4", ModelRef: "m1"}).worker(protocol.Unloaded{ReqID: "4"}).
		shutdown(),

	handshaken("poolings", "The same row with each pooling, and with the model's own, which is cls here.").
		load(2, `{"dims":2,"pooling":"cls"}`).
		embeds("m1", "mean", false, 2, []int32{1, 2, 3}).
		embeds("m1", "last", false, 2, []int32{1, 2, 3}).
		embeds("m1", "cls", false, 2, []int32{1, 2, 3}).
		batch("m1", "", false, []int32{1, 2, 3}).worker(protocol.Vectors{ReqID: "5", Dims: 2, N: 1}).floats(vector([]int32{1, 2, 3}, "cls", false, 2)...).
		shutdown(),

	handshaken("zero-items", "A request of no items is legal. It has a raw frame of length 0, and so has its answer.").
		load(2, `{"dims":2}`).
		embeds("m1", "", true, 2).
		module(protocol.Rerank{ReqID: "3", ModelRef: "m1", QueryNTokens: 1}).tokens(5).worker(protocol.Scores{ReqID: "3", N: 0}).floats().
		shutdown(),

	handshaken("rerank", "Three candidates are scored: the raw frame is the query's ids and then each candidate's, and the scores come in the order of the candidates.").
		load(2, `{"dims":2}`).
		module(protocol.Rerank{ReqID: "2", ModelRef: "m1", QueryNTokens: 2, Candidates: []protocol.Candidate{{NTokens: 2}, {NTokens: 1}, {NTokens: 1}}}).
		tokens(10, 11, 10, 99, 11, 98).
		worker(protocol.Scores{ReqID: "2", N: 3}).floats(0.5, 1, 0).
		shutdown(),

	handshaken("generate", "A generation that reaches max_tokens, and one that ends by itself.").
		load(2, `{"dims":2}`).
		module(protocol.Generate{ReqID: "2", ModelRef: "m1", MaxTokens: 3}).tokens(7, 8).
		worker(protocol.Text{ReqID: "2", Text: "7 8 7", NPrompt: 2, NGen: 3, FinishReason: protocol.FinishLength}).
		module(protocol.Generate{ReqID: "3", ModelRef: "m1", MaxTokens: 64}).tokens(7, 2).
		worker(protocol.Text{ReqID: "3", Text: "7", NPrompt: 2, NGen: 1, FinishReason: protocol.FinishStop}).
		shutdown(),

	handshaken("ping-describe", "Vital signs before and after a model is loaded, and what the model is.").
		ping(protocol.Pong{ModelsLoaded: 0}).
		load(2, `{"dims":2,"placement_share":0.75}`).
		ping(protocol.Pong{ModelsLoaded: 1, PlacementShare: ptr(0.75)}).
		module(protocol.Describe{ReqID: "4", ModelRef: "m1"}).
		worker(protocol.Description{
			ReqID: "4", Engine: protocol.Engine{Name: "fake", Version: "1", BuildFlags: []string{"deterministic"}}, Arch: "fake",
			Dims: 2, MaxTokens: 512, VocabSize: 1000, Pooling: []string{"mean", "cls", "last"}, DefaultPooling: "mean",
			Rerank: true, Generate: true, Config: inForce(`{"dims":2,"placement_share":0.75}`),
			Placement: &protocol.Placement{Share: 0.75, Coverage: 1, ComputeUnits: "none", OS: "none", Chip: "none"},
		}).
		shutdown(),

	handshaken("two-models", "Two models at once. A model_ref is never used twice, not even after UNLOAD.").
		load(2, `{"dims":2}`).load(3, `{"dims":3}`).
		embeds("m2", "", false, 3, []int32{5}).
		module(protocol.Unload{ReqID: "4", ModelRef: "m1"}).worker(protocol.Unloaded{ReqID: "4"}).
		load(2, `{"dims":2}`).
		embeds("m3", "", false, 2, []int32{5}).
		shutdown(),

	handshaken("shutdown", "The module asks an idle worker to end.").shutdown(),

	handshaken("shutdown-behind-request", "SHUTDOWN is sent while a request is in hand. The request is finished and answered first.").
		load(2, `{"dims":2}`).
		batch("m1", "", false, []int32{5}).
		module(protocol.Shutdown{}).
		worker(protocol.Vectors{ReqID: "2", Dims: 2, N: 1}).floats(vector([]int32{5}, "", false, 2)...).
		exits(protocol.ExitOK, "The request in hand is finished, then the worker exits 0."),

	handshaken("early", "Two requests and SHUTDOWN are sent without waiting: that much a worker has room for. They are served in order.").
		module(protocol.Ping{ReqID: "1"}).module(protocol.Ping{ReqID: "2"}).module(protocol.Shutdown{}).
		pong("1").pong("2").
		exits(protocol.ExitOK, "What was sent before SHUTDOWN is finished, then the worker exits 0."),

	handshaken("req-ids", "A req_id is a JSON number or string of at most 128 bytes, told apart by its bytes and echoed as they are: numbers are not computed with, escapes are not resolved.").
		pings(`7`, `-0`, `1e2`, `5.50`, `18446744073709551616`, `""`, `"a\/\u00e9é"`, protocol.StringID(strings.Repeat("x", protocol.MaxIDBytes)), protocol.ID(strings.Repeat("9", protocol.MaxIDBytes))).
		shutdown(),

	handshaken("item-ids", "An item's id is the module's own label, in the same forms as a req_id. It comes back in messages of ERR only.").
		load(2, `{"dims":2}`).
		module(protocol.EmbedBatch{ReqID: "2", ModelRef: "m1", Items: []protocol.Item{{ID: "17", NTokens: 1}, {ID: `"row"`, NTokens: 2}}}).tokens(5, 6, 7).
		worker(protocol.Vectors{ReqID: "2", Dims: 2, N: 2}).floats(append(vector([]int32{5}, "", false, 2), vector([]int32{6, 7}, "", false, 2)...)...).
		module(protocol.EmbedBatch{ReqID: "3", ModelRef: "m1", Items: []protocol.Item{{ID: `"row"`, NTokens: 1}}}).tokens(-1).
		worker(protocol.Err{ReqID: "3", Code: protocol.CodeRequestInvalid, Msg: `items[0] (id "row"): token 0 has the id -1, this model's vocabulary is 0 to 999`}, "msg").
		shutdown(),

	handshaken("loose-forms", "Forms that JSON allows and a peer of another version may use: members in any order, white space, escapes, unknown members, null for an optional member.").
		loose(transcript.Module, `{"req_id":1,"type":"PING"}`).pong("1").
		loose(transcript.Module, `{"ty\u0070e":"P\u0049NG","req_id":2}`).pong("2").
		loose(transcript.Module, `{"type":"PING","req_id":3,"grease":{"type":["LOAD",null],"n":1e9},"Req_Id":4,"TYPE":"LOAD"}`).pong("3").
		load(2, `{"dims":2}`).
		loose(transcript.Module, `{"type":"EMBED_BATCH","req_id":5,"model_ref":"m1","pooling":null,"normalize":false,"items":[{"id":null,"n_tokens":1,"label":"x"}]}`).tokens(5).
		worker(protocol.Vectors{ReqID: "5", Dims: 2, N: 1}).floats(vector([]int32{5}, "", false, 2)...).
		shutdown(),

	handshaken("unknown-type-with-raw-frames", "A later version asks for what this worker does not know. raw_frames says how many raw frames follow, so that they can be skipped; without it there are none.").
		loose(transcript.Module, `{"type":"TRANSLATE","req_id":1,"model_ref":"m1","raw_frames":2}`).raw(transcript.Module, []byte("seven b")).raw(transcript.Module, nil).
		refuses(protocol.CodeUnknownType, `"TRANSLATE" is no request that this worker knows (protocol v1)`).
		loose(transcript.Module, `{"type":"TRANSLATE","req_id":2}`).
		refuses(protocol.CodeUnknownType, `"TRANSLATE" is no request that this worker knows (protocol v1)`).
		pings("3").
		shutdown(),
}

func ptr(f float64) *float64 { return &f }

// ping is a PING with the next id and its answer.
func (s *script) ping(p protocol.Pong) *script {
	p.ReqID, p.RSSMB = s.id(), 24
	return s.module(protocol.Ping{ReqID: p.ReqID}).worker(p, "rss_mb")
}

// pings are PINGs with the given ids and their answers.
func (s *script) pings(ids ...protocol.ID) *script {
	for _, id := range ids {
		s.module(protocol.Ping{ReqID: id}).pong(id)
	}
	return s
}

func (s *script) pong(id protocol.ID) *script {
	return s.worker(protocol.Pong{ReqID: id, RSSMB: 24}, "rss_mb")
}
