package llama

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/synapse-module/workers/engines/llama/internal/gguf"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// hostileModel is a tiny model with one to three faults in its header.
func hostileModel(r *rand.Rand) []byte {
	m := []func() *tinyModel{tinyBERT, tinyReranker, tinyDecoder}[r.IntN(3)]()
	for range 1 + r.IntN(3) {
		pairs, tensors := m.file.Pairs, m.file.Tensors
		pair, tensor := r.IntN(len(pairs)), r.IntN(len(tensors))
		switch r.IntN(6) {
		case 0, 1:
			m.set(pairs[pair].Key, hostileValue(r))
		case 2:
			m.unset(pairs[pair].Key)
		case 3:
			m.drop(tensors[tensor].Name)
		case 4:
			dims := slices.Clone(tensors[tensor].Dims)
			dims[r.IntN(len(dims))] = hostileNumber(r)
			tensors[tensor].Dims = dims
		case 5:
			tensors[tensor].Name = tensors[r.IntN(len(tensors))].Name
		}
	}
	b := m.file.Bytes()
	for range r.IntN(3) {
		b[r.IntN(min(len(b), 4096))] ^= 1 << r.IntN(8)
	}
	return b
}

func hostileNumber(r *rand.Rand) uint64 {
	return []uint64{0, 1, 2, 3, 7, 31, 33, 64, 1 << 16, 1 << 31, 1<<32 - 1, 1 << 40, 1 << 63, math.MaxUint64}[r.IntN(14)]
}

func hostileValue(r *rand.Rand) any {
	n := hostileNumber(r)
	switch r.IntN(9) {
	case 0, 1, 2:
		return uint32(n)
	case 3:
		return int32(n)
	case 4:
		return n
	case 5:
		return []float32{0, -1, float32(math.NaN()), float32(math.Inf(1)), 1e-38}[r.IntN(5)]
	case 6:
		return []string{"", "bert", "llama", "gpt2", "\x00", strings.Repeat("x", 5000)}[r.IntN(6)]
	case 7:
		return []int32{int32(n), -1, 0}
	default:
		return []string{"a", ""}
	}
}

// TestHostileHeadersNeverReachTheLibrary draws headers with faults, and loads each.
// Nearly all are refused by what reads them here; what is left the library loads and
// computes or refuses, and this process lives.
func TestHostileHeadersNeverReachTheLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(20, 26))
	const headers = 1200
	var n tally
	for range headers {
		n.load(t, "", hostileModel(r))
	}
	n.check(t, headers/2)
	if _, err := loadBytes(t, tinyBERT().file.Bytes(), ""); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// tally counts what became of hostile files.
type tally struct{ here, library, loaded int }

// load loads a file and computes with it, should it load. what says which it is.
func (n *tally) load(t *testing.T, what string, file []byte) {
	t.Helper()
	m, err := loadBytes(t, file, `{"context_length": 8}`)
	var refusal *protocol.Error
	switch {
	case err == nil:
		n.loaded++
		use(t, m)
	case !errors.As(err, &refusal):
		t.Errorf("%s: %v is no typed error", what, err)
	case strings.Contains(refusal.Msg, "llama.cpp refused it"):
		n.library++
	default:
		n.here++
	}
}

// check wants files of every fate, and at least so many to be refused before the
// library saw them.
func (n *tally) check(t *testing.T, here int) {
	t.Helper()
	t.Logf("%d were refused here, %d by the library, %d loaded", n.here, n.library, n.loaded)
	if n.here < here || n.library == 0 || n.loaded == 0 {
		t.Error("the headers drawn do not test what they should")
	}
}

// use asks a model for what it is for. An answer and a typed error are both right.
func use(t *testing.T, m workerkit.Model) {
	t.Helper()
	row := []int32{1, int32(m.Describe().VocabSize - 1), 2}
	var err error
	switch m := m.(type) {
	case workerkit.Embedder:
		_, err = m.Embed(t.Context(), [][]int32{row, row[:1]}, workerkit.PoolingMean)
	case workerkit.Reranker:
		_, err = m.Rerank(t.Context(), row, [][]int32{row[1:2]})
	case workerkit.Generator:
		_, err = m.Generate(t.Context(), row, workerkit.GenerateOptions{MaxTokens: 3})
	}
	var refusal *protocol.Error
	if err != nil && !errors.As(err, &refusal) {
		t.Errorf("%v is no typed error", err)
	}
}

// FuzzPlan holds everything that is read off a header before the library sees the
// file: it refuses or plans, and what it plans is within its own limits.
func FuzzPlan(f *testing.F) {
	for i := range uint64(20) {
		f.Add(hostileModel(rand.New(rand.NewPCG(i, 0))))
	}
	c, err := workerkit.DecodeConfig(options(), nil)
	if err != nil {
		f.Fatal(err)
	}
	s, err := newSettings(c)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := gguf.Parse(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		p, err := newPlan(file, s)
		if err != nil {
			return
		}
		if p.maxTokens < 1 || p.maxTokens > maxTrained || p.vocab < 1 || int64(p.vocab) > p.shape.table || p.segmentOffset < 0 {
			t.Fatalf("%+v", p)
		}
		if checkTypes(file) != nil {
			return
		}
		weights, err := p.retype(file, s)
		if err != nil {
			t.Fatal(err)
		}
		if need := p.loadBytes(weights, s); need < fixedBytes || need > 1<<62 {
			t.Fatalf("%+v needs %d bytes", p, need)
		}
	})
}
