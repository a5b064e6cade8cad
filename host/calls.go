package host

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/synapse-module/workers/protocol"
)

// trustedAnswer is the largest tensor for which memory is taken before its bytes
// have arrived: a common batch then costs one allocation. A larger one grows with
// what arrives.
const trustedAnswer = 1 << 20

// The sizes of one value of a vector and of one token id on the wire.
const (
	f32Bytes = 4
	i32Bytes = 4
)

// LoadRequest asks for a model.
type LoadRequest struct {
	Path   string // the artifact; a relative path is taken from the module's working directory
	Digest protocol.Digest
	Format string // "gguf", "onnx", "mlpackage", "mlmodelc", with "+zstd" or "+tar.zst" where compressed
	Config any    // marshalled to the JSON object runtime_config; nil for the engine's defaults
}

// Loaded is a model that is ready.
type Loaded struct {
	Ref      string        // names the model in requests to this worker
	Dims     int           // length of an embedding; 0 where the model gives none
	ColdLoad time.Duration // how long the worker took
}

// EmbedRequest asks for one vector a row.
type EmbedRequest struct {
	Model     string    // Loaded.Ref
	Pooling   string    // "mean", "cls", "last"; empty for the model's own
	Normalize bool      // scale each vector to Euclidean length 1
	Rows      [][]int32 // token ids; read only until the call returns
}

// Vectors holds N vectors of Dims values, row after row, in the order of the
// request's rows.
type Vectors struct {
	N, Dims int
	Data    []float32 // N×Dims, the caller's own
}

// Row is vector i, a view of Data.
func (v Vectors) Row(i int) []float32 { return v.Data[i*v.Dims : (i+1)*v.Dims : (i+1)*v.Dims] }

// RerankRequest asks for one score a candidate.
type RerankRequest struct {
	Model      string // Loaded.Ref
	Query      []int32
	Candidates [][]int32 // without the pair's special tokens
}

// GenerateRequest asks for a greedy continuation.
type GenerateRequest struct {
	Model     string // Loaded.Ref
	Prompt    []int32
	MaxTokens int
	Grammar   string // GBNF; empty for none
}

// Text is a generation.
type Text struct {
	Text    string
	NPrompt int // tokens of the prompt
	NGen    int // tokens generated
	Finish  protocol.FinishReason
}

// Pong is a worker's vital signs.
type Pong struct {
	RSSMB          int64 // resident memory, MiB
	ModelsLoaded   int
	PlacementShare *float64 // 0..1; nil where it does not apply or is not known
}

// All requests share their errors: a [*protocol.Error] is the worker's refusal,
// after which it serves on; an [*EngineCrashed], a [*RequestCanceled] and a
// [*WorkerGone] are as the package's documentation says; a
// [*protocol.OversizeError] says that the request does not fit one frame
// ([Worker.MaxFrame]), of which nothing was sent.

// Load loads a model. Its errors are those of every request, a [*NotAdmitted] where
// Spec.Admit refuses, and a plain error where Config does not marshal to JSON or
// Path cannot be made absolute.
func (w *Worker) Load(ctx context.Context, q LoadRequest) (Loaded, error) {
	path, err := filepath.Abs(q.Path)
	if err != nil {
		return Loaded{}, fmt.Errorf("host: LoadRequest.Path: %w", err)
	}
	config, err := configJSON(q.Config)
	if err != nil {
		return Loaded{}, err
	}
	if err := w.admitted(ctx, q, config); err != nil {
		return Loaded{}, err
	}
	m := model{digest: string(q.Digest), config: string(config)}
	msg := &protocol.Load{ArtifactPath: path, ArtifactDigest: q.Digest, Format: q.Format, RuntimeConfig: config}
	var got protocol.Loaded
	c := w.newCall(ctx, StageLoad, m, &msg.ReqID)
	c.answer = func(h protocol.Header, _ *protocol.FrameReader) error {
		if err := h.Decode(&got); err != nil {
			return violates(err)
		}
		if got.ModelRef == "" || got.Dims < 0 || got.Dims > protocol.MaxMaxFrame/f32Bytes || got.ColdLoadMS < 0 {
			return protocol.Violation("LOADED has model_ref %q, dims %d, cold_load_ms %d", got.ModelRef, got.Dims, got.ColdLoadMS)
		}
		m.dims = got.Dims
		return w.models.add(got.ModelRef, m)
	}
	if err := w.do(c, msg, false, nil); err != nil {
		return Loaded{}, err
	}
	return Loaded{Ref: got.ModelRef, Dims: got.Dims, ColdLoad: time.Duration(got.ColdLoadMS) * time.Millisecond}, nil
}

// admitted asks Spec.Admit.
func (w *Worker) admitted(ctx context.Context, q LoadRequest, config jsontext.Value) error {
	if w.spec.Admit == nil {
		return nil
	}
	err := w.spec.Admit(ctx, Admission{
		Worker: w.spec.Path, Args: w.spec.Args, Engine: w.hello.Engine,
		Digest: q.Digest, Format: q.Format, Config: config,
	})
	if err != nil {
		return &NotAdmitted{Worker: w.spec.ID, Model: string(q.Digest), Err: err}
	}
	return nil
}

// configJSON is the runtime_config of v in canonical form, nil for nil: equal
// configs are equal bytes, so that crashes can be counted by config.
func configJSON(v any) (jsontext.Value, error) {
	if v == nil {
		return nil, nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("host: LoadRequest.Config does not marshal to JSON: %w", err)
	}
	out := jsontext.Value(raw)
	// Numbers stay as they were written: in canonical form they would be rounded
	// to what float64 holds.
	if err := out.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil {
		return nil, fmt.Errorf("host: LoadRequest.Config does not marshal to sound JSON: %w", err)
	}
	if out.Kind() == jsontext.KindNull {
		return nil, nil
	}
	return out, nil
}

// Embed returns one vector a row. The ids are sent from the rows' own memory.
// Its errors are those of every request.
func (w *Worker) Embed(ctx context.Context, q EmbedRequest) (Vectors, error) {
	m := w.models.get(q.Model)
	msg := &protocol.EmbedBatch{ModelRef: q.Model, Pooling: q.Pooling, Normalize: q.Normalize, Items: make([]protocol.Item, len(q.Rows))}
	raw := make([][]byte, len(q.Rows))
	for i, row := range q.Rows {
		msg.Items[i].NTokens = len(row)
		raw[i] = protocol.Bytes(row)
	}
	var out Vectors
	c := w.newCall(ctx, StageEmbed, m, &msg.ReqID)
	c.answer = func(h protocol.Header, r *protocol.FrameReader) error {
		var v protocol.Vectors
		if err := h.Decode(&v); err != nil {
			return violates(err)
		}
		if v.N != len(q.Rows) || v.Dims != m.dims {
			return protocol.Violation("VECTORS has n %d and dims %d, due are %d and %d", v.N, v.Dims, len(q.Rows), m.dims)
		}
		data, err := readFloats(r, v.N*v.Dims)
		out = Vectors{N: v.N, Dims: v.Dims, Data: data}
		return err
	}
	if err := w.do(c, msg, true, raw); err != nil {
		return Vectors{}, err
	}
	return out, nil
}

// Rerank returns one score a candidate, in their order. Its errors are those of
// every request.
func (w *Worker) Rerank(ctx context.Context, q RerankRequest) ([]float32, error) {
	msg := &protocol.Rerank{ModelRef: q.Model, QueryNTokens: len(q.Query), Candidates: make([]protocol.Candidate, len(q.Candidates))}
	raw := make([][]byte, 0, 1+len(q.Candidates))
	raw = append(raw, protocol.Bytes(q.Query))
	for i, row := range q.Candidates {
		msg.Candidates[i].NTokens = len(row)
		raw = append(raw, protocol.Bytes(row))
	}
	var scores []float32
	c := w.newCall(ctx, StageRerank, w.models.get(q.Model), &msg.ReqID)
	c.answer = func(h protocol.Header, r *protocol.FrameReader) (err error) {
		var s protocol.Scores
		if err := h.Decode(&s); err != nil {
			return violates(err)
		}
		if s.N != len(q.Candidates) {
			return protocol.Violation("SCORES has n %d, due is %d", s.N, len(q.Candidates))
		}
		scores, err = readFloats(r, s.N)
		return err
	}
	if err := w.do(c, msg, true, raw); err != nil {
		return nil, err
	}
	return scores, nil
}

// readFloats reads the raw frame of n f32 into memory of the caller's own.
func readFloats(r *protocol.FrameReader, n int) ([]float32, error) {
	want := uint64(n) * f32Bytes
	var buf []byte
	if want <= trustedAnswer {
		buf = make([]byte, want)
	}
	raw, err := r.ReadRawExact(buf, want)
	if err != nil {
		return nil, err
	}
	return protocol.View[float32](raw)
}

// Generate continues a prompt. Its errors are those of every request.
func (w *Worker) Generate(ctx context.Context, q GenerateRequest) (Text, error) {
	msg := &protocol.Generate{ModelRef: q.Model, MaxTokens: q.MaxTokens, Grammar: q.Grammar}
	var t protocol.Text
	c := w.newCall(ctx, StageGenerate, w.models.get(q.Model), &msg.ReqID)
	c.answer = func(h protocol.Header, _ *protocol.FrameReader) error {
		if err := h.Decode(&t); err != nil {
			return violates(err)
		}
		switch t.FinishReason {
		case protocol.FinishStop, protocol.FinishLength, protocol.FinishGrammar:
		default:
			return protocol.Violation("TEXT has finish_reason %.32q", t.FinishReason)
		}
		if t.NPrompt < 0 || t.NGen < 0 || t.NGen > q.MaxTokens {
			return protocol.Violation("TEXT has n_prompt %d and n_gen %d, asked for were at most %d", t.NPrompt, t.NGen, q.MaxTokens)
		}
		return nil
	}
	if err := w.do(c, msg, true, [][]byte{protocol.Bytes(q.Prompt)}); err != nil {
		return Text{}, err
	}
	return Text{Text: t.Text, NPrompt: t.NPrompt, NGen: t.NGen, Finish: t.FinishReason}, nil
}

// Unload frees a model. Its errors are those of every request.
func (w *Worker) Unload(ctx context.Context, ref string) error {
	msg := &protocol.Unload{ModelRef: ref}
	c := w.newCall(ctx, StageUnload, w.models.get(ref), &msg.ReqID)
	c.answer = func(h protocol.Header, _ *protocol.FrameReader) error {
		var u protocol.Unloaded
		if err := h.Decode(&u); err != nil {
			return violates(err)
		}
		w.models.drop(ref)
		return nil
	}
	return w.do(c, msg, false, nil)
}

// Ping asks for the worker's vital signs. Its errors are those of every request.
func (w *Worker) Ping(ctx context.Context) (Pong, error) {
	msg := &protocol.Ping{}
	var p protocol.Pong
	c := w.newCall(ctx, StagePing, model{}, &msg.ReqID)
	c.answer = func(h protocol.Header, _ *protocol.FrameReader) error {
		if err := h.Decode(&p); err != nil {
			return violates(err)
		}
		if s := p.PlacementShare; p.RSSMB < 0 || p.ModelsLoaded < 0 || s != nil && (*s < 0 || *s > 1) {
			return protocol.Violation("PONG has a value out of range")
		}
		return nil
	}
	if err := w.do(c, msg, false, nil); err != nil {
		return Pong{}, err
	}
	return Pong{RSSMB: p.RSSMB, ModelsLoaded: p.ModelsLoaded, PlacementShare: p.PlacementShare}, nil
}

// Describe says what a loaded model is and takes. Its errors are those of every
// request; a worker that does not know DESCRIBE refuses with unknown_type.
func (w *Worker) Describe(ctx context.Context, ref string) (protocol.Description, error) {
	msg := &protocol.Describe{ModelRef: ref}
	var d protocol.Description
	c := w.newCall(ctx, StageDescribe, w.models.get(ref), &msg.ReqID)
	c.answer = func(h protocol.Header, _ *protocol.FrameReader) error {
		return violates(h.Decode(&d))
	}
	if err := w.do(c, msg, false, nil); err != nil {
		return protocol.Description{}, err
	}
	return d, nil
}
