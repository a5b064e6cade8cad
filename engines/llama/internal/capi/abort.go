package capi

import (
	"sync"
	"sync/atomic"

	"github.com/ebitengine/purego"
)

// Abort stops a computation of the contexts that it is given to. The callback
// behind it is one for the whole process, because purego never frees one; which
// Abort is asked it learns from its data argument.
type Abort struct {
	id   uintptr
	flag atomic.Bool
}

var aborts struct {
	sync.RWMutex
	next uintptr
	byID map[uintptr]*Abort
}

// NewAbort makes an Abort that is not set. Free it when no context has it any
// more.
func NewAbort() *Abort {
	aborts.Lock()
	defer aborts.Unlock()
	if aborts.byID == nil {
		aborts.byID = map[uintptr]*Abort{}
	}
	aborts.next++
	a := &Abort{id: aborts.next}
	aborts.byID[a.id] = a
	return a
}

// Free forgets the Abort.
func (a *Abort) Free() {
	aborts.Lock()
	defer aborts.Unlock()
	delete(aborts.byID, a.id)
}

// Set makes the next poll, in any thread, end the computation. Clear takes it
// back.
func (a *Abort) Set()   { a.flag.Store(true) }
func (a *Abort) Clear() { a.flag.Store(false) }

// Attach enters the callback into a context's parameters.
func (a *Abort) Attach(p *ContextParams) {
	p.AbortCallback, p.AbortCallbackData = abortCallback(), a.id
}

// abortCallback answers a C bool. Windows takes a word as the only result of a
// callback, and a bool is its lowest byte everywhere.
var abortCallback = sync.OnceValue(func() uintptr {
	return purego.NewCallback(func(id uintptr) uintptr {
		aborts.RLock()
		a := aborts.byID[id]
		aborts.RUnlock()
		if a != nil && a.flag.Load() {
			return 1
		}
		return 0
	})
})
