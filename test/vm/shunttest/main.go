// SPDX-License-Identifier: GPL-2.0

// shunttest drives TCP sockets by raw system calls, over plain TCP and over
// joined sockets, and says where the two differ. It runs inside the test
// machine as root; with -plain it needs no module and compares plain TCP with
// itself, which is how a test proves that it is steady.
//
// Neighbours: run.go runs each test in a process of its own, harness.go is what
// a test sees, env.go and ops.go are the sockets of one side of a comparison,
// stats.go reads /proc/tcp_shunt; the other files are the tests.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

type options struct {
	run, skip string
	prefix    string
	list      bool
	plain     bool
	trigger   string
	scale     float64
	seed      int64
	settle    time.Duration
	timeout   time.Duration
	verbose   bool
	child     string
	helper    string
}

var opt options

func main() {
	withoutPreemption()
	flag.StringVar(&opt.run, "run", "", "run only the tests whose name matches this `regexp`")
	flag.StringVar(&opt.skip, "skip", "", "leave out the tests whose name matches this `regexp`")
	flag.BoolVar(&opt.list, "list", false, "list the tests and stop")
	flag.BoolVar(&opt.plain, "plain", false, "compare plain TCP with itself; needs no module")
	flag.StringVar(&opt.trigger, "trigger", "policy", "how sockets are joined: `policy` (shunt up) or ulp (setsockopt)")
	flag.Float64Var(&opt.scale, "scale", 1, "multiply the sizes of the long tests by this `factor`")
	flag.Int64Var(&opt.seed, "seed", 0, "random `seed`; 0 takes a new one and prints it")
	flag.DurationVar(&opt.settle, "settle", 40*time.Millisecond, "`time` given to TCP between two steps of a comparison")
	flag.DurationVar(&opt.timeout, "timeout", 90*time.Second, "`time` a test may take, unless it asks for more")
	flag.BoolVar(&opt.verbose, "v", false, "print what each side saw")
	flag.StringVar(&opt.child, "child", "", "(internal) run one test in this process")
	flag.StringVar(&opt.helper, "helper", "", "(internal) be a process that a test needs")
	flag.StringVar(&opt.prefix, "prefix", "", "`text` to print before the names of tests")
	flag.Parse()
	triggerOfAll = opt.trigger

	switch {
	case opt.trigger != "policy" && opt.trigger != "ulp":
		fmt.Fprintf(os.Stderr, "shunttest: -trigger %q: say policy or ulp\n", opt.trigger)
		os.Exit(2)
	case opt.helper != "":
		runHelper(opt.helper, flag.Args())
	case opt.list:
		for _, t := range tests {
			fmt.Println(t.name)
		}
	case opt.child != "":
		os.Exit(runChild(opt.child))
	default:
		os.Exit(runAll())
	}
}

// withoutPreemption starts the program again with the runtime's own signals
// off: SIGURG to a thread in recv(2) would be an interruption nobody asked for.
func withoutPreemption() {
	if strings.Contains(os.Getenv("GODEBUG"), "asyncpreemptoff=1") {
		return
	}
	env := append(os.Environ(), "GODEBUG=asyncpreemptoff=1")
	err := syscall.Exec("/proc/self/exe", os.Args, env)
	fmt.Fprintf(os.Stderr, "shunttest: cannot start again: %v\n", err)
	os.Exit(1)
}
