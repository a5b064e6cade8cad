package bridge

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/ebitengine/purego"

	"github.com/synapse-module/workers/engines/coreml/internal/objc"
)

// void is the result of a message that has none: what stands in the register.
type void uintptr

// bound is what a message has once it was looked up. The function that sends it
// is registered once with the types of its encoding: registering at every send,
// as purego's objc.Send does, costs more than the message.
type bound struct {
	selector objc.Selector
	class    objc.ID // receiver of a class's message
}

// method0 to method3 are messages of so many arguments: A, B, C in order and the
// result R. to sends to an object, toClass to the class of a + message.
type (
	method0[R any] struct {
		bound
		send func(objc.ID, objc.Selector) R
	}
	method1[A, R any] struct {
		bound
		send func(objc.ID, objc.Selector, A) R
	}
	method2[A, B, R any] struct {
		bound
		send func(objc.ID, objc.Selector, A, B) R
	}
	method3[A, B, C, R any] struct {
		bound
		send func(objc.ID, objc.Selector, A, B, C) R
	}
)

func (m *method0[R]) to(o objc.ID) R { return m.send(o, m.selector) }
func (m *method0[R]) toClass() R     { return m.send(m.class, m.selector) }

func (m *method1[A, R]) to(o objc.ID, a A) R { return m.send(o, m.selector, a) }
func (m *method1[A, R]) toClass(a A) R       { return m.send(m.class, m.selector, a) }

func (m *method2[A, B, R]) to(o objc.ID, a A, b B) R { return m.send(o, m.selector, a, b) }
func (m *method2[A, B, R]) toClass(a A, b B) R       { return m.send(m.class, m.selector, a, b) }

func (m *method3[A, B, C, R]) to(o objc.ID, a A, b B, c C) R {
	return m.send(o, m.selector, a, b, c)
}

func (m *method3[A, B, C, R]) toClass(a A, b B, c C) R {
	return m.send(m.class, m.selector, a, b, c)
}

func (m *method0[R]) bind(b bound, address uintptr) {
	m.bound = b
	purego.RegisterFunc(&m.send, address)
}

func (m *method1[A, R]) bind(b bound, address uintptr) {
	m.bound = b
	purego.RegisterFunc(&m.send, address)
}

func (m *method2[A, B, R]) bind(b bound, address uintptr) {
	m.bound = b
	purego.RegisterFunc(&m.send, address)
}

func (m *method3[A, B, C, R]) bind(b bound, address uintptr) {
	m.bound = b
	purego.RegisterFunc(&m.send, address)
}

func (m *method0[R]) signature() reflect.Type          { return reflect.TypeOf(m.send) }
func (m *method1[A, R]) signature() reflect.Type       { return reflect.TypeOf(m.send) }
func (m *method2[A, B, R]) signature() reflect.Type    { return reflect.TypeOf(m.send) }
func (m *method3[A, B, C, R]) signature() reflect.Type { return reflect.TypeOf(m.send) }

// sender is any of the methods above.
type sender interface {
	bind(b bound, address uintptr)
	signature() reflect.Type
}

// Message is one line of the table: what is sent, and since when.
type Message struct {
	Class       string
	ClassMethod bool
	Selector    string
	Encoding    string // without frame offsets
	Since       string // the macOS that brought it, "14.4"

	sender sender
}

func (m Message) String() string {
	sign := "-"
	if m.ClassMethod {
		sign = "+"
	}
	return fmt.Sprintf("%s[%s %s]", sign, m.Class, m.Selector)
}

// list reads the table off the tags of t's fields.
func (t *messages) list() []Message {
	v := reflect.ValueOf(t).Elem()
	all := make([]Message, v.NumField())
	for i := range all {
		f := strings.Fields(v.Type().Field(i).Tag.Get("objc"))
		all[i] = Message{
			ClassMethod: f[0] == "+", Class: f[1], Selector: f[2], Encoding: f[3], Since: f[4],
			sender: v.Field(i).Addr().Interface().(sender),
		}
	}
	return all
}
