// Package capi is the part of llama.cpp's C interface that the engine calls,
// bound without cgo.
//
// llama.cpp passes its parameter structs by value, so a library whose structs
// differ from the ones here would misread every field in silence. [Open]
// therefore takes only the versions in [Versions] and, on top of that, compares
// the library's own default parameters with what the layout here makes of them.
//
// Nothing here checks arguments: llama.cpp answers most wrong ones with an
// abort of the process. The engine's checks stand before the calls.
package capi
