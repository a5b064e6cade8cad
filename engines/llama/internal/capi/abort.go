package capi

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

// Abort stops a computation of the contexts that it is given to.
//
// llama.cpp polls at every node of a graph, a thousand times for a token of a small
// model, and a callback into Go would cost a tenth of such a model's speed. So the
// callback is C's own strlen, asked for the length of the flag as a text: 0 while its
// first byte is 0, and 1 when it is set, since the bytes after it are 0.
type Abort struct {
	flag     atomic.Uint32 // 0 or setFlag
	callback uintptr
}

// setFlag has the bytes 1, 0, 0, 0 in memory on every processor that llama.cpp's
// libraries are built for here: all are little-endian.
const setFlag = 1

// NewAbort makes an Abort that is not set. It must outlive the contexts that it is
// attached to.
func (l *Library) NewAbort() *Abort { return &Abort{callback: l.strlen} }

// bindAbort finds strlen.
func (l *Library) bindAbort() (err error) {
	if l.strlen, err = strlen(); err != nil {
		return fmt.Errorf("the system's C library has no strlen: %w", err)
	}
	return nil
}

// Set makes the next poll, in any thread, end the computation. Clear takes it
// back.
func (a *Abort) Set()   { a.flag.Store(setFlag) }
func (a *Abort) Clear() { a.flag.Store(0) }

// Attach enters the callback into a context's parameters.
func (a *Abort) Attach(p *ContextParams) {
	p.AbortCallback, p.AbortCallbackData = a.callback, uintptr(unsafe.Pointer(&a.flag))
}
