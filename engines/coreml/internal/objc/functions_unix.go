//go:build darwin || linux

package objc

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
)

// functions are the C functions that both runtimes export under the same names.
type functions struct {
	messageSend    uintptr
	getClass       func(name string) ID
	registerName   func(name string) Selector
	instanceMethod func(class ID, s Selector) uintptr
	classMethod    func(class ID, s Selector) uintptr
	typeEncoding   func(method uintptr) string
	pushPool       func() uintptr
	popPool        func(pool uintptr)

	constants uintptr // the library that exports Core ML's variables
}

// resolve looks every function up in library, so that a missing one is an error
// and not purego's panic.
func (f *functions) resolve(library uintptr) error {
	var err error
	if f.messageSend, err = purego.Dlsym(library, "objc_msgSend"); err != nil {
		return fmt.Errorf("the Objective-C runtime has no objc_msgSend: %w", err)
	}
	for name, fn := range map[string]any{
		"objc_getClass":            &f.getClass,
		"sel_registerName":         &f.registerName,
		"class_getInstanceMethod":  &f.instanceMethod,
		"class_getClassMethod":     &f.classMethod,
		"method_getTypeEncoding":   &f.typeEncoding,
		"objc_autoreleasePoolPush": &f.pushPool,
		"objc_autoreleasePoolPop":  &f.popPool,
	} {
		address, err := purego.Dlsym(library, name)
		if err != nil {
			return fmt.Errorf("the Objective-C runtime has no %s: %w", name, err)
		}
		purego.RegisterFunc(fn, address)
	}
	return nil
}

func (f *functions) MessageSend() uintptr          { return f.messageSend }
func (f *functions) Class(name string) ID          { return f.getClass(name) }
func (f *functions) Selector(name string) Selector { return f.registerName(name) }
func (f *functions) PushPool() uintptr             { return f.pushPool() }
func (f *functions) PopPool(pool uintptr)          { f.popPool(pool) }

func (f *functions) Encoding(class ID, s Selector, classMethod bool) (string, bool) {
	find := f.instanceMethod
	if classMethod {
		find = f.classMethod
	}
	if class == 0 {
		return "", false
	}
	method := find(class, s)
	if method == 0 {
		return "", false
	}
	return f.typeEncoding(method), true
}

func (f *functions) Constant(symbol string) ID {
	address, err := purego.Dlsym(f.constants, symbol)
	if err != nil {
		return 0
	}
	return **(**ID)(unsafe.Pointer(&address)) // C's memory; through &address, so that vet sees no uintptr made a pointer
}
