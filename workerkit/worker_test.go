package workerkit_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/synapse-module/workers/engines/fake"
	"github.com/synapse-module/workers/internal/wiretest"
	"github.com/synapse-module/workers/protocol"
)

// artifact writes a fake model and returns the LOAD for it.
func artifact(t *testing.T, config string) protocol.Load {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.fake")
	text := fake.Magic + "\nof " + t.Name()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	digest, err := protocol.FileDigest(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	m := protocol.Load{ReqID: protocol.NumberID(1), ArtifactPath: path, ArtifactDigest: digest, Format: fake.Format}
	if config != "" {
		m.RuntimeConfig = jsontext.Value(config)
	}
	return m
}

func spawn(t *testing.T, args ...string) *wiretest.Peer {
	t.Helper()
	return wiretest.Spawn(t, wiretest.Build(t, "cmd/worker-fake"), args...)
}

// start returns an accepted worker with one fake model.
func start(t *testing.T, config string) (p *wiretest.Peer, ref string) {
	t.Helper()
	p = spawn(t).Accept(0)
	return p, p.Load(artifact(t, config))
}

// good proves that the connection is in step and the model serves.
func good(t *testing.T, p *wiretest.Peer, ref string) {
	t.Helper()
	v := p.Embed(ref, false, []int32{5})
	if got, want := v[0][0], float32(fake.State(5, 0)); got != want {
		t.Fatalf("after the refusal a good request gives %v, want %v", got, want)
	}
}

func TestHelloSaysWhoTheWorkerIs(t *testing.T) {
	p := spawn(t, "--max-frame", "131072")
	h := p.Hello
	if h.V != 1 || h.Nonce != p.Nonce || h.Engine.Name != "fake" || h.Engine.Version == "" || h.PID <= 0 || h.MaxFrame != 131072 {
		t.Fatalf("HELLO is %+v", h)
	}
	p.Accept(0).Send(protocol.Shutdown{})
	if got := p.Exit(); got != protocol.ExitOK {
		t.Fatalf("exit status %d after SHUTDOWN", got)
	}
}

func TestHandshakeEnds(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*wiretest.Peer)
		want int
	}{
		"accept false":    {func(p *wiretest.Peer) { p.Send(protocol.HelloAck{V: 1}) }, protocol.ExitRefused},
		"close":           {func(p *wiretest.Peer) { p.Conn.Close() }, protocol.ExitRefused},
		"another version": {func(p *wiretest.Peer) { p.Send(protocol.HelloAck{V: 2, Accept: true, MaxFrame: 1 << 20}) }, protocol.ExitRefused},
		"max_frame over the offer": {func(p *wiretest.Peer) {
			p.Send(protocol.HelloAck{V: 1, Accept: true, MaxFrame: protocol.DefaultMaxFrame + 1})
		}, protocol.ExitViolation},
		"max_frame under the least": {func(p *wiretest.Peer) {
			p.Send(protocol.HelloAck{V: 1, Accept: true, MaxFrame: protocol.MinMaxFrame - 1})
		}, protocol.ExitViolation},
		"a request first": {func(p *wiretest.Peer) { p.Send(protocol.Ping{ReqID: "1"}) }, protocol.ExitViolation},
		"not JSON":        {func(p *wiretest.Peer) { p.SendBytes([]byte{4, 0, 0, 0, 'h', 'e', 'l', 'o'}) }, protocol.ExitViolation},
		"frame over 64 KiB": {func(p *wiretest.Peer) {
			p.SendBytes(binary.LittleEndian.AppendUint32(nil, protocol.HandshakeMaxFrame+1))
		}, protocol.ExitViolation},
		"half a frame": {func(p *wiretest.Peer) {
			p.SendBytes([]byte{9, 0, 0, 0, '{'})
			p.Conn.Close()
		}, protocol.ExitViolation},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := spawn(t)
			c.do(p)
			if got := p.Exit(); got != c.want {
				t.Fatalf("exit status %d, want %d", got, c.want)
			}
			if !strings.Contains(p.Stderr.String(), `"level":"ERROR"`) {
				t.Fatal("the worker did not say why")
			}
		})
	}
}

// Every row of the ERR table, each followed by a good request on the same
// connection.
func TestErrTable(t *testing.T) {
	p, ref := start(t, `{"vocab_size":100,"max_tokens":8}`)
	encoder := p.Load(artifact(t, `{"rerank":false,"generate":false}`))
	noPooling := p.Load(artifact(t, `{"poolings":["cls"],"pooling":"cls"}`))
	failing := p.Load(artifact(t, `{"fault":"error","fault_stage":"embed"}`))
	embed := func(rows ...[]int32) func() { return func() { p.Send(wiretest.EmbedBatch(ref, "", false, rows...)) } }
	load := func(change func(*protocol.Load)) func() {
		return func() {
			m := artifact(t, "")
			change(&m)
			p.Send(m)
		}
	}
	raw := func(json string, raws ...[]byte) func() {
		return func() {
			b := binary.LittleEndian.AppendUint32(nil, uint32(len(json)))
			b = append(b, json...)
			for _, r := range raws {
				b = append(binary.LittleEndian.AppendUint32(b, uint32(len(r))), r...)
			}
			p.SendBytes(b)
		}
	}
	dir := t.TempDir()
	for name, c := range map[string]struct {
		send func()
		code protocol.Code
		says string
	}{
		"artifact missing":           {load(func(m *protocol.Load) { m.ArtifactPath += "-not" }), protocol.CodeArtifactInvalid, "no such file"},
		"artifact digest":            {load(func(m *protocol.Load) { m.ArtifactDigest = protocol.Digest("sha256:" + strings.Repeat("0", 64)) }), protocol.CodeArtifactInvalid, "has the digest sha256:"},
		"artifact a directory":       {load(func(m *protocol.Load) { m.ArtifactPath = dir }), protocol.CodeArtifactInvalid, "is a directory"},
		"artifact no directory":      {load(func(m *protocol.Load) { m.ArtifactDigest = protocol.Digest("sha256-tree:" + m.ArtifactDigest.Hex()) }), protocol.CodeArtifactInvalid, "is no directory"},
		"artifact a device":          {load(func(m *protocol.Load) { m.ArtifactPath = os.DevNull }), protocol.CodeArtifactInvalid, "neither a file nor a directory"},
		"artifact format":            {load(func(m *protocol.Load) { m.Format = "gguf" }), protocol.CodeArtifactInvalid, `"gguf"`},
		"artifact refused by engine": {load(func(m *protocol.Load) { *m = junk(t) }), protocol.CodeArtifactInvalid, "does not begin with"},
		"digest malformed":           {load(func(m *protocol.Load) { m.ArtifactDigest = "sha256:xyz" }), protocol.CodeRequestInvalid, "hex digits"},
		"config unknown member":      {load(func(m *protocol.Load) { m.RuntimeConfig = jsontext.Value(`{"Dims":4}`) }), protocol.CodeConfigInvalid, "runtime_config.Dims is unknown"},
		"config wrong kind":          {load(func(m *protocol.Load) { m.RuntimeConfig = jsontext.Value(`{"dims":"4"}`) }), protocol.CodeConfigInvalid, `runtime_config.dims is "4"; allowed is an integer from 1 to 65536`},
		"config out of range":        {load(func(m *protocol.Load) { m.RuntimeConfig = jsontext.Value(`{"dims":0}`) }), protocol.CodeConfigInvalid, "allowed is an integer from 1"},
		"config not an object":       {load(func(m *protocol.Load) { m.RuntimeConfig = jsontext.Value(`[]`) }), protocol.CodeConfigInvalid, "JSON object"},
		"oom": {load(func(m *protocol.Load) {
			m.RuntimeConfig = jsontext.Value(`{"fault":"allocate","fault_stage":"load","fault_bytes":1125899906842624}`)
		}), protocol.CodeOOM, "MiB are available"},
		"model not found":        {func() { p.Send(wiretest.EmbedBatch("m99", "", false, []int32{1})) }, protocol.CodeModelNotFound, `"m99"`},
		"id negative":            {embed([]int32{1}, []int32{1, -1}), protocol.CodeRequestInvalid, `items[1] (id 1): token 1 has the id -1`},
		"id vocab":               {embed([]int32{100}), protocol.CodeRequestInvalid, "vocabulary is 0 to 99"},
		"id max":                 {embed([]int32{math.MaxInt32}), protocol.CodeRequestInvalid, "2147483647"},
		"row empty":              {embed([]int32{1}, []int32{}), protocol.CodeRequestInvalid, "items[1] (id 1) has n_tokens 0"},
		"row too long":           {embed(make([]int32, 9)), protocol.CodeRequestInvalid, "has 9 tokens, this model takes at most 8"},
		"raw frame short":        {raw(`{"type":"EMBED_BATCH","req_id":1,"model_ref":"`+ref+`","normalize":false,"items":[{"n_tokens":2}]}`, make([]byte, 4)), protocol.CodeRequestInvalid, "holds 1 ids"},
		"raw frame long":         {raw(`{"type":"EMBED_BATCH","req_id":1,"model_ref":"`+ref+`","normalize":false,"items":[{"n_tokens":1}]}`, make([]byte, 8)), protocol.CodeRequestInvalid, "holds 2 ids"},
		"raw frame odd":          {raw(`{"type":"EMBED_BATCH","req_id":1,"model_ref":"`+ref+`","normalize":false,"items":[{"n_tokens":1}]}`, make([]byte, 5)), protocol.CodeRequestInvalid, "5 bytes"},
		"lengths overflow":       {raw(`{"type":"EMBED_BATCH","req_id":1,"model_ref":"`+ref+`","normalize":false,"items":[{"n_tokens":9223372036854775807},{"n_tokens":2}]}`, make([]byte, 4)), protocol.CodeRequestInvalid, "9223372036854775807 tokens"},
		"member missing":         {raw(`{"type":"EMBED_BATCH","req_id":1,"model_ref":"`+ref+`","items":[]}`, nil), protocol.CodeRequestInvalid, `"normalize" is missing`},
		"member twice":           {raw(`{"type":"PING","req_id":1,"req_id":1}`), protocol.CodeRequestInvalid, "twice"},
		"member of another case": {raw(`{"type":"PING","REQ_ID":1}`), protocol.CodeRequestInvalid, `"req_id" is missing`},
		"req_id too long":        {raw(`{"type":"PING","req_id":"` + strings.Repeat("x", 129) + `"}`), protocol.CodeRequestInvalid, "129 bytes"},
		"pooling unknown":        {func() { p.Send(wiretest.EmbedBatch(ref, "median", false, []int32{1})) }, protocol.CodeRequestInvalid, `"median"`},
		"pooling not there":      {func() { p.Send(wiretest.EmbedBatch(noPooling, "mean", false, []int32{1})) }, protocol.CodeUnsupported, "[cls]"},
		"rerank without a head": {func() {
			p.Send(protocol.Rerank{ReqID: "1", ModelRef: encoder, QueryNTokens: 1, Candidates: []protocol.Candidate{}}, protocol.Bytes([]int32{1}))
		}, protocol.CodeUnsupported, "ranking head"},
		"generate on an encoder": {func() {
			p.Send(protocol.Generate{ReqID: "1", ModelRef: encoder, MaxTokens: 1}, protocol.Bytes([]int32{1}))
		}, protocol.CodeUnsupported, "no generating model"},
		"grammar not enforced": {func() {
			p.Send(protocol.Generate{ReqID: "1", ModelRef: ref, MaxTokens: 1, Grammar: "root ::= \"a\""}, protocol.Bytes([]int32{1}))
		}, protocol.CodeUnsupported, "never ignored"},
		"max_tokens 0": {func() {
			p.Send(protocol.Generate{ReqID: "1", ModelRef: ref}, protocol.Bytes([]int32{1}))
		}, protocol.CodeRequestInvalid, "max_tokens is 0"},
		"prompt empty": {func() {
			p.Send(protocol.Generate{ReqID: "1", ModelRef: ref, MaxTokens: 1}, nil)
		}, protocol.CodeRequestInvalid, "the prompt has n_tokens 0"},
		"candidate empty": {func() {
			p.Send(protocol.Rerank{ReqID: "1", ModelRef: ref, QueryNTokens: 1, Candidates: []protocol.Candidate{{NTokens: 0}}}, protocol.Bytes([]int32{1}))
		}, protocol.CodeRequestInvalid, "candidates[0]"},
		"unknown type":        {raw(`{"type":"TRANSLATE","req_id":1}`), protocol.CodeUnknownType, "TRANSLATE"},
		"unknown, raw frames": {raw(`{"type":"TRANSLATE","req_id":1,"raw_frames":2}`, make([]byte, 7), nil), protocol.CodeUnknownType, "TRANSLATE"},
		"an answer's type":    {raw(`{"type":"VECTORS","req_id":1,"dims":1,"n":1}`, make([]byte, 4)), protocol.CodeUnknownType, "VECTORS"},
		"engine failed":       {func() { p.Send(wiretest.EmbedBatch(failing, "", false, []int32{1})) }, protocol.CodeEngineFailed, "scripted failure"},
	} {
		t.Run(name, func(t *testing.T) {
			c.send()
			if e := p.ExpectErr(c.code); !strings.Contains(e.Msg, c.says) {
				t.Errorf("msg is %q, wanted it to say %q", e.Msg, c.says)
			}
			good(t, p, ref)
		})
	}
}

func junk(t *testing.T) protocol.Load {
	t.Helper()
	m := artifact(t, "")
	if err := os.WriteFile(m.ArtifactPath, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := protocol.FileDigest(strings.NewReader("junk"))
	if err != nil {
		t.Fatal(err)
	}
	m.ArtifactDigest = d
	return m
}

func TestReqIDIsEchoedByteForByte(t *testing.T) {
	p := spawn(t).Accept(0)
	for _, id := range []string{`7`, `-0.50e+2`, `"a\/\u00e9é"`, `"` + strings.Repeat("x", 128) + `"`, strings.Repeat("9", 128)} {
		frame := `{"req_id":` + id + `,"grease":{"type":[1,null]},"type":"PING"}`
		p.SendBytes(append(binary.LittleEndian.AppendUint32(nil, uint32(len(frame))), frame...))
		var pong protocol.Pong
		p.Expect(&pong)
		if string(pong.ReqID) != id {
			t.Errorf("req_id %s came back as %s", id, pong.ReqID)
		}
	}
}
