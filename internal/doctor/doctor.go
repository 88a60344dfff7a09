// SPDX-License-Identifier: GPL-2.0

// Package doctor says in plain words whether this machine can run Shunt, and
// what to do where it cannot.
//
//	doctor.go  what a check is, and the list of them
//	host.go    where facts come from: files, so that tests can lay out others
//	kernel.go  the kernel's version, type information and JIT
//	module.go  the kernel module: installed, loaded, signed
//	system.go  rights, cgroups, the BPF file system, leftovers
//
// Neighbours: cmd/shunt (doctor).
package doctor

// Level is how much a finding matters.
type Level string

// A problem stops Shunt from working. A note is worth knowing.
const (
	OK      Level = "ok"
	Note    Level = "note"
	Problem Level = "problem"
)

// Finding is what one check found.
type Finding struct {
	Check string `json:"check"`
	Level Level  `json:"level"`
	Text  string `json:"text"`
	Fix   string `json:"fix,omitempty"`
}

type check struct {
	name string
	run  func(Host) Finding
}

var checks = []check{
	{"rights", checkRights},
	{"kernel", checkKernel},
	{"kernel types (BTF)", checkBTF},
	{"BPF JIT", checkJIT},
	{"kernel config", checkConfig},
	{"cgroup v2", checkCgroup},
	{"BPF file system", checkBpffs},
	{"module installed", checkInstalled},
	{"module signing", checkSigning},
	{"module loaded", checkLoaded},
	{"policy", checkPolicy},
}

// Run makes every check.
func Run(h Host) []Finding {
	var findings []Finding
	for _, c := range checks {
		f := c.run(h)
		f.Check = c.name
		findings = append(findings, f)
	}
	return findings
}

// Healthy tells whether no finding is a problem.
func Healthy(findings []Finding) bool {
	for _, f := range findings {
		if f.Level == Problem {
			return false
		}
	}
	return true
}

func ok(text string) Finding {
	return Finding{Level: OK, Text: text}
}

func note(text, fix string) Finding {
	return Finding{Level: Note, Text: text, Fix: fix}
}

func problem(text, fix string) Finding {
	return Finding{Level: Problem, Text: text, Fix: fix}
}
