// SPDX-License-Identifier: GPL-2.0

// shunt version.

package main

import (
	"fmt"

	"shunt.dev/shunt/internal/module"
)

// version is set by the build: -ldflags "-X main.version=1.2.3".
var version = "0.1.0"

const versionHelp = `Usage: shunt version [--json]

Shows the version of this command and of the module, if that is loaded.
`

func versionVerb(args []string) error {
	f := newFlags("version")
	if err := f.parseOnly(args); err != nil {
		return err
	}
	loaded := module.Version()
	if f.json {
		return printJSON(struct {
			Version string `json:"version"`
			Module  string `json:"module"`
		}{version, loaded})
	}
	if loaded == "" {
		loaded = "not loaded"
	}
	fmt.Printf("shunt %s, module %s\n", version, loaded)
	return nil
}
