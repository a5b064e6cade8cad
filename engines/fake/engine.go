package fake

import (
	"bufio"
	"context"
	"os"
	"strconv"
	"strings"

	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// Format is the only artifact format: a file whose first line is Magic.
const (
	Format = "fake"
	Magic  = "synapse fake model"
)

// endOfGeneration is the id after which a generation stops.
const endOfGeneration = 2

// Engine is the fake engine. Its zero value has no stream to break; see [New].
type Engine struct{ stream *Stream }

// New makes an engine whose faults may break stream.
func New(stream *Stream) *Engine { return &Engine{stream: stream} }

// Info describes the fake engine.
func (e *Engine) Info() workerkit.Info {
	return workerkit.Info{
		Name: "fake", Version: "1", BuildFlags: []string{"deterministic"}, Formats: []string{Format, Format + "+zstd"},
		Options: options,
	}
}

var options = append([]workerkit.Option{
	{Name: "dims", Kind: workerkit.KindInt, Default: 8, Min: 1, Max: 65536, Help: "Length of a vector."},
	{Name: "vocab_size", Kind: workerkit.KindInt, Default: 1000, Min: 1, Max: 1 << 31, Help: "Ids 0 to this less one are taken."},
	{Name: "max_tokens", Kind: workerkit.KindInt, Default: 512, Min: 1, Max: 1 << 24, Help: "The longest row, pair or prompt."},
	{Name: "pooling", Kind: workerkit.KindEnum, Default: "mean", Enum: []string{"mean", "cls", "last"}, Help: "The model's own pooling."},
	{Name: "poolings", Kind: workerkit.KindStrings, Default: []string{"mean", "cls", "last"}, Help: "What the model does faithfully; an empty list makes it no embedder."},
	{Name: "rerank", Kind: workerkit.KindBool, Default: true, Help: "Whether the model has a ranking head."},
	{Name: "generate", Kind: workerkit.KindBool, Default: true, Help: "Whether the model generates."},
	{Name: "placement_share", Kind: workerkit.KindFloat, Min: 0, Max: 1, Help: "Reported in PONG and DESCRIPTION; absent by default."},
}, faultOptions...)

// Load reads the artifact's first line and makes a model of the config.
func (e *Engine) Load(_ context.Context, a workerkit.Artifact, c workerkit.Config) (workerkit.Model, error) {
	f, err := os.Open(a.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	line, _ := bufio.NewReader(f).ReadString('\n')
	if strings.TrimSpace(line) != Magic {
		return nil, workerkit.ArtifactInvalid("%s does not begin with the line %q", a.Name, Magic)
	}
	m := &model{config: c, faults: newScript(c, e.stream)}
	if err := m.faults.meet("load"); err != nil {
		return nil, err
	}
	if !c.Bool("rerank") && !c.Bool("generate") {
		return embedOnly{m, m}, nil
	}
	return m, nil
}

// embedOnly hides what a model without those heads does not implement.
type embedOnly struct {
	workerkit.Model
	workerkit.Embedder
}

type model struct {
	config workerkit.Config
	faults *script
	buf    []float32 // the last answer's memory, lent until the next call
}

func (m *model) Describe() workerkit.Description {
	d := workerkit.Description{
		Arch: "fake", Dims: m.config.Int("dims"), MaxTokens: m.config.Int("max_tokens"),
		VocabSize: m.config.Int("vocab_size"),
	}
	for _, p := range m.config.Strings("poolings") {
		d.Poolings = append(d.Poolings, workerkit.Pooling(p))
	}
	if len(d.Poolings) > 0 {
		d.DefaultPooling = workerkit.Pooling(m.config.String("pooling"))
	}
	if m.config.Has("placement_share") {
		d.Placement = &protocol.Placement{Share: m.config.Float("placement_share"), Coverage: 1, ComputeUnits: "none", OS: "none", Chip: "none", OffEngine: []string{}}
	}
	return d
}

func (m *model) Close() error { return m.faults.meet("unload") }

func (m *model) Embed(_ context.Context, rows [][]int32, p workerkit.Pooling) ([][]float32, error) {
	if err := m.faults.meet("embed"); err != nil {
		return nil, err
	}
	dims := m.config.Int("dims")
	if need := len(rows) * dims; cap(m.buf) < need {
		m.buf = make([]float32, need)
	}
	out := make([][]float32, len(rows))
	for i, row := range rows {
		v := m.buf[i*dims : (i+1)*dims : (i+1)*dims]
		switch p {
		case workerkit.PoolingCLS:
			row = row[:1]
		case workerkit.PoolingLast:
			row = row[len(row)-1:]
		}
		for j := range v {
			var sum float64
			for _, id := range row {
				sum += State(id, j)
			}
			v[j] = float32(sum / float64(len(row)))
		}
		out[i] = v
	}
	return m.faults.bend(out), nil
}

// State is component j of the state of a token: the SplitMix64 finaliser of
// id<<32 | j, its upper 53 bits as a fraction, mapped to [-1, 1).
func State(id int32, j int) float64 {
	z := (uint64(uint32(id))<<32 | uint64(uint32(j))) + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return float64(z>>11)/(1<<52) - 1
}

func (m *model) Rerank(_ context.Context, query []int32, docs [][]int32) ([]float32, error) {
	if !m.config.Bool("rerank") {
		return nil, workerkit.Unsupported("RERANK: this fake model was loaded with rerank false")
	}
	if err := m.faults.meet("rerank"); err != nil {
		return nil, err
	}
	known := map[int32]bool{}
	for _, id := range query {
		known[id] = true
	}
	scores := make([]float32, len(docs))
	for i, doc := range docs {
		if n, most := len(query)+len(doc), m.config.Int("max_tokens"); n > most {
			return nil, workerkit.RequestInvalid("candidates[%d] makes a pair of %d tokens, this model takes at most %d", i, n, most)
		}
		hits := 0
		for _, id := range doc {
			if known[id] {
				hits++
			}
		}
		scores[i] = float32(hits) / float32(len(doc))
	}
	return scores, nil
}

func (m *model) Generate(_ context.Context, prompt []int32, o workerkit.GenerateOptions) (workerkit.Generation, error) {
	if !m.config.Bool("generate") {
		return workerkit.Generation{}, workerkit.Unsupported("GENERATE: this fake model was loaded with generate false")
	}
	if err := m.faults.meet("generate"); err != nil {
		return workerkit.Generation{}, err
	}
	room := min(o.MaxTokens, m.config.Int("max_tokens")-len(prompt))
	var words []string
	for n := range room {
		id := prompt[n%len(prompt)]
		if id == endOfGeneration {
			return workerkit.Generation{Text: strings.Join(words, " "), NGen: n, Finish: protocol.FinishStop}, nil
		}
		words = append(words, strconv.Itoa(int(id)))
	}
	return workerkit.Generation{Text: strings.Join(words, " "), NGen: room, Finish: protocol.FinishLength}, nil
}
