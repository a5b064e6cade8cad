package suite

import (
	"time"

	"github.com/synapse-module/workers/protocol"
)

// Version is the version of suite.yaml that this package reads.
const Version = 1

// Suite is a decoded suite.yaml and its data.
type Suite struct {
	Version   int        `yaml:"version"`
	Name      string     `yaml:"name"`
	Title     string     `yaml:"title"`
	Task      string     `yaml:"task"`
	Model     Model      `yaml:"model"`
	Data      Data       `yaml:"data"`
	Artifacts []Artifact `yaml:"artifacts"`
	Gates     Gates      `yaml:"gates"`
	Controls  Controls   `yaml:"controls"`

	Digest     protocol.Digest `yaml:"-"` // of the folder
	Inputs     []Input         `yaml:"-"`
	Reference  [][]float32     `yaml:"-"` // one row an input, Model.Dims components
	Provenance Provenance      `yaml:"-"`
}

// Model is what every artifact of the suite must compute.
type Model struct {
	Family    string `yaml:"family"`
	Dims      int    `yaml:"dims"`
	Pooling   string `yaml:"pooling"`
	Normalize bool   `yaml:"normalize"`
}

// Data names the data files in the suite's folder.
type Data struct {
	Inputs     string `yaml:"inputs"`
	Vectors    string `yaml:"vectors"`
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
	Gates         Gates           `yaml:"gates"`
}

// Gates holds the threshold of each gate; a gate that is nil is not held.
type Gates struct {
	Cosine     *Cosine     `yaml:"cosine"`
	MaxAbsDiff *MaxAbsDiff `yaml:"max_abs_diff"`
	Norm       *Norm       `yaml:"norm"`
	Invariance *Invariance `yaml:"invariance"`
	Repeats    *Repeats    `yaml:"repeats"`
	MaxTokens  *MaxTokens  `yaml:"max_tokens"`
	Published  []Published `yaml:"published"`
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

// Published is the beginning of a vector that others have published.
type Published struct {
	ID        string    `yaml:"id"`
	Values    []float64 `yaml:"values"`
	Tolerance float64   `yaml:"tolerance"`
	Source    string    `yaml:"source"`
}

// Controls are runs that are wrong on purpose; one that is nil is not run.
type Controls struct {
	SwappedPooling *SwappedPooling `yaml:"swapped_pooling"`
}

// SwappedPooling asks the worker for a pooling that the model was not made for.
type SwappedPooling struct {
	Pooling string `yaml:"pooling"`
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
	if a.Gates.Published != nil {
		g.Published = a.Gates.Published
	}
	return g
}

func replace[T any](base **T, own *T) {
	if own != nil {
		*base = own
	}
}
