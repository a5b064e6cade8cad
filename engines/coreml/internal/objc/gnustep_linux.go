package objc

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// StubLibrary is the file in --engine-lib that stands in for Core ML on Linux.
// Its source is engines/coreml/internal/stubcoreml; only tests have it.
const StubLibrary = "libstubcoreml.so"

type gnustep struct {
	functions
	system System
}

// Open loads the stub of Core ML from libDir. Without one there is no Core ML on
// Linux.
func Open(libDir string) (Runtime, error) {
	if libDir == "" {
		return nil, errors.New("this is Linux, and Core ML is a part of macOS: run worker-ane on a Mac with macOS 13 or later (tests name a stub of Core ML with --engine-lib)")
	}
	name := filepath.Join(libDir, StubLibrary)
	library, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be loaded: %w", name, err)
	}
	r := &gnustep{functions: functions{constants: library}}
	if err := r.resolve(library); err != nil {
		return nil, err
	}
	var version, build, chip func() string
	for name, fn := range map[string]any{"stub_version": &version, "stub_build": &build, "stub_chip": &chip} {
		address, err := purego.Dlsym(library, name)
		if err != nil {
			return nil, fmt.Errorf("the stub of Core ML has no %s: %w", name, err)
		}
		purego.RegisterFunc(fn, address)
	}
	r.system = System{Version: version(), Build: build(), Chip: chip()}
	return r, nil
}

func (r *gnustep) System() System { return r.system }

// literal is a block as its ABI lays it out.
type literal struct {
	isa             uintptr
	flags, reserved int32
	invoke          uintptr
	descriptor      *[2]uintptr // reserved, size of the literal
}

// global marks a literal that need not be copied and owns nothing.
const global = 1 << 28

// pinned is a block's function, and what keeps its literal in place: C holds the
// literal's address.
type pinned struct {
	fn  any
	pin *runtime.Pinner
}

// live are the blocks that were not released, by the address of their literals.
var live = struct {
	sync.Mutex
	blocks map[uintptr]pinned
}{blocks: map[uintptr]pinned{}}

func function[F any](block uintptr) F {
	live.Lock()
	defer live.Unlock()
	fn, _ := live.blocks[block].fn.(F)
	return fn
}

// One C callback a signature, since their number in a process is bounded.
var (
	invokeResult = sync.OnceValue(func() uintptr {
		return purego.NewCallback(func(block uintptr, value, err ID) { function[func(ID, ID)](block)(value, err) })
	})
	invokeBytes = sync.OnceValue(func() uintptr {
		return purego.NewCallback(func(block uintptr, bytes unsafe.Pointer, size int) {
			function[func(unsafe.Pointer, int)](block)(bytes, size)
		})
	})
	invokeMutableBytes = sync.OnceValue(func() uintptr {
		return purego.NewCallback(func(block uintptr, bytes unsafe.Pointer, size int, strides ID) {
			function[func(unsafe.Pointer, int, ID)](block)(bytes, size, strides)
		})
	})
)

func newBlock(invoke uintptr, fn any) Block {
	l := &literal{flags: global, invoke: invoke, descriptor: &[2]uintptr{0, unsafe.Sizeof(literal{})}}
	pin := &runtime.Pinner{}
	pin.Pin(l)
	pin.Pin(l.descriptor)
	address := uintptr(unsafe.Pointer(l))
	live.Lock()
	live.blocks[address] = pinned{fn, pin}
	live.Unlock()
	return Block{ID: ID(address), Release: func() {
		live.Lock()
		delete(live.blocks, address)
		live.Unlock()
		pin.Unpin()
	}}
}

// LiveBlocks is how many blocks were made and not released.
func LiveBlocks() int {
	live.Lock()
	defer live.Unlock()
	return len(live.blocks)
}

func (r *gnustep) ResultBlock(fn func(value, err ID)) Block { return newBlock(invokeResult(), fn) }

func (r *gnustep) BytesBlock(fn func(bytes unsafe.Pointer, size int)) Block {
	return newBlock(invokeBytes(), fn)
}

func (r *gnustep) MutableBytesBlock(fn func(bytes unsafe.Pointer, size int, strides ID)) Block {
	return newBlock(invokeMutableBytes(), fn)
}
