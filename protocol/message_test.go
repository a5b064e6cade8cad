package protocol_test

import (
	"reflect"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/synapse-module/workers/protocol"
)

func ptr(f float64) *float64 { return &f }

// samples are messages of every type, with the exact text that each is on the
// wire: once with every member, once with the optional ones absent.
var samples = []struct {
	message protocol.Message
	json    string
}{
	{
		protocol.Hello{V: 1, Nonce: "00ff", Engine: protocol.Engine{Name: "onnx", Version: "1.24.4", BuildFlags: []string{"cpu", "avx2"}}, PID: 4321, MaxFrame: 67108864},
		`{"type":"HELLO","v":1,"nonce":"00ff","engine":{"name":"onnx","version":"1.24.4","build_flags":["cpu","avx2"]},"pid":4321,"max_frame":67108864}`,
	},
	{
		protocol.Hello{V: 255, Engine: protocol.Engine{BuildFlags: []string{}}, MaxFrame: 0xFFFFFFFF},
		`{"type":"HELLO","v":255,"nonce":"","engine":{"name":"","version":"","build_flags":[]},"pid":0,"max_frame":4294967295}`,
	},
	{protocol.HelloAck{V: 1, Accept: true, MaxFrame: 65536}, `{"type":"HELLO_ACK","v":1,"accept":true,"max_frame":65536}`},
	{protocol.HelloAck{V: 1}, `{"type":"HELLO_ACK","v":1,"accept":false,"max_frame":0}`},
	{
		protocol.Load{ReqID: "1", ArtifactPath: "/models/é.onnx", ArtifactDigest: "sha256:00", Format: "onnx", RuntimeConfig: jsontext.Value(`{"threads":2,"names":["a\/b"]}`)},
		`{"type":"LOAD","req_id":1,"artifact_path":"/models/é.onnx","artifact_digest":"sha256:00","format":"onnx","runtime_config":{"threads":2,"names":["a\/b"]}}`,
	},
	{protocol.Load{ReqID: `"a"`}, `{"type":"LOAD","req_id":"a","artifact_path":"","artifact_digest":"","format":""}`},
	{protocol.Loaded{ReqID: "1", ModelRef: "m1", Dims: 384, ColdLoadMS: 12}, `{"type":"LOADED","req_id":1,"model_ref":"m1","dims":384,"cold_load_ms":12}`},
	{
		protocol.EmbedBatch{ReqID: "2", ModelRef: "m1", Pooling: "cls", Normalize: true, Items: []protocol.Item{{ID: "7", NTokens: 3}, {ID: `"row"`, NTokens: 1}, {NTokens: 2}}},
		`{"type":"EMBED_BATCH","req_id":2,"model_ref":"m1","pooling":"cls","normalize":true,"items":[{"id":7,"n_tokens":3},{"id":"row","n_tokens":1},{"n_tokens":2}]}`,
	},
	{protocol.EmbedBatch{ReqID: "2", ModelRef: "m1", Items: []protocol.Item{}}, `{"type":"EMBED_BATCH","req_id":2,"model_ref":"m1","normalize":false,"items":[]}`},
	{protocol.Vectors{ReqID: "2", Dims: 384, N: 3}, `{"type":"VECTORS","req_id":2,"dims":384,"n":3}`},
	{
		protocol.Rerank{ReqID: "3", ModelRef: "m2", QueryNTokens: 2, Candidates: []protocol.Candidate{{NTokens: 5}, {NTokens: 6}}},
		`{"type":"RERANK","req_id":3,"model_ref":"m2","query_n_tokens":2,"candidates":[{"n_tokens":5},{"n_tokens":6}]}`,
	},
	{protocol.Scores{ReqID: "3", N: 2}, `{"type":"SCORES","req_id":3,"n":2}`},
	{protocol.Generate{ReqID: "4", ModelRef: "m3", MaxTokens: 64, Grammar: "root ::= \"a\"\n"}, `{"type":"GENERATE","req_id":4,"model_ref":"m3","max_tokens":64,"grammar":"root ::= \"a\"\n"}`},
	{protocol.Generate{ReqID: "4", ModelRef: "m3", MaxTokens: 64}, `{"type":"GENERATE","req_id":4,"model_ref":"m3","max_tokens":64}`},
	{
		protocol.Text{ReqID: "4", Text: "<b>&\u2028\U0001F600\x00", NPrompt: 3, NGen: 5, FinishReason: protocol.FinishGrammar},
		"{\"type\":\"TEXT\",\"req_id\":4,\"text\":\"<b>&\u2028\U0001F600\\u0000\",\"n_prompt\":3,\"n_gen\":5,\"finish_reason\":\"grammar\"}",
	},
	{protocol.Unload{ReqID: "5", ModelRef: "m1"}, `{"type":"UNLOAD","req_id":5,"model_ref":"m1"}`},
	{protocol.Unloaded{ReqID: "5"}, `{"type":"UNLOADED","req_id":5}`},
	{protocol.Ping{ReqID: `"a\/\u00e9"`}, `{"type":"PING","req_id":"a\/\u00e9"}`},
	{protocol.Pong{ReqID: "5.50", RSSMB: 512, ModelsLoaded: 1, PlacementShare: ptr(0.875)}, `{"type":"PONG","req_id":5.50,"rss_mb":512,"models_loaded":1,"placement_share":0.875}`},
	{protocol.Pong{ReqID: "1e2", PlacementShare: ptr(0)}, `{"type":"PONG","req_id":1e2,"rss_mb":0,"models_loaded":0,"placement_share":0}`},
	{protocol.Pong{ReqID: "-0"}, `{"type":"PONG","req_id":-0,"rss_mb":0,"models_loaded":0}`},
	{protocol.Describe{ReqID: "6", ModelRef: "m1"}, `{"type":"DESCRIBE","req_id":6,"model_ref":"m1"}`},
	{
		protocol.Description{
			ReqID: "6", Engine: protocol.Engine{Name: "coreml", Version: "8", BuildFlags: []string{}}, Arch: "bert", Dims: 384, MaxTokens: 512, VocabSize: 30522,
			Pooling: []string{"mean", "cls"}, DefaultPooling: "mean", Rerank: true, Generate: true, Grammar: true, Config: jsontext.Value(`{"threads":1}`),
			Placement: &protocol.Placement{Share: 0.5, CostShare: ptr(0.25), Coverage: 1, NeuralEngine: 1, GPU: 2, CPU: 3, Unknown: 4, NoUsage: 5, ComputeUnits: "all", Function: "main", OS: "macOS 15.1", Chip: "M2", OffEngine: []string{"gather"}},
		},
		`{"type":"DESCRIPTION","req_id":6,"engine":{"name":"coreml","version":"8","build_flags":[]},"arch":"bert","dims":384,"max_tokens":512,"vocab_size":30522,"pooling":["mean","cls"],"default_pooling":"mean","rerank":true,"generate":true,"grammar":true,"config":{"threads":1},"placement":{"share":0.5,"cost_share":0.25,"coverage":1,"neural_engine":1,"gpu":2,"cpu":3,"unknown":4,"no_usage":5,"compute_units":"all","function":"main","os":"macOS 15.1","chip":"M2","off_engine":["gather"]}}`,
	},
	{
		protocol.Description{ReqID: "6", Engine: protocol.Engine{BuildFlags: []string{}}, Pooling: []string{}, Config: jsontext.Value(`{}`), Placement: &protocol.Placement{OffEngine: []string{}}},
		`{"type":"DESCRIPTION","req_id":6,"engine":{"name":"","version":"","build_flags":[]},"arch":"","dims":0,"max_tokens":0,"vocab_size":0,"pooling":[],"default_pooling":"","rerank":false,"generate":false,"grammar":false,"config":{},"placement":{"share":0,"coverage":0,"neural_engine":0,"gpu":0,"cpu":0,"unknown":0,"no_usage":0,"compute_units":"","os":"","chip":"","off_engine":[]}}`,
	},
	{protocol.Shutdown{}, `{"type":"SHUTDOWN"}`},
	{protocol.Err{ReqID: "7", Code: protocol.CodeOOM, Msg: "no memory"}, `{"type":"ERR","req_id":7,"code":"oom","msg":"no memory"}`},
	{protocol.Err{Code: "of_a_later_version", Msg: ""}, `{"type":"ERR","req_id":null,"code":"of_a_later_version","msg":""}`},
}

// types is every type of v1 with an empty message of it and its count of raw
// frames, as the specification has them.
var types = map[protocol.Type]struct {
	empty func() protocol.Message
	raw   int
}{
	"HELLO":       {func() protocol.Message { return new(protocol.Hello) }, 0},
	"HELLO_ACK":   {func() protocol.Message { return new(protocol.HelloAck) }, 0},
	"LOAD":        {func() protocol.Message { return new(protocol.Load) }, 0},
	"LOADED":      {func() protocol.Message { return new(protocol.Loaded) }, 0},
	"EMBED_BATCH": {func() protocol.Message { return new(protocol.EmbedBatch) }, 1},
	"VECTORS":     {func() protocol.Message { return new(protocol.Vectors) }, 1},
	"RERANK":      {func() protocol.Message { return new(protocol.Rerank) }, 1},
	"SCORES":      {func() protocol.Message { return new(protocol.Scores) }, 1},
	"GENERATE":    {func() protocol.Message { return new(protocol.Generate) }, 1},
	"TEXT":        {func() protocol.Message { return new(protocol.Text) }, 0},
	"UNLOAD":      {func() protocol.Message { return new(protocol.Unload) }, 0},
	"UNLOADED":    {func() protocol.Message { return new(protocol.Unloaded) }, 0},
	"PING":        {func() protocol.Message { return new(protocol.Ping) }, 0},
	"PONG":        {func() protocol.Message { return new(protocol.Pong) }, 0},
	"DESCRIBE":    {func() protocol.Message { return new(protocol.Describe) }, 0},
	"DESCRIPTION": {func() protocol.Message { return new(protocol.Description) }, 0},
	"SHUTDOWN":    {func() protocol.Message { return new(protocol.Shutdown) }, 0},
	"ERR":         {func() protocol.Message { return new(protocol.Err) }, 0},
}

// decode parses and decodes a payload into a new message of its type.
func decode(t *testing.T, payload string) (protocol.Message, error) {
	t.Helper()
	h, err := protocol.Parse([]byte(payload))
	if err != nil {
		t.Fatalf("%.100s: %v", payload, err)
	}
	m := types[h.Type].empty()
	return m, h.Decode(m)
}

// Every message is the text that the specification says, and comes back from it.
func TestEveryMessageRoundTrips(t *testing.T) {
	seen := map[protocol.Type]bool{}
	for _, s := range samples {
		seen[s.message.MessageType()] = true
		text, err := protocol.Marshal(s.message)
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != s.json {
			t.Errorf("%s is\n%s, want\n%s", s.message.MessageType(), text, s.json)
			continue
		}
		h, err := protocol.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if want := types[h.Type].raw; h.Type != s.message.MessageType() || !h.Known || h.RawFrames != want {
			t.Errorf("%s: the header is %+v", s.json, h)
		}
		m, err := decode(t, s.json)
		if err != nil {
			t.Errorf("%s: %v", s.json, err)
			continue
		}
		if got := reflect.ValueOf(m).Elem().Interface(); !reflect.DeepEqual(got, s.message) {
			t.Errorf("%s came back as\n%+v, want\n%+v", s.json, got, s.message)
		}
	}
	for typ := range types {
		if !seen[typ] {
			t.Errorf("no sample of %s", typ)
		}
	}
}

// A module in Go may leave its slices nil.
func TestNilSlicesAreEmptyArrays(t *testing.T) {
	for _, m := range []protocol.Message{
		protocol.Hello{},
		protocol.EmbedBatch{ReqID: "1"},
		protocol.Rerank{ReqID: "1"},
		protocol.Description{ReqID: "1", Config: jsontext.Value("{}"), Placement: new(protocol.Placement)},
	} {
		text, err := protocol.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if contains(text, "null") {
			t.Errorf("%s holds a null", text)
		}
	}
}
