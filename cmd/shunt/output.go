// SPDX-License-Identifier: GPL-2.0

// What every verb needs to show something: JSON for programs, lines for people.

package main

import (
	"encoding/json"
	"fmt"
	"os"
)

func printJSON(value any) error {
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(value)
}

// say writes a line that is not the verb's result, so it must not mix with it.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

func percent(share float64) string {
	return fmt.Sprintf("%.1f%%", 100*share)
}
