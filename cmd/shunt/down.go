// SPDX-License-Identifier: GPL-2.0

// shunt down: take the policy away, then the module if nothing uses it.
//
// Neighbours: internal/bpfstate (the policy), internal/module.

package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"shunt.dev/shunt/internal/bpfstate"
	"shunt.dev/shunt/internal/module"
	"shunt.dev/shunt/internal/proc"
	"shunt.dev/shunt/internal/table"
)

const downHelp = `Usage: shunt down [--wait TIME] [--keep-module] [--json]

Takes the policy away: no new connection is joined. Connections that are joined
live on, through their rings, until they end; while there are any, the module
stays loaded. When there are none it is unloaded, and nothing is left behind.

  --wait TIME     wait so long for joined connections to end, such as 30s;
                  exit status 1 if some are left
  --keep-module   leave the module loaded
  --json          the result as JSON

Examples:
  shunt down
  shunt down --wait 1m
`

// settle is how long offers and the last references of ended connections may
// keep the module busy, though nothing is joined.
const settle = 5 * time.Second

type downResult struct {
	Removed int    `json:"removed"`
	Module  string `json:"module"` // not_loaded, kept, unloaded or busy
	Joined  uint64 `json:"joined"`
}

func down(args []string) error {
	f := newFlags("down")
	keep := f.Bool("keep-module", false, "")
	var wait time.Duration
	f.Func("wait", "", func(value string) (err error) {
		wait, err = parseWait(value)
		return err
	})
	if err := f.parseOnly(args); err != nil {
		return err
	}
	if err := needRoot(); err != nil {
		return err
	}
	result, err := takeDown(*keep, wait)
	if err != nil {
		return err
	}
	return result.show(f.json, wait)
}

// parseWait takes seconds without a unit too.
func parseWait(value string) (time.Duration, error) {
	t, err := time.ParseDuration(value)
	if err != nil {
		t, err = time.ParseDuration(value + "s")
	}
	if err != nil || t < 0 {
		return 0, fmt.Errorf("%q is not a time: write one such as 30s", value)
	}
	return t, nil
}

func takeDown(keep bool, wait time.Duration) (downResult, error) {
	unlock, err := bpfstate.Lock()
	if errors.Is(err, os.ErrNotExist) {
		unlock, err = func() {}, nil // no BPF file system, so no policy
	}
	if err != nil {
		return downResult{}, err
	}
	defer unlock()
	change, err := bpfstate.Remove()
	if err != nil {
		return downResult{}, err
	}
	result := downResult{Removed: change.Removed}
	result.Module, result.Joined, err = unload(keep, wait)
	return result, err
}

func unload(keep bool, wait time.Duration) (state string, joined uint64, err error) {
	if !module.Loaded() {
		return "not_loaded", 0, nil
	}
	start := time.Now()
	for {
		joined = joinedNow()
		if keep && (joined == 0 || time.Since(start) >= wait) {
			return "kept", joined, nil
		}
		if !keep {
			err = module.Unload()
		}
		if !keep && !errors.Is(err, module.ErrBusy) {
			return "unloaded", 0, err
		}
		patience := wait
		if joined == 0 {
			patience = max(wait, settle)
		}
		if time.Since(start) >= patience {
			return "busy", joined, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// joinedNow counts joined connections; unreadable counters count as none, and
// the module itself refuses to go while it is used.
func joinedNow() uint64 {
	s, err := proc.ReadStats()
	if err != nil {
		return 0
	}
	return s.Get("joined")
}

func (r downResult) show(asJSON bool, wait time.Duration) error {
	if asJSON {
		if err := printJSON(r); err != nil {
			return err
		}
	} else {
		fmt.Println(r.policyText() + "; " + r.moduleText())
	}
	if wait > 0 && r.Joined > 0 {
		return errSilent
	}
	return nil
}

func (r downResult) policyText() string {
	if r.Removed == 0 {
		return "no policy was on"
	}
	return "policy off on " + table.Count(uint64(r.Removed), "cgroup")
}

func (r downResult) moduleText() string {
	switch r.Module {
	case "not_loaded":
		return "the module was not loaded"
	case "unloaded":
		return "module unloaded"
	}
	switch {
	case r.Joined > 0:
		return fmt.Sprintf("%s still joined and live on until they end, the module stays loaded (shunt down unloads it later)", table.Count(r.Joined, "connection"))
	case r.Module == "kept":
		return "the module stays loaded, as asked"
	}
	return "the module is still in use by sockets or programs that are not ours, it stays loaded (shunt down unloads it later)"
}
