// SPDX-License-Identifier: GPL-2.0

// Rules from a file: one rule a line, # starts a comment, empty lines are
// skipped. The grammar of a line is Parse's.
//
// Neighbours: parse.go (one line).

package policy

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
)

// ParseFile reads the rules of a policy file.
func ParseFile(path string, def Defaults) ([]Rule, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ParseLines(path, f, def)
}

// ParseLines reads rules and calls their source name in errors.
func ParseLines(name string, in io.Reader, def Defaults) ([]Rule, error) {
	var rules []Rule
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if strings.TrimSpace(text) == "" {
			continue
		}
		more, err := Parse(text, def)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		rules = append(rules, more...)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(rules) == 0 {
		return nil, fmt.Errorf("%s: no rule in it: write one a line, such as %q", name, "allow port=6379")
	}
	return rules, nil
}
