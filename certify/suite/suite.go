package suite

import (
	"slices"
	"time"

	"github.com/synapse-module/workers/protocol"
)

// Version is the version of suite.yaml that this package reads.
const Version = 1

// Task is what a suite's model does.
type Task string

// The tasks.
const (
	Embed    Task = "embed"    // one vector a row
	Rerank   Task = "rerank"   // one score a pair of query and document
	Generate Task = "generate" // a greedy continuation of a prompt
)

// Suite is a decoded suite.yaml and its data.
type Suite struct {
	Version   int        `yaml:"version"`
	Name      string     `yaml:"name"`
	Title     string     `yaml:"title"`
	Task      Task       `yaml:"task"`
	Model     Model      `yaml:"model"`
	Data      Data       `yaml:"data"`
	People    *People    `yaml:"people"`
	Artifacts []Artifact `yaml:"artifacts"`
	Gates     Gates      `yaml:"gates"`
	Controls  Controls   `yaml:"controls"`

	Performance *Performance `yaml:"performance"`

	Digest     protocol.Digest `yaml:"-"` // of the folder
	Provenance Provenance      `yaml:"-"`

	// The data of the suite's task; the other tasks' are nil.
	Inputs    []Input     `yaml:"-"` // embed
	Reference [][]float32 `yaml:"-"` // embed: one row an input, Model.Dims components
	Queries   []Query     `yaml:"-"` // rerank
	Prompts   []Prompt    `yaml:"-"` // generate
}

// Model is what every artifact of the suite must compute. Members of other tasks
// than the suite's are zero.
type Model struct {
	Family    string `yaml:"family"`
	Dims      int    `yaml:"dims"`
	Pooling   string `yaml:"pooling"`
	Normalize bool   `yaml:"normalize"`

	// PairTokens is how many special tokens the worker adds to a pair.
	PairTokens int `yaml:"pair_tokens"`
}

// Data names the data files in the suite's folder.
type Data struct {
	Inputs     string `yaml:"inputs"`
	Vectors    string `yaml:"vectors"` // embed
	Scores     string `yaml:"scores"`  // rerank
	Answers    string `yaml:"answers"` // generate
	Provenance string `yaml:"provenance"`
}

// Artifact is one file or directory that an engine loads.
type Artifact struct {
	Name          string          `yaml:"name"`
	Engine        string          `yaml:"engine"`
	Format        string          `yaml:"format"`
	Digest        protocol.Digest `yaml:"digest"`
	RuntimeConfig map[string]any  `yaml:"runtime_config"`
	LoadTimeout   time.Duration   `yaml:"load_timeout"` // 0 for the default
	FlippedByte   *FlippedByte    `yaml:"flipped_byte"` // a control of this artifact alone
	WrongLoads    []WrongLoad     `yaml:"wrong_loads"`  // controls of this artifact alone
	Gates         Gates           `yaml:"gates"`
}

// WrongLoad is a control: the model is loaded in a way that must not pass.
type WrongLoad struct {
	Name          string          `yaml:"name"`
	Artifact      string          `yaml:"artifact"` // another one; empty for the entry's own
	Digest        protocol.Digest `yaml:"digest"`   // of the other one
	RuntimeConfig map[string]any  `yaml:"runtime_config"`

	OnlyWhere *OnlyWhere `yaml:"only_where"` // nil where the fault shows on every machine
}

// OnlyWhere says on which processors a fault shows.
type OnlyWhere struct {
	Arch    string   `yaml:"arch"`    // GOARCH
	Without []string `yaml:"without"` // instruction-set extensions, any of which hides it
}

// FlippedByte is a control: one byte of the artifact's weights is changed, and
// the digest fits the changed file.
type FlippedByte struct {
	File   string `yaml:"file"` // of an artifact that is a directory: slashes, relative to it
	Offset int64  `yaml:"offset"`
	Mask   int    `yaml:"mask"` // the bits that are inverted, 1 to 255
}

// Gates holds the threshold of each gate; a gate that is nil is not held.
type Gates struct {
	Cosine     *Cosine     `yaml:"cosine"`
	MaxAbsDiff *MaxAbsDiff `yaml:"max_abs_diff"`
	Norm       *Norm       `yaml:"norm"`
	Invariance *Invariance `yaml:"invariance"`
	Repeats    *Repeats    `yaml:"repeats"`
	MaxTokens  *MaxTokens  `yaml:"max_tokens"`
	Rank       *Rank       `yaml:"rank"`
	People     *PeopleGate `yaml:"people"`
	Placement  *Placement  `yaml:"placement"`
	Published  []Published `yaml:"published"`

	Score  *Score  `yaml:"score"`  // rerank
	Order  *Order  `yaml:"order"`  // rerank
	Greedy *Greedy `yaml:"greedy"` // generate
	Limits *Limits `yaml:"limits"` // generate
}

// Score bounds the difference of scores from the reference's.
type Score struct {
	Max  float64 `yaml:"max"`  // of any pair
	Mean float64 `yaml:"mean"` // over all pairs
}

// Order bounds how far the documents of a query may come in another order than
// the reference's.
type Order struct {
	Kendall float64 `yaml:"kendall"` // least, of any query
	First   float64 `yaml:"first"`   // share of the queries whose first document is the reference's
}

// Greedy is how much of every continuation must be the reference's.
type Greedy struct {
	Tokens int     `yaml:"tokens"` // leading ones, of every answer
	Share  float64 `yaml:"share"`  // of its tokens, mean over the answers; 0 for no bound
}

// Limits are the max_tokens under which prompts are asked again.
type Limits struct {
	Counts []int `yaml:"counts"`
}

// Cosine bounds the cosine to the reference over all inputs from below.
type Cosine struct {
	Min  float64 `yaml:"min"`
	P01  float64 `yaml:"p01"` // the first percentile
	Mean float64 `yaml:"mean"`
}

// MaxAbsDiff bounds the difference of any component from the reference.
type MaxAbsDiff struct {
	Max float64 `yaml:"max"`
}

// Norm bounds the distance of any vector's Euclidean length from 1.
type Norm struct {
	Tolerance float64 `yaml:"tolerance"`
}

// Invariance bounds the difference between a row alone and the same row in
// company.
type Invariance struct {
	Tolerance     float64 `yaml:"tolerance"`
	Batches       []int   `yaml:"batches"`
	BesideLongest int     `yaml:"beside_longest"` // how many rows meet the longest row that passes
}

// Repeats asks for the same bits each time.
type Repeats struct {
	Count int `yaml:"count"`
	Rows  int `yaml:"rows"`
}

// MaxTokens is the least length that the worker must take.
type MaxTokens struct {
	Min int `yaml:"min"`
}

// Rank bounds, over the inputs that have the tags, how far documents may come in
// another order than the reference's.
type Rank struct {
	Queries     string  `yaml:"queries"`   // tag
	Documents   string  `yaml:"documents"` // tag
	TopK        int     `yaml:"top_k"`
	Kendall     float64 `yaml:"kendall"`      // least, of any query
	MinOverlap  float64 `yaml:"min_overlap"`  // of the first top_k, of any query
	MeanOverlap float64 `yaml:"mean_overlap"` // of the first top_k
}

// PeopleGate bounds how far the agreement with people may fall below the
// reference's.
type PeopleGate struct {
	BelowReference float64 `yaml:"below_reference"`
}

// Placement bounds the share of operations planned for the Neural Engine.
type Placement struct {
	MinShare     float64 `yaml:"min_share"`      // by count
	MinCostShare float64 `yaml:"min_cost_share"` // by estimated cost; 0 for no bound
}

// Published is the beginning of a vector that others have published.
type Published struct {
	ID        string    `yaml:"id"`
	Values    []float64 `yaml:"values"`
	Tolerance float64   `yaml:"tolerance"`
	Source    string    `yaml:"source"`
}

// Controls are runs that are wrong on purpose; one that is nil or false is not
// run.
type Controls struct {
	SwappedPooling       *SwappedPooling `yaml:"swapped_pooling"`
	DroppedSpecialTokens bool            `yaml:"dropped_special_tokens"` // the first and the last id of each row
	NoNormalization      bool            `yaml:"no_normalization"`
	ShuffledRows         bool            `yaml:"shuffled_rows"`

	ShuffledDocuments bool `yaml:"shuffled_documents"` // rerank
	SwappedTexts      bool `yaml:"swapped_texts"`      // rerank: the document as the query

	TruncatedPrompt bool `yaml:"truncated_prompt"` // generate
	NoGrammar       bool `yaml:"no_grammar"`       // generate
}

// SwappedPooling asks the worker for a pooling that the model was not made for.
type SwappedPooling struct {
	Pooling string `yaml:"pooling"`
}

// Performance says what is timed and watched where a performance record is asked
// for. Its limits are ratios within one run, never times.
type Performance struct {
	Shapes        []Shape       `yaml:"shapes"`
	Batches       int           `yaml:"batches"`        // of each shape
	MemoryBatches int           `yaml:"memory_batches"` // of varied shape
	MemorySettle  int           `yaml:"memory_settle"`  // how many of them come before growth is counted
	MemoryTokens  int           `yaml:"memory_tokens"`  // of the largest of them
	MaxGrowth     float64       `yaml:"max_growth"`     // final over settled resident memory
	Idle          time.Duration `yaml:"idle"`           // how long the worker is watched doing nothing
	MaxIdleShare  float64       `yaml:"max_idle_share"` // of one core
}

// Shape is a batch of rows or pairs of equal length, or a series of answers.
type Shape struct {
	Rows   int `yaml:"rows"`
	Tokens int `yaml:"tokens"` // a row; at most of an answer
}

// GatesFor returns the gates that hold for an artifact: the suite's, each
// replaced by the artifact's own where it has one.
func (s *Suite) GatesFor(a Artifact) Gates {
	g := s.Gates
	replace(&g.Cosine, a.Gates.Cosine)
	replace(&g.MaxAbsDiff, a.Gates.MaxAbsDiff)
	replace(&g.Norm, a.Gates.Norm)
	replace(&g.Invariance, a.Gates.Invariance)
	replace(&g.Repeats, a.Gates.Repeats)
	replace(&g.MaxTokens, a.Gates.MaxTokens)
	replace(&g.Rank, a.Gates.Rank)
	replace(&g.People, a.Gates.People)
	replace(&g.Placement, a.Gates.Placement)
	replace(&g.Score, a.Gates.Score)
	replace(&g.Order, a.Gates.Order)
	replace(&g.Greedy, a.Gates.Greedy)
	replace(&g.Limits, a.Gates.Limits)
	if a.Gates.Published != nil {
		g.Published = a.Gates.Published
	}
	return g
}

// Tagged returns the indices of the inputs that have the tag.
func (s *Suite) Tagged(tag string) []int {
	var found []int
	for i, in := range s.Inputs {
		if slices.Contains(in.Tags, tag) {
			found = append(found, i)
		}
	}
	return found
}

// Size is the count of the suite's inputs, pairs or prompts, and of their tokens.
func (s *Suite) Size() (inputs, tokens int) {
	for _, in := range s.Inputs {
		inputs, tokens = inputs+1, tokens+len(in.IDs)
	}
	for _, q := range s.Queries {
		for _, d := range q.Documents {
			inputs, tokens = inputs+1, tokens+s.Tokens(q, d)
		}
	}
	for _, p := range s.Prompts {
		inputs, tokens = inputs+1, tokens+len(p.IDs)
	}
	return inputs, tokens
}

func replace[T any](base **T, own *T) {
	if own != nil {
		*base = own
	}
}
