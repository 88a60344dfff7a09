// SPDX-License-Identifier: GPL-2.0

// shunt doctor: can this machine run it, and what to do if not.
//
// Neighbours: internal/doctor (the checks).

package main

import (
	"fmt"

	"shunt.dev/shunt/internal/doctor"
)

const doctorHelp = `Usage: shunt doctor [--json]

Looks at everything that Shunt needs of this machine, and says in plain words
what is missing and what to do. Changes nothing. Exit status 1 if there is a
problem.

Example:
  sudo shunt doctor && sudo shunt up --cgroup system.slice --port 6379
`

type doctorResult struct {
	Healthy  bool             `json:"healthy"`
	Findings []doctor.Finding `json:"findings"`
}

func doctorVerb(args []string) error {
	f := newFlags("doctor")
	if err := f.parseOnly(args); err != nil {
		return err
	}
	findings := doctor.Run(doctor.ThisHost())
	r := doctorResult{doctor.Healthy(findings), findings}
	if f.json {
		if err := printJSON(r); err != nil {
			return err
		}
	} else {
		r.show()
	}
	if !r.Healthy {
		return errSilent
	}
	return nil
}

func (r doctorResult) show() {
	for _, f := range r.Findings {
		fmt.Printf("%-8s %-18s  %s\n", f.Level, f.Check, f.Text)
		if f.Fix != "" {
			fmt.Printf("%-8s %-18s  -> %s\n", "", "", f.Fix)
		}
	}
	if r.Healthy {
		fmt.Println("This machine can run Shunt.")
	} else {
		fmt.Println("This machine cannot run Shunt as it is: see the problems above.")
	}
}
