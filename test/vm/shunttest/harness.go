// SPDX-License-Identifier: GPL-2.0

// What a test sees: T to fail, skip and start threads; the registry.
// Neighbour: run.go, which runs tests each in its own process.
package main

import (
	"fmt"
	"math/rand"
	"runtime"
	"sync"
	"time"
)

type test struct {
	name    string
	fn      func(*T)
	timeout time.Duration // 0: the flag's
	joined  bool          // means nothing without the module
}

var tests []*test

// both adds a test that runs over plain TCP too, with -plain.
func both(name string, fn func(*T)) *test {
	t := &test{name: name, fn: fn}
	tests = append(tests, t)
	return t
}

// joinedOnly adds a test of the module itself.
func joinedOnly(name string, fn func(*T)) *test {
	t := both(name, fn)
	t.joined = true
	return t
}

func (t *test) within(d time.Duration) *test { t.timeout = d; return t }

type failure struct{ msg string }
type skipped struct{ msg string }

type T struct {
	name  string
	rng   *rand.Rand
	mu    sync.Mutex
	err   error
	wg    sync.WaitGroup
	where func() string // what to print when the test hangs
	undo  []func()
}

func (t *T) Fatalf(format string, a ...any) { panic(failure{fmt.Sprintf(format, a...)}) }
func (t *T) Skipf(format string, a ...any)  { panic(skipped{fmt.Sprintf(format, a...)}) }
func (t *T) Logf(format string, a ...any) {
	if opt.verbose {
		fmt.Printf("  "+format+"\n", a...)
	}
}

// Note prints a figure worth seeing also when the test passes.
func (t *T) Note(format string, a ...any) { fmt.Printf("  "+t.name+": "+format+"\n", a...) }

func (t *T) must(what string, err error) {
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// cleanup runs fn when the test ends, however it ends.
func (t *T) cleanup(fn func()) { t.undo = append(t.undo, fn) }

func (t *T) runCleanups() {
	for i := len(t.undo) - 1; i >= 0; i-- {
		t.undo[i]()
	}
}

// Go runs fn in a thread of its own; Wait reports the first error.
func (t *T) Go(fn func() error) {
	t.wg.Add(1)
	go func() {
		defer t.wg.Done()
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := fn(); err != nil {
			t.mu.Lock()
			if t.err == nil {
				t.err = err
			}
			t.mu.Unlock()
		}
	}()
}

func (t *T) Wait() {
	t.wg.Wait()
	t.mu.Lock()
	err := t.err
	t.mu.Unlock()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

// scaled is n by the -scale factor, at least 1.
func scaled(n int) int { return max(1, int(float64(n)*opt.scale)) }

// eventually waits up to d for cond, which returns "" once content.
func eventually(d time.Duration, cond func() string) string {
	for end := time.Now().Add(d); ; time.Sleep(20 * time.Millisecond) {
		why := cond()
		if why == "" || time.Now().After(end) {
			return why
		}
	}
}
