// SPDX-License-Identifier: GPL-2.0

// Running: the parent switches the policy on, starts every test in a process of
// its own (a hang or a crash costs one test, and its end closes its sockets),
// and then checks that the module holds nothing any more.
// Neighbours: harness.go (T), stats.go (the module's counters).
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	exitFail = 1
	exitSkip = 77

	joinedCgroup = "/sys/fs/cgroup/shunttest"
	plainCgroup  = "/sys/fs/cgroup/shuntplain"
)

func runAll() int {
	picked, err := pick()
	if err != nil {
		fmt.Fprintf(os.Stderr, "shunttest: %v\n", err)
		return 2
	}
	if opt.seed == 0 {
		opt.seed = time.Now().UnixNano() % 1000000
	}
	fmt.Printf("seed %d trigger %s plain %v\n", opt.seed, opt.trigger, opt.plain)
	if !opt.plain {
		if err := policyUp(); err != nil {
			fmt.Fprintf(os.Stderr, "shunttest: %v\n", err)
			return 2
		}
	}
	var n [3]int // passed, failed, skipped
	for _, t := range picked {
		n[runOne(t)]++
	}
	if !opt.plain {
		if err := policyDown(); err != nil {
			fmt.Printf("FAIL policy-down %v\n", err)
			n[1]++
		}
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", n[0], n[1], n[2])
	if n[1] > 0 {
		return 1
	}
	return 0
}

func pick() ([]*test, error) {
	run, err := regexp.Compile(opt.run)
	if err != nil {
		return nil, fmt.Errorf("-run %s: %v", opt.run, err)
	}
	skip, err := regexp.Compile(opt.skip)
	if err != nil {
		return nil, fmt.Errorf("-skip %s: %v", opt.skip, err)
	}
	var out []*test
	for _, t := range tests {
		if run.MatchString(t.name) && (opt.skip == "" || !skip.MatchString(t.name)) {
			out = append(out, t)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("-run %q matches no test; -list shows them", opt.run)
	}
	return out, nil
}

// policyUp makes the two cgroups, one joined and one plain, and loads the module.
func policyUp() error {
	for _, d := range []string{joinedCgroup, plainCgroup} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return fmt.Errorf("making the test's cgroup: %v", err)
		}
	}
	cmd := exec.Command("modprobe", "tcp_shunt")
	if opt.trigger == "policy" {
		cmd = exec.Command("shunt", "up", "--cgroup", joinedCgroup, "--all", "--scope", "any")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %v: %s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

func policyDown() error {
	cmd := exec.Command("rmmod", "tcp_shunt")
	if opt.trigger == "policy" {
		cmd = exec.Command("shunt", "down")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %v: %s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// runOne runs t in a child and prints its verdict: 0 passed, 1 failed, 2 skipped.
func runOne(t *test) int {
	limit := t.timeout
	if limit == 0 {
		limit = opt.timeout
	}
	if t.joined && opt.plain {
		fmt.Printf("SKIP %s%s (needs the module)\n", opt.prefix, t.name)
		return 2
	}
	gauges, uses := readCounters(), modUseCount()
	start := time.Now()
	code, reason := runInChild(t, limit)
	took := time.Since(start).Seconds()
	if code != 0 && !opt.plain {
		leaveTight() // a killed test cleans up nothing
	}
	if code == 0 && !opt.plain {
		if leak := leaks(gauges, uses); leak != "" {
			code, reason = exitFail, "left behind: "+leak
		}
	}
	switch code {
	case 0:
		fmt.Printf("PASS %s%s (%.1fs)\n", opt.prefix, t.name, took)
		return 0
	case exitSkip:
		fmt.Printf("SKIP %s%s (%s)\n", opt.prefix, t.name, reason)
		return 2
	}
	fmt.Printf("FAIL %s%s (%.1fs) %s\n", opt.prefix, t.name, took, reason)
	return 1
}

func runInChild(t *test, limit time.Duration) (int, string) {
	r, w, err := os.Pipe()
	if err != nil {
		return exitFail, err.Error()
	}
	args := append(os.Args[1:len(os.Args):len(os.Args)], "-child", t.name,
		"-timeout", limit.String(), "-seed", fmt.Sprint(opt.seed))
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return exitFail, err.Error()
	}
	w.Close()
	// The child watches its own time; this is for one that cannot even die.
	killer := time.AfterFunc(limit+15*time.Second, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	err = cmd.Wait()
	killer.Stop()
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // helpers it left
	r.SetReadDeadline(time.Now().Add(time.Second))
	reason, _ := io.ReadAll(r)
	var ee *exec.ExitError
	switch {
	case err == nil:
		return 0, ""
	case errors.As(err, &ee) && ee.ExitCode() == exitSkip:
		return exitSkip, string(reason)
	case len(reason) > 0:
		return exitFail, string(reason)
	}
	return exitFail, err.Error()
}

// runChild is the process of one test.
func runChild(name string) (code int) {
	verdict := os.NewFile(3, "verdict")
	syscall.CloseOnExec(3)
	var t *test
	for _, x := range tests {
		if x.name == name {
			t = x
		}
	}
	if t == nil {
		fmt.Fprintf(verdict, "no test of that name")
		return exitFail
	}
	ht := &T{name: name, rng: rand.New(rand.NewSource(opt.seed))}
	time.AfterFunc(opt.timeout, func() {
		where := ""
		if ht.where != nil {
			where = ht.where()
		}
		fmt.Fprintf(verdict, "timed out; %s", where)
		printBlocked()
		os.Exit(exitFail)
	})
	watchSignals()
	defer func() {
		ht.runCleanups()
		switch r := recover().(type) {
		case nil:
		case failure:
			fmt.Fprint(verdict, r.msg)
			code = exitFail
		case skipped:
			fmt.Fprint(verdict, r.msg)
			code = exitSkip
		default:
			buf := make([]byte, 8192)
			buf = buf[:runtime.Stack(buf, false)]
			fmt.Fprintf(verdict, "panic: %v\n%s", r, buf)
			code = exitFail
		}
	}()
	t.fn(ht)
	return 0
}

// printBlocked shows the kernel stacks of threads that wait in a socket call.
func printBlocked() {
	stacks, _ := filepath.Glob("/proc/self/task/*/stack")
	for _, p := range stacks {
		b, _ := os.ReadFile(p)
		if bytes.Contains(b, []byte("tcp")) || bytes.Contains(b, []byte("shunt")) || bytes.Contains(b, []byte("sock")) {
			fmt.Printf("  blocked: %s\n%s", p, b)
		}
	}
}
