package protocol

import "github.com/go-json-experiment/json/jsontext"

// Type is the member "type" of a control frame.
type Type string

// The message types of v1, and DESCRIBE with its answer, an addition.
const (
	TypeHello       Type = "HELLO"
	TypeHelloAck    Type = "HELLO_ACK"
	TypeLoad        Type = "LOAD"
	TypeLoaded      Type = "LOADED"
	TypeEmbedBatch  Type = "EMBED_BATCH"
	TypeVectors     Type = "VECTORS"
	TypeRerank      Type = "RERANK"
	TypeScores      Type = "SCORES"
	TypeGenerate    Type = "GENERATE"
	TypeText        Type = "TEXT"
	TypeUnload      Type = "UNLOAD"
	TypeUnloaded    Type = "UNLOADED"
	TypePing        Type = "PING"
	TypePong        Type = "PONG"
	TypeDescribe    Type = "DESCRIBE"
	TypeDescription Type = "DESCRIPTION"
	TypeShutdown    Type = "SHUTDOWN"
	TypeErr         Type = "ERR"
)

// Message is any of the structs below.
type Message interface{ MessageType() Type }

// Engine says which engine a worker runs.
type Engine struct {
	Name       string   `json:"name"`
	Version    string   `json:"version"`
	BuildFlags []string `json:"build_flags"`
}

// Hello is the worker's first message.
type Hello struct {
	V        int    `json:"v"`
	Nonce    string `json:"nonce"`
	Engine   Engine `json:"engine"`
	PID      int    `json:"pid"`
	MaxFrame uint32 `json:"max_frame"` // the largest frame that the worker takes, bytes
}

// HelloAck is the module's answer to [Hello]. MaxFrame is in force from here on.
type HelloAck struct {
	V        int    `json:"v"`
	Accept   bool   `json:"accept"`
	MaxFrame uint32 `json:"max_frame"` // min(worker's, module's), bytes
}

// Load asks for a model. RuntimeConfig is one JSON object, or absent for the
// engine's defaults.
type Load struct {
	ReqID          ID             `json:"req_id"`
	ArtifactPath   string         `json:"artifact_path"`
	ArtifactDigest Digest         `json:"artifact_digest"`
	Format         string         `json:"format"`
	RuntimeConfig  jsontext.Value `json:"runtime_config,omitzero"`
}

// Loaded answers [Load].
type Loaded struct {
	ReqID      ID     `json:"req_id"`
	ModelRef   string `json:"model_ref"`
	Dims       int    `json:"dims"`         // length of an embedding, 0 where the model gives none
	ColdLoadMS int64  `json:"cold_load_ms"` // from the request to a usable model, milliseconds
}

// Item is one row of an [EmbedBatch].
type Item struct {
	ID      ID  `json:"id,omitzero"` // the module's label; comes back in messages of ERR only
	NTokens int `json:"n_tokens"`
}

// EmbedBatch asks for one vector a row. One raw frame follows: the i32 token ids
// of all items, concatenated in order.
type EmbedBatch struct {
	ReqID     ID     `json:"req_id"`
	ModelRef  string `json:"model_ref"`
	Pooling   string `json:"pooling,omitempty"` // "mean", "cls", "last"; empty for the model's own
	Normalize bool   `json:"normalize"`         // scale each vector to Euclidean length 1
	Items     []Item `json:"items"`
}

// Vectors answers [EmbedBatch]. One raw frame follows: n×dims f32, row-major, in
// the order of the items.
type Vectors struct {
	ReqID ID  `json:"req_id"`
	Dims  int `json:"dims"`
	N     int `json:"n"`
}

// Candidate is one document of a [Rerank].
type Candidate struct {
	NTokens int `json:"n_tokens"`
}

// Rerank asks for one score a candidate. One raw frame follows: the query's i32
// token ids and then each candidate's, without the pair's special tokens.
type Rerank struct {
	ReqID        ID          `json:"req_id"`
	ModelRef     string      `json:"model_ref"`
	QueryNTokens int         `json:"query_n_tokens"`
	Candidates   []Candidate `json:"candidates"`
}

// Scores answers [Rerank]. One raw frame follows: n f32 in the order of the
// candidates.
type Scores struct {
	ReqID ID  `json:"req_id"`
	N     int `json:"n"`
}

// Generate asks for a greedy continuation. One raw frame follows: the prompt's
// i32 token ids.
type Generate struct {
	ReqID     ID     `json:"req_id"`
	ModelRef  string `json:"model_ref"`
	MaxTokens int    `json:"max_tokens"`
	Grammar   string `json:"grammar,omitempty"`
}

// FinishReason says why a generation ended.
type FinishReason string

// The finish reasons of v1.
const (
	FinishStop    FinishReason = "stop"    // an end-of-generation token
	FinishLength  FinishReason = "length"  // max_tokens or the context's end
	FinishGrammar FinishReason = "grammar" // the grammar admits nothing more
)

// Text answers [Generate].
type Text struct {
	ReqID        ID           `json:"req_id"`
	Text         string       `json:"text"`
	NPrompt      int          `json:"n_prompt"`
	NGen         int          `json:"n_gen"`
	FinishReason FinishReason `json:"finish_reason"`
}

// Unload frees a model.
type Unload struct {
	ReqID    ID     `json:"req_id"`
	ModelRef string `json:"model_ref"`
}

// Unloaded answers [Unload].
type Unloaded struct {
	ReqID ID `json:"req_id"`
}

// Ping asks for the worker's vital signs.
type Ping struct {
	ReqID ID `json:"req_id"`
}

// Pong answers [Ping].
type Pong struct {
	ReqID          ID       `json:"req_id"`
	RSSMB          int64    `json:"rss_mb"` // resident memory, MiB
	ModelsLoaded   int      `json:"models_loaded"`
	PlacementShare *float64 `json:"placement_share,omitempty"` // 0..1; nil where it does not apply or is not known
}

// Describe asks what a loaded model is and takes.
type Describe struct {
	ReqID    ID     `json:"req_id"`
	ModelRef string `json:"model_ref"`
}

// Description answers [Describe].
type Description struct {
	ReqID          ID             `json:"req_id"`
	Engine         Engine         `json:"engine"`
	Arch           string         `json:"arch"`
	Dims           int            `json:"dims"`
	MaxTokens      int            `json:"max_tokens"` // the longest row that passes; one more is refused
	VocabSize      int            `json:"vocab_size"` // ids 0..vocab_size-1 pass
	Pooling        []string       `json:"pooling"`
	DefaultPooling string         `json:"default_pooling"`
	Rerank         bool           `json:"rerank"`
	Generate       bool           `json:"generate"`
	Grammar        bool           `json:"grammar"`
	Config         jsontext.Value `json:"config"` // the runtime_config in force, defaults filled in
	Placement      *Placement     `json:"placement,omitempty"`
}

// Placement is Core ML's plan for a model's operations, as counts of dispatchable
// operations by preferred device. It is a plan, not a measurement.
type Placement struct {
	Share        float64  `json:"share"` // neural_engine / all dispatchable, 0..1
	CostShare    *float64 `json:"cost_share,omitempty"`
	Coverage     float64  `json:"coverage"` // dispatchable / (dispatchable + no_usage), 0..1
	NeuralEngine int      `json:"neural_engine"`
	GPU          int      `json:"gpu"`
	CPU          int      `json:"cpu"`
	Unknown      int      `json:"unknown"`
	NoUsage      int      `json:"no_usage"`
	ComputeUnits string   `json:"compute_units"`
	Function     string   `json:"function,omitempty"`
	OS           string   `json:"os"`
	Chip         string   `json:"chip"`
	OffEngine    []string `json:"off_engine"`
}

// Shutdown asks the worker to finish the request in hand and exit 0. It has no
// answer.
type Shutdown struct{}

// Err refuses a request. ReqID is null where the request's own could not be
// read.
type Err struct {
	ReqID ID     `json:"req_id"`
	Code  Code   `json:"code"`
	Msg   string `json:"msg"`
}

// MessageType names each struct's type on the wire.
func (Hello) MessageType() Type       { return TypeHello }
func (HelloAck) MessageType() Type    { return TypeHelloAck }
func (Load) MessageType() Type        { return TypeLoad }
func (Loaded) MessageType() Type      { return TypeLoaded }
func (EmbedBatch) MessageType() Type  { return TypeEmbedBatch }
func (Vectors) MessageType() Type     { return TypeVectors }
func (Rerank) MessageType() Type      { return TypeRerank }
func (Scores) MessageType() Type      { return TypeScores }
func (Generate) MessageType() Type    { return TypeGenerate }
func (Text) MessageType() Type        { return TypeText }
func (Unload) MessageType() Type      { return TypeUnload }
func (Unloaded) MessageType() Type    { return TypeUnloaded }
func (Ping) MessageType() Type        { return TypePing }
func (Pong) MessageType() Type        { return TypePong }
func (Describe) MessageType() Type    { return TypeDescribe }
func (Description) MessageType() Type { return TypeDescription }
func (Shutdown) MessageType() Type    { return TypeShutdown }
func (Err) MessageType() Type         { return TypeErr }
