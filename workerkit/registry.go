package workerkit

import (
	"log/slog"
	"slices"
	"strconv"
)

// loaded is a model with what is known of it.
type loaded struct {
	model     Model
	desc      Description
	config    Config
	embedder  Embedder  // nil where the model does not embed
	reranker  Reranker  // nil where it does not rerank
	generator Generator // nil where it does not generate
	release   func()    // frees the artifact's private copy
}

func (m *loaded) close() error {
	err := m.model.Close()
	m.release()
	return err
}

// registry holds the loaded models by their refs. A ref is never used twice in
// the life of a process, so a late request cannot reach another model.
type registry struct {
	models map[string]*loaded
	order  []string // by age
	issued int
}

func newRegistry() *registry { return &registry{models: map[string]*loaded{}} }

func (g *registry) add(m *loaded) (ref string) {
	g.issued++
	ref = "m" + strconv.Itoa(g.issued)
	g.models[ref] = m
	g.order = append(g.order, ref)
	return ref
}

func (g *registry) get(ref string) *loaded { return g.models[ref] }
func (g *registry) len() int               { return len(g.models) }

func (g *registry) remove(ref string) {
	delete(g.models, ref)
	g.order = slices.DeleteFunc(g.order, func(r string) bool { return r == ref })
}

// placementShare is the youngest model's that has one.
func (g *registry) placementShare() *float64 {
	for _, ref := range slices.Backward(g.order) {
		if p := g.models[ref].desc.Placement; p != nil {
			return &p.Share
		}
	}
	return nil
}

func (g *registry) closeAll(log *slog.Logger) {
	for _, ref := range slices.Clone(g.order) {
		if err := g.models[ref].close(); err != nil {
			log.Warn("freeing a model failed", "model_ref", ref, "error", err)
		}
		g.remove(ref)
	}
}
