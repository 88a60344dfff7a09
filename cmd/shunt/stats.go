// SPDX-License-Identifier: GPL-2.0

// shunt stats: every counter of the module, with its meaning.
//
// Neighbours: internal/proc (reads and explains them).

package main

import (
	"os"

	"shunt.dev/shunt/internal/proc"
	"shunt.dev/shunt/internal/table"
)

const statsHelp = `Usage: shunt stats [--json]

Shows every counter of the module since it was loaded, with its meaning.
refused_* say why sockets were not joined, tcp_bytes_* why bytes of joined
connections went by TCP. Programs may read /proc/tcp_shunt/stats themselves.

Example:
  watch -d shunt stats
`

func stats(args []string) error {
	f := newFlags("stats")
	if err := f.parseOnly(args); err != nil {
		return err
	}
	s, err := proc.ReadStats()
	if err != nil {
		return err
	}
	if f.json {
		values := map[string]uint64{}
		for _, c := range s {
			values[c.Name] = c.Value
		}
		return printJSON(values)
	}
	var t table.Table
	t.Row("COUNTER", "VALUE", "MEANING")
	for _, c := range s {
		t.Row(c.Name, c.Value, proc.Explain(c.Name))
	}
	return t.Write(os.Stdout)
}
