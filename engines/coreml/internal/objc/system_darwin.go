package objc

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/ebitengine/purego/objc"
	"golang.org/x/sys/unix"
)

// Foundation and Core ML. Neither need be a file: the loader finds them in its
// shared cache by these names.
const (
	foundation = "/System/Library/Frameworks/Foundation.framework/Foundation"
	coreML     = "/System/Library/Frameworks/CoreML.framework/CoreML"
	libobjc    = "/usr/lib/libobjc.A.dylib"
)

type system struct {
	functions
	system System
}

// Open loads the system's Foundation and Core ML. libDir must be empty: Core ML
// is a part of macOS, and no other is used.
func Open(libDir string) (Runtime, error) {
	if libDir != "" {
		return nil, fmt.Errorf("%s: Core ML is a part of macOS and is taken from there; leave --engine-lib out", libDir)
	}
	r := &system{}
	for _, name := range []string{foundation, coreML, libobjc} {
		library, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err != nil {
			return nil, fmt.Errorf("%s cannot be loaded: %w", name, err)
		}
		switch name {
		case coreML:
			r.constants = library
		case libobjc:
			if err := r.resolve(library); err != nil {
				return nil, err
			}
		}
	}
	for name, value := range map[string]*string{
		"kern.osproductversion":    &r.system.Version,
		"kern.osversion":           &r.system.Build,
		"machdep.cpu.brand_string": &r.system.Chip,
	} {
		var err error
		if *value, err = unix.Sysctl(name); err != nil {
			return nil, fmt.Errorf("sysctl %s: %w", name, err)
		}
	}
	return r, nil
}

func (r *system) System() System { return r.system }

func (r *system) ResultBlock(fn func(value, err ID)) Block {
	b := objc.NewBlock(func(_ objc.Block, value, err objc.ID) { fn(ID(value), ID(err)) })
	return Block{ID: ID(b), Release: b.Release}
}

func (r *system) BytesBlock(fn func(bytes unsafe.Pointer, size int)) Block {
	b := objc.NewBlock(func(_ objc.Block, bytes unsafe.Pointer, size int) { fn(bytes, size) })
	return Block{ID: ID(b), Release: b.Release}
}

func (r *system) MutableBytesBlock(fn func(bytes unsafe.Pointer, size int, strides ID)) Block {
	b := objc.NewBlock(func(_ objc.Block, bytes unsafe.Pointer, size int, strides objc.ID) { fn(bytes, size, ID(strides)) })
	return Block{ID: ID(b), Release: b.Release}
}
