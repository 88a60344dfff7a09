// SPDX-License-Identifier: GPL-2.0

// shunt switches the joining of local TCP connections on and off, and shows
// what it does. Each verb is a file of its own here; what a verb knows how to
// do is in internal/.
//
// Exit status: 0 done, 1 failed or found a problem, 2 used wrongly. A failure
// is one line on stderr that says what to do.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

type verb struct {
	name    string
	summary string
	help    string
	run     func(args []string) error
}

// verbs returns the list as a function, because help is a verb that shows it.
func verbs() []verb {
	return []verb{
		{"up", "join the connections that the rules choose", upHelp, up},
		{"down", "stop joining, and unload the module when it is idle", downHelp, down},
		{"status", "what is on, with which rules, and how much goes through rings", statusHelp, status},
		{"list", "the joined connections: processes, bytes, fallbacks", listHelp, list},
		{"stats", "every counter, with its meaning", statsHelp, stats},
		{"doctor", "can this machine run it, and what to do if not", doctorHelp, doctorVerb},
		{"version", "the versions of this command and of the module", versionHelp, versionVerb},
		{"help", "help for a verb: shunt help up", "", help},
	}
}

const overview = `shunt joins local TCP connections: what one process sends goes through a ring in
the kernel to the other, and TCP carries it whenever the ring cannot. The
processes notice nothing but speed.

Usage: shunt VERB [FLAG...]

%s
Start here (as root):
  shunt doctor                                     can this machine run it?
  shunt up --cgroup system.slice --port 6379       join Redis to its clients
  shunt status                                     see that it works
  shunt down                                       leave nothing behind

shunt VERB --help tells more, with examples. Exit status: 0 done, 1 failed or
found a problem, 2 used wrongly.
`

func main() {
	os.Exit(exitStatus(run(os.Args[1:])))
}

func run(args []string) error {
	if len(args) == 0 {
		return usage("which verb? Try: shunt up, down, status, list, stats, doctor or shunt --help")
	}
	switch args[0] {
	case "-h", "-help", "--help":
		return help(nil)
	case "-version", "--version":
		return versionVerb(nil)
	}
	v, err := findVerb(args[0])
	if err != nil {
		return err
	}
	if err := v.run(args[1:]); errors.Is(err, flag.ErrHelp) {
		fmt.Print(v.help)
	} else if err != nil {
		return fmt.Errorf("%s: %w", v.name, err)
	}
	return nil
}

func findVerb(name string) (verb, error) {
	for _, v := range verbs() {
		if v.name == name {
			return v, nil
		}
	}
	return verb{}, usage("there is no verb %q: use up, down, status, list, stats, doctor, version or help", name)
}

func help(args []string) error {
	if len(args) > 1 {
		return usage("help takes one verb: shunt help up")
	}
	if len(args) == 1 && args[0] != "help" {
		v, err := findVerb(args[0])
		if err == nil {
			fmt.Print(v.help)
		}
		return err
	}
	var lines strings.Builder
	for _, v := range verbs() {
		fmt.Fprintf(&lines, "  %-8s %s\n", v.name, v.summary)
	}
	fmt.Printf(overview, lines.String())
	return nil
}
