// Package bridge calls Core ML: compile, load, predict, and the compute plan, in
// Go types. It has no build tag: what runs under the tests on Linux is what runs
// on a Mac, over another [objc.Runtime].
//
// # Rules
//
// An Objective-C exception ends the process and Go cannot catch it. So every
// message is looked up at [Open] ([messages] is their only list), and inputs are
// held to the model's description before anything is sent.
//
// Autorelease pools belong to OS threads: each call locks its goroutine to one
// and drains one pool on the way out. What outlives the call is retained.
//
// A completion handler comes on a thread of Core ML's. It retains the result,
// hands it over and does nothing else. A handler that never came may come later:
// its block is leaked on purpose.
//
// Nothing is copied by an array's base address: the Neural Engine pads its
// surfaces, so arrays are read and written by their strides, within bounds.
package bridge
