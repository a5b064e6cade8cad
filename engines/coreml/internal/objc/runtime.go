// Package objc is the little of an Objective-C runtime that the Core ML bridge
// stands on. It has two implementations: the system's on macOS
// (system_darwin.go), and on Linux GCC's runtime with GNUstep's Foundation and a
// stub of Core ML (gnustep_linux.go), over which the tests send the bridge's real
// messages without a Mac.
package objc

import "unsafe"

// ID is an object or a class; 0 is nil, to which every message may be sent.
type ID uintptr

// Selector names a message in the running runtime.
type Selector uintptr

// Range is Foundation's NSRange.
type Range struct{ Location, Length uint64 }

// Block is a Go function as an Objective-C block. Release frees it and is called
// once nobody can call the block any more; a block that may yet be called is
// never released.
type Block struct {
	ID      ID
	Release func()
}

// System is the machine that the runtime runs on.
type System struct {
	Version string // of macOS, such as "15.1"
	Build   string // of macOS, such as "24B83"
	Chip    string // such as "Apple M4"
}

// Runtime is an Objective-C runtime with Foundation and Core ML in it.
type Runtime interface {
	// System says what the runtime runs on.
	System() System

	// MessageSend is the address of the C function that sends a message:
	// receiver, selector and arguments in the C calling convention of the method.
	MessageSend() uintptr

	// Class finds a class, or returns 0.
	Class(name string) ID

	// Selector registers a selector.
	Selector(name string) Selector

	// Encoding is the type encoding of a class's method, frame offsets included;
	// ok is false where the class has no such method.
	Encoding(class ID, s Selector, classMethod bool) (encoding string, ok bool)

	// Constant is the object in an exported variable of Core ML, or 0.
	Constant(symbol string) ID

	// PushPool and PopPool bound an autorelease pool of the calling OS thread.
	PushPool() uintptr
	PopPool(pool uintptr)

	// ResultBlock makes a void (^)(id value, NSError *error). It is called on a
	// thread of the runtime's choice: fn must neither block nor panic.
	ResultBlock(fn func(value, err ID)) Block

	// BytesBlock makes a void (^)(const void *bytes, NSInteger size).
	BytesBlock(fn func(bytes unsafe.Pointer, size int)) Block

	// MutableBytesBlock makes a void (^)(void *bytes, NSInteger size, NSArray *strides).
	MutableBytesBlock(fn func(bytes unsafe.Pointer, size int, strides ID)) Block
}
