package transcript_test

import (
	"fmt"
	"strings"

	"github.com/synapse-module/workers/engines/fake"
	"github.com/synapse-module/workers/protocol"
)

// refusals show every code of ERR. After each the same connection serves a good
// request. The texts of msg are examples: they are for people, and vary.
var refusals = []*script{
	handshaken("err-artifact-invalid", "LOADs of a file that is not there, of one with another digest, of a format that this engine does not load, and of a file that is no model.").
		module(protocol.Load{ReqID: "1", ArtifactPath: "not-there.fake", ArtifactDigest: zeroDigest, Format: fake.Format}, "artifact_path").
		refuses(protocol.CodeArtifactInvalid, "stat not-there.fake: no such file or directory").
		module(protocol.Load{ReqID: "2", ArtifactPath: modelPath, ArtifactDigest: zeroDigest, Format: fake.Format}, "artifact_path").
		refuses(protocol.CodeArtifactInvalid, fmt.Sprintf("model.fake has the digest %s, the LOAD says %s: the file was changed or cut, or the digest is another file's", digest(modelText), zeroDigest)).
		module(protocol.Load{ReqID: "3", ArtifactPath: modelPath, ArtifactDigest: zeroDigest, Format: "unheard-of"}, "artifact_path").
		refuses(protocol.CodeArtifactInvalid, `format "unheard-of" is none that this engine loads (fake)`).
		asksLoadOf("junk.fake", "junk\n", "").
		refuses(protocol.CodeArtifactInvalid, `junk.fake does not begin with the line "synapse fake model"`).
		load(2, `{"dims":2}`).good().shutdown(),

	handshaken("err-config-invalid", "A runtime_config with an unknown member, a member of the wrong kind, one out of range, and one that is no object. The message names the member and what is allowed.").
		asksLoad(`{"threads":4}`).refuses(protocol.CodeConfigInvalid, "runtime_config.threads is unknown; this engine has dims, vocab_size, max_tokens and others").
		asksLoad(`{"dims":"2"}`).refuses(protocol.CodeConfigInvalid, `runtime_config.dims is "2"; allowed is an integer from 1 to 65536`).
		asksLoad(`{"dims":2.5}`).refuses(protocol.CodeConfigInvalid, `runtime_config.dims is 2.5; allowed is an integer from 1 to 65536`).
		asksLoad(`{"dims":0}`).refuses(protocol.CodeConfigInvalid, "runtime_config.dims is 0; allowed is an integer from 1 to 65536").
		asksLoad(`[2]`).refuses(protocol.CodeConfigInvalid, "runtime_config must be a JSON object").
		load(2, `{"dims":2}`).good().shutdown(),

	handshaken("err-oom", "A LOAD that needs more memory than there is. The worker says so instead of being killed for it.").
		asksLoad(`{"fault":"allocate","fault_bytes":1125899906842624,"fault_stage":"load"}`).
		refuses(protocol.CodeOOM, "the fake model's hoard needs about 1073741824 MiB, 6812 MiB are available on this machine or in its control group").
		load(2, `{"dims":2}`).good().shutdown(),

	handshaken("err-model-not-found", "Requests for a model that was never loaded and for one that was unloaded. The raw frames of refused requests are read.").
		load(2, `{"dims":2}`).load(2, `{"dims":2}`).
		batch("m9", "", false, []int32{5}).refuses(protocol.CodeModelNotFound, `no model "m9" is loaded here; LOAD gives a model_ref, UNLOAD ends it`).
		module(protocol.Unload{ReqID: "4", ModelRef: "m2"}).worker(protocol.Unloaded{ReqID: "4"}).
		module(protocol.Unload{ReqID: "5", ModelRef: "m2"}).refuses(protocol.CodeModelNotFound, `no model "m2" is loaded here; LOAD gives a model_ref, UNLOAD ends it`).
		module(protocol.Describe{ReqID: "6", ModelRef: "m2"}).refuses(protocol.CodeModelNotFound, `no model "m2" is loaded here; LOAD gives a model_ref, UNLOAD ends it`).
		good().shutdown(),

	handshaken("err-request-invalid", "Ids outside the vocabulary, empty and too long rows, a pooling that does not exist. Nothing is truncated and no id replaced.").
		load(2, `{"dims":2,"max_tokens":4,"vocab_size":100}`).
		batch("m1", "", false, []int32{5}, []int32{6, -1}).refuses(protocol.CodeRequestInvalid, "items[1]: token 1 has the id -1, this model's vocabulary is 0 to 99").
		batch("m1", "", false, []int32{100}).refuses(protocol.CodeRequestInvalid, "items[0]: token 0 has the id 100, this model's vocabulary is 0 to 99").
		batch("m1", "", false, []int32{2147483647}).refuses(protocol.CodeRequestInvalid, "items[0]: token 0 has the id 2147483647, this model's vocabulary is 0 to 99").
		batch("m1", "", false, []int32{5}, []int32{}).refuses(protocol.CodeRequestInvalid, "items[1] has n_tokens 0: a row of no tokens has no answer").
		batch("m1", "", false, []int32{1, 2, 3, 4, 5}).refuses(protocol.CodeRequestInvalid, "items[0] has 5 tokens, this model takes at most 4; nothing is truncated here").
		batch("m1", "median", false, []int32{5}).refuses(protocol.CodeRequestInvalid, `pooling "median" is none of "mean", "cls", "last"`).
		good().shutdown(),

	handshaken("err-request-raw-frame", "A raw frame that holds fewer ids than its header says, one that holds more, and one that is no whole number of ids. It has been read in each case.").
		load(2, `{"dims":2}`).
		module(protocol.EmbedBatch{ReqID: "2", ModelRef: "m1", Items: []protocol.Item{{NTokens: 2}}}).tokens(5).refuses(protocol.CodeRequestInvalid, "the raw frame holds 1 ids, the header's lengths up to items[0] ask for more").
		module(protocol.EmbedBatch{ReqID: "3", ModelRef: "m1", Items: []protocol.Item{{NTokens: 1}}}).tokens(5, 6).refuses(protocol.CodeRequestInvalid, "the raw frame holds 2 ids, the header's lengths sum to 1").
		module(protocol.EmbedBatch{ReqID: "4", ModelRef: "m1", Items: []protocol.Item{{NTokens: 1}}}).raw("module", []byte{5, 0, 0, 0, 0}).refuses(protocol.CodeRequestInvalid, "a raw frame of 5 bytes is not a whole number of 4-byte values").
		good().shutdown(),

	handshaken("err-request-malformed", "Malformed members of requests whose type is known: the answer is ERR, and the raw frame that belongs to the type has been read. Where no req_id could be read, it is null.").
		loose("module", `{"type":"EMBED_BATCH","req_id":1,"model_ref":"m1","items":[{"n_tokens":1}]}`).tokens(5).refuses(protocol.CodeRequestInvalid, `EMBED_BATCH: the member "normalize" is missing`).
		loose("module", `{"type":"EMBED_BATCH","req_id":2,"model_ref":"m1","Normalize":true,"items":[]}`).tokens(5).refuses(protocol.CodeRequestInvalid, `EMBED_BATCH: the member "normalize" is missing`).
		loose("module", `{"type":"EMBED_BATCH","req_id":3,"model_ref":"m1","normalize":true,"items":[{"n_tokens":1.0}]}`).tokens(5).refuses(protocol.CodeRequestInvalid, `EMBED_BATCH: the member "items[0].n_tokens" is 1.0, which does not fit`).
		loose("module", `{"type":"UNLOAD","req_id":4,"model_ref":null}`).refuses(protocol.CodeRequestInvalid, `UNLOAD: the member "model_ref" is missing`).
		loose("module", `{"type":"UNLOAD","req_id":5,"model_ref":"m1","model_ref":"m1"}`).refuses(protocol.CodeRequestInvalid, `UNLOAD: the member "model_ref" stands there twice`).
		loose("module", `{"type":"PING","req_id":6,"grease":[{"a":1,"a":1}]}`).refuses(protocol.CodeRequestInvalid, `PING: the member "grease[0].a" stands there twice`).
		loose("module", `{"type":"PING"}`).refusesNoID(protocol.CodeRequestInvalid, `PING: the member "req_id" is missing`).
		loose("module", `{"type":"PING","req_id":8,"req_id":8}`).refusesNoID(protocol.CodeRequestInvalid, `PING: the member "req_id" stands there twice`).
		loose("module", `{"type":"PING","req_id":[9]}`).refusesNoID(protocol.CodeRequestInvalid, `PING: the member "req_id": an id is a JSON array, wanted a number or a string`).
		loose("module", `{"type":"PING","req_id":"`+strings.Repeat("x", protocol.MaxIDBytes+1)+`"}`).refusesNoID(protocol.CodeRequestInvalid, `PING: the member "req_id": an id of 129 bytes is over the limit of 128`).
		pings("11").shutdown(),

	handshaken("err-unsupported", "A pooling that the model has not, a RERANK and a GENERATE that it cannot do, and a grammar that it does not enforce: refused, never something near it.").
		load(2, `{"dims":2,"generate":false,"pooling":"cls","poolings":["cls"],"rerank":false}`).load(2, `{"dims":2}`).
		batch("m1", "mean", false, []int32{5}).refuses(protocol.CodeUnsupported, `pooling "mean": this model has [cls]`).
		module(protocol.Rerank{ReqID: "4", ModelRef: "m1", QueryNTokens: 1, Candidates: []protocol.Candidate{{NTokens: 1}}}).tokens(5, 6).refuses(protocol.CodeUnsupported, "RERANK: fake has no ranking head").
		module(protocol.Generate{ReqID: "5", ModelRef: "m1", MaxTokens: 1}).tokens(5).refuses(protocol.CodeUnsupported, "GENERATE: fake is no generating model").
		module(protocol.Generate{ReqID: "6", ModelRef: "m2", MaxTokens: 1, Grammar: `root ::= "a"`}).tokens(5).refuses(protocol.CodeUnsupported, "GENERATE: this model enforces no grammar, and one is never ignored").
		good().shutdown(),

	small("err-response-too-large", "The answer would be 65540 bytes, the frame limit is 65536. It is said before any work is done.").
		load(16385, `{"dims":16385}`).load(2, `{"dims":2}`).
		batch("m1", "", false, []int32{5}).refuses(protocol.CodeResponseTooLarge, "1 rows of 16385 values are 65540 bytes, a frame takes 65536: send fewer rows").
		embeds("m2", "", false, 2, []int32{5}).
		shutdown(),

	handshaken("err-unknown-type", "Types that are no request of this version: a later version's, one in small letters, and an answer's, whose raw frame is read all the same.").
		loose("module", `{"type":"TRANSLATE","req_id":1}`).refuses(protocol.CodeUnknownType, `"TRANSLATE" is no request that this worker knows (protocol v1)`).
		loose("module", `{"type":"ping","req_id":2}`).refuses(protocol.CodeUnknownType, `"ping" is no request that this worker knows (protocol v1)`).
		module(protocol.Vectors{ReqID: "3", Dims: 1, N: 1}).tokens(0).refuses(protocol.CodeUnknownType, `"VECTORS" is no request that this worker knows (protocol v1)`).
		loose("module", `{"type":"TRANSLATE"}`).refusesNoID(protocol.CodeUnknownType, `"TRANSLATE" is no request that this worker knows (protocol v1)`).
		pings("5").shutdown(),

	handshaken("err-engine-failed", "The engine reports a failure. The worker is sound and serves on.").
		load(2, `{"dims":2}`).load(2, `{"dims":2,"fault":"error"}`).load(2, `{"dims":2,"fault":"nan"}`).
		batch("m2", "", false, []int32{5}).refuses(protocol.CodeEngineFailed, "the scripted failure of the fake engine").
		batch("m3", "", false, []int32{5}, []int32{6}).refuses(protocol.CodeEngineFailed, "the vector of items[1] holds a value that is not finite").
		good().shutdown(),
}

const zeroDigest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

// refusesNoID is an ERR for a request whose req_id could not be read.
func (s *script) refusesNoID(code protocol.Code, msg string) *script {
	return s.worker(protocol.Err{Code: code, Msg: msg}, "msg")
}
