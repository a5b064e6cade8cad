package transcript_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/synapse-module/workers/engines/fake"
	"github.com/synapse-module/workers/internal/transcript"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

const (
	nonce = "7369787465656e206279746573203a29" // package wiretest's, "sixteen bytes :)"

	// The model that transcripts load lies in the worker's working directory, so
	// that its path is the same on every machine.
	modelPath = "model.fake"
	modelText = fake.Magic + "\n"
)

// script builds a transcript.
type script struct {
	t     transcript.Transcript
	ids   uint64 // the number that is the last request's req_id
	loads int
}

func talk(name, about string) *script {
	return &script{t: transcript.Transcript{Name: name, About: about, Start: transcript.Start{Nonce: nonce}}}
}

// handshaken begins with an accepted worker.
func handshaken(name, about string) *script {
	return talk(name, about).hello().ack(protocol.DefaultMaxFrame)
}

// small is handshaken with the smallest frame limit.
func small(name, about string) *script { return talk(name, about).hello().ack(protocol.MinMaxFrame) }

func (s *script) add(step transcript.Step, b []byte) *script {
	step.Hex = hex.EncodeToString(b)
	s.t.Steps = append(s.t.Steps, step)
	return s
}

// frame is a payload behind its length.
func frame(payload []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(payload))), payload...)
}

func length(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }

func (s *script) control(from string, m protocol.Message, vary ...string) *script {
	payload, err := protocol.Marshal(m)
	if err != nil {
		panic(err)
	}
	return s.payload(transcript.Step{From: from, Vary: vary}, payload)
}

func (s *script) payload(step transcript.Step, payload []byte) *script {
	step.Frame, step.Message = transcript.Control, payload
	h, err := protocol.Parse(payload)
	if err != nil {
		panic(err)
	}
	if n, err := strconv.ParseUint(string(h.ReqID), 10, 64); err == nil {
		s.ids = n
	}
	return s.add(step, frame(payload))
}

func (s *script) worker(m protocol.Message, vary ...string) *script {
	return s.control(transcript.Worker, m, vary...)
}

func (s *script) module(m protocol.Message, vary ...string) *script {
	return s.control(transcript.Module, m, vary...)
}

// loose is a control frame that is sound, but not as this project writes it.
func (s *script) loose(from, payload string) *script {
	s.payload(transcript.Step{From: from, Loose: true}, []byte(payload))
	if jsontext.Value(payload).IsValid() {
		return s
	}
	// A member twice: what a JSON library would make of it is anybody's guess.
	s.t.Steps[len(s.t.Steps)-1].Message = nil
	return s.because("%s", payload)
}

func (s *script) tokens(v ...int32) *script {
	if v == nil {
		v = []int32{}
	}
	return s.add(transcript.Step{From: transcript.Module, Frame: transcript.Raw, I32: v}, frame(protocol.Bytes(v)))
}

func (s *script) floats(v ...float32) *script {
	if v == nil {
		v = []float32{}
	}
	return s.add(transcript.Step{From: transcript.Worker, Frame: transcript.Raw, F32: v}, frame(protocol.Bytes(v)))
}

// raw is a raw frame of bytes without a type.
func (s *script) raw(from string, b []byte) *script {
	return s.add(transcript.Step{From: from, Frame: transcript.Raw}, frame(b))
}

// bytes are no sound frame.
func (s *script) bytes(from string, b []byte) *script {
	return s.add(transcript.Step{From: from, Frame: transcript.Bytes}, b)
}

func (s *script) end(from string) *script {
	return s.add(transcript.Step{From: from, Frame: transcript.End}, nil)
}

// because explains the last step.
func (s *script) because(format string, args ...any) *script {
	s.t.Steps[len(s.t.Steps)-1].About = fmt.Sprintf(format, args...)
	return s
}

func (s *script) exits(status int, why string) *script {
	s.t.Expect = transcript.Outcome{By: transcript.Worker, Does: transcript.Exit, Status: status, Why: why}
	return s
}

func (s *script) kills(why string) *script {
	s.t.Expect = transcript.Outcome{By: transcript.Module, Does: transcript.Kill, Status: -1, Why: why}
	return s
}

// shutdown is the end of most conversations.
func (s *script) shutdown() *script {
	return s.module(protocol.Shutdown{}).exits(protocol.ExitOK, "SHUTDOWN has no answer: the worker frees its models and exits 0.")
}

func (s *script) hello() *script { return s.helloWith(func(*protocol.Hello) {}) }

func (s *script) helloWith(change func(*protocol.Hello)) *script {
	info := (&fake.Engine{}).Info()
	h := protocol.Hello{
		V: protocol.Version, Nonce: nonce, PID: 4321, MaxFrame: protocol.DefaultMaxFrame,
		Engine: protocol.Engine{Name: info.Name, Version: info.Version, BuildFlags: info.BuildFlags},
	}
	change(&h)
	return s.worker(h, "pid")
}

func (s *script) ack(maxFrame uint32) *script {
	return s.module(protocol.HelloAck{V: protocol.Version, Accept: true, MaxFrame: maxFrame})
}

// id is the next request's: 1, 2, 3 and so on.
func (s *script) id() protocol.ID { return protocol.NumberID(s.ids + 1) }

// last is the id of the request in hand.
func (s *script) last() protocol.ID { return protocol.NumberID(s.ids) }

// asksLoad sends a LOAD of the fake model with a runtime_config.
func (s *script) asksLoad(config string) *script {
	return s.asksLoadOf(modelPath, modelText, config)
}

func (s *script) asksLoadOf(path, text, config string) *script {
	if s.t.Start.Files == nil {
		s.t.Start.Files = map[string]string{}
	}
	s.t.Start.Files[path] = text
	m := protocol.Load{ReqID: s.id(), ArtifactPath: path, ArtifactDigest: digest(text), Format: fake.Format}
	if config != "" {
		m.RuntimeConfig = jsontext.Value(config)
	}
	return s.module(m, "artifact_path")
}

func digest(text string) protocol.Digest {
	d, err := protocol.FileDigest(strings.NewReader(text))
	if err != nil {
		panic(err) // a string does not fail to be read
	}
	return d
}

func (s *script) loaded(dims int) *script {
	s.loads++
	return s.worker(protocol.Loaded{ReqID: s.last(), ModelRef: fmt.Sprintf("m%d", s.loads), Dims: dims, ColdLoadMS: 3}, "cold_load_ms")
}

// load loads the fake model with dims values a vector.
func (s *script) load(dims int, config string) *script { return s.asksLoad(config).loaded(dims) }

func (s *script) refuses(code protocol.Code, msg string) *script {
	return s.worker(protocol.Err{ReqID: s.last(), Code: code, Msg: msg}, "msg")
}

// batch is an EMBED_BATCH with its rows.
func (s *script) batch(ref, pooling string, normalize bool, rows ...[]int32) *script {
	m := protocol.EmbedBatch{ReqID: s.id(), ModelRef: ref, Pooling: pooling, Normalize: normalize}
	var ids []int32
	for _, row := range rows {
		m.Items = append(m.Items, protocol.Item{NTokens: len(row)})
		ids = append(ids, row...)
	}
	return s.module(m).tokens(ids...)
}

// embeds is a batch and its answer.
func (s *script) embeds(ref, pooling string, normalize bool, dims int, rows ...[]int32) *script {
	var v []float32
	for _, row := range rows {
		v = append(v, vector(row, pooling, normalize, dims)...)
	}
	return s.batch(ref, pooling, normalize, rows...).worker(protocol.Vectors{ReqID: s.last(), Dims: dims, N: len(rows)}).floats(v...)
}

// good is a request that shows that the connection is in step: an embedding of
// the two-dimensional model m1.
func (s *script) good() *script { return s.embeds("m1", "", false, 2, []int32{5}) }

// vector is the fake engine's answer by its documentation.
func vector(row []int32, pooling string, normalize bool, dims int) []float32 {
	switch pooling {
	case "cls":
		row = row[:1]
	case "last":
		row = row[len(row)-1:]
	}
	v, squares := make([]float32, dims), 0.0
	for j := range v {
		sum := 0.0
		for _, id := range row {
			sum += fake.State(id, j)
		}
		v[j] = float32(sum / float64(len(row)))
		squares += float64(v[j]) * float64(v[j])
	}
	if normalize {
		scale := 1 / math.Sqrt(squares)
		for j, x := range v {
			v[j] = float32(float64(x) * scale)
		}
	}
	return v
}

// inForce is a runtime_config with the fake engine's defaults filled in.
func inForce(config string) jsontext.Value {
	c, err := workerkit.DecodeConfig((&fake.Engine{}).Info().Options, jsontext.Value(config))
	if err != nil {
		panic(err)
	}
	return c.JSON()
}

// text is the transcript as its file holds it: a line for each member of a step,
// so that a change is seen where it is.
func text(t transcript.Transcript) []byte {
	var b strings.Builder
	write := func(indent string, m transcript.Members, last string) {
		for i, member := range m {
			comma := ","
			if i == len(m)-1 {
				comma = last
			}
			fmt.Fprintf(&b, "%s%q: %s%s\n", indent, member.Name, spaced(member.Value), comma)
		}
	}
	b.WriteString("{\n")
	write("  ", members(struct {
		Name  string           `json:"name"`
		About string           `json:"about"`
		Start transcript.Start `json:"start"`
	}{t.Name, t.About, t.Start}), ",")
	b.WriteString("  \"steps\": [\n")
	for i, step := range t.Steps {
		b.WriteString("    {\n")
		write("      ", members(step), "")
		b.WriteString("    }")
		if i < len(t.Steps)-1 {
			b.WriteString(",")
		}
		b.WriteString("\n")
	}
	b.WriteString("  ],\n")
	write("  ", members(struct {
		Expect transcript.Outcome `json:"expect"`
	}{t.Expect}), "")
	b.WriteString("}\n")
	return []byte(b.String())
}

func members(v any) transcript.Members {
	b, err := json.Marshal(v, jsontext.PreserveRawStrings(true), json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	var m transcript.Members
	if err := json.Unmarshal(b, &m); err != nil {
		panic(err)
	}
	return m
}

func spaced(v jsontext.Value) jsontext.Value {
	if err := v.Format(jsontext.SpaceAfterColon(true), jsontext.SpaceAfterComma(true), jsontext.PreserveRawStrings(true)); err != nil {
		panic(err)
	}
	return v
}
