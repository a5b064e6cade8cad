package host

import (
	"sync"

	"github.com/synapse-module/workers/protocol"
)

// model is what the module knows of a model that it had loaded.
type model struct {
	digest string
	config string // canonical JSON, empty for the engine's defaults
	dims   int
	loaded bool
}

// registry holds the models of one worker by their reference.
type registry struct {
	mu sync.Mutex
	m  map[string]model
}

// add notes a model that the worker says it loaded. A reference is unique for the
// life of the process, so that a late request can never mean another model.
func (r *registry) add(ref string, m model) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, used := r.m[ref]; used {
		return protocol.Violation("LOADED gives model_ref %q a second time", ref)
	}
	if r.m == nil {
		r.m = map[string]model{}
	}
	m.loaded = true
	r.m[ref] = m
	return nil
}

// get is the model of a reference, the zero model where there is none.
func (r *registry) get(ref string) model {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.m[ref]
}

// drop notes that the worker unloaded a model.
func (r *registry) drop(ref string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, ok := r.m[ref]; ok {
		m.loaded = false
		r.m[ref] = m
	}
}
