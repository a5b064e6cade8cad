package bridge

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/synapse-module/workers/engines/coreml/internal/objc"
)

// scope runs fn on one OS thread within an autorelease pool.
func (b *Bridge) scope(fn func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pool := b.rt.PushPool()
	defer b.rt.PopPool(pool)
	return fn()
}

func (b *Bridge) string(s string) objc.ID { return b.m.StringOf.toClass(s) }

// goString copies an NSString; nil is "".
func (b *Bridge) goString(s objc.ID) string { return b.m.UTF8String.to(s) }

func (b *Bridge) fileURL(path string) objc.ID { return b.m.FileURL.toClass(b.string(path)) }

// objects lists an NSArray; nil is empty.
func (b *Bridge) objects(array objc.ID) []objc.ID {
	list := make([]objc.ID, b.m.Count.to(array))
	for i := range list {
		list[i] = b.m.ObjectAtIndex.to(array, uint64(i))
	}
	return list
}

// ints reads an NSArray of NSNumber.
func (b *Bridge) ints(array objc.ID) []int {
	objects := b.objects(array)
	list := make([]int, len(objects))
	for i, o := range objects {
		list[i] = int(b.m.LongLongValue.to(o))
	}
	return list
}

// array makes an NSArray of NSNumber.
func (b *Bridge) array(values []int) objc.ID {
	a := b.m.NewArray.toClass()
	for _, v := range values {
		b.m.AddObject.to(a, b.m.NumberOf.toClass(int64(v)))
	}
	return a
}

// Error is an NSError, or a nil result that came without one.
type Error struct {
	Doing  string // what was asked for, "load"
	Text   string // Core ML's own words
	Domain string
	Code   int64
}

func (e *Error) Error() string {
	if e.Domain == "" {
		return fmt.Sprintf("Core ML could not %s and gave no reason", e.Doing)
	}
	return fmt.Sprintf("Core ML could not %s: %s (%s %d)", e.Doing, e.Text, e.Domain, e.Code)
}

func (b *Bridge) error(doing string, e objc.ID) error {
	return &Error{
		Doing: doing, Text: b.goString(b.m.ErrorDescription.to(e)),
		Domain: b.goString(b.m.ErrorDomain.to(e)), Code: b.m.ErrorCode.to(e),
	}
}

// ErrNoAnswer is Core ML not calling back in time. It may be at work for hours
// yet, so the process had better be replaced.
var ErrNoAnswer = errors.New("no answer from Core ML in time; it may still be at work, so recycle this worker")

// await starts an asynchronous call whose last argument is a completion handler,
// and returns its result, retained.
func (b *Bridge) await(ctx context.Context, doing string, start func(handler objc.ID)) (objc.ID, error) {
	type answer struct {
		value objc.ID
		err   error
	}
	answers := make(chan answer, 1)
	handler := b.rt.ResultBlock(func(value, e objc.ID) {
		a := answer{value: value}
		if value == 0 {
			a.err = b.error(doing, e)
		}
		b.m.Retain.to(value)
		answers <- a // has room: Core ML's thread never waits for us
	})
	start(handler.ID)
	select {
	case a := <-answers:
		handler.Release()
		return a.value, a.err
	case <-ctx.Done():
		return 0, fmt.Errorf("%s: %w (%w)", doing, ErrNoAnswer, context.Cause(ctx))
	}
}
