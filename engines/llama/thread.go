package llama

import "runtime"

// thread runs functions one after another on one thread of the operating system.
type thread struct{ calls chan func() }

func newThread() *thread {
	t := &thread{calls: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for call := range t.calls {
			call()
		}
	}()
	return t
}

// do runs f on the thread and waits for it. A panic of f is the caller's.
func (t *thread) do(f func()) {
	done := make(chan any)
	t.calls <- func() {
		defer func() { done <- recover() }()
		f()
	}
	if r := <-done; r != nil {
		panic(r)
	}
}
