// SPDX-License-Identifier: GPL-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shunt.dev/shunt/internal/policy"
)

// Every mistake on the command line is one clear line and exit status 2, before
// anything is done.
func TestEachMistakeIsOneLine(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.policy")
	if err := os.WriteFile(bad, []byte("allow port=80\ndeny prt=1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"":                              "which verb",
		"upp":                           `no verb "upp"`,
		"help upp":                      `no verb "upp"`,
		"help up down":                  "one verb",
		"--jsn":                         "no verb",
		"up":                            "no rule given",
		"up --jsn":                      "no flag --jsn",
		"up --port":                     "--port needs a value",
		"up --port 6379":                "no cgroup given",
		"up --port 6379x":               `port "6379x"`,
		"up --port 1 --cgroup /nowhere": "cgroup /nowhere: no such file",
		"up --port 1 --cgroup /etc":     "not a cgroup v2 folder",
		"up --port 1 system.slice":      "given by --cgroup",
		"up --scope here --all":         "write loopback or any",
		"up --busy-poll 50 --all":       "with its unit",
		"up --ring-size 5000 --all":     "power of two",
		"up --all --deny port=22":       "does nothing",
		"up --all --port 80":            "can never match",
		"up --deny port=22":             "only deny rules",
		"up --allow port=1;end=remote":  "write server",
		"up --policy /nowhere":          "/nowhere",
		"up --policy " + bad:            "bad.policy:2:",
		"up --dry-run=maybe --all":      "--dry-run is a switch",
		"down now":                      `"now" has no meaning`,
		"down --wait soon":              "write one such as 30s",
		"status --verbose":              "no flag --verbose",
		"list all":                      "has no meaning",
		"stats ---x":                    "bad flag syntax",
		"doctor --fix":                  "no flag --fix",
		"version 2":                     "has no meaning",
	} {
		var args []string
		for _, word := range strings.Fields(line) {
			args = append(args, strings.ReplaceAll(word, ";", " "))
		}
		err := run(args)
		var mistake usageError
		if !errors.As(err, &mistake) {
			t.Errorf("shunt %s: %v is not a usage error", line, err)
			continue
		}
		if text := oneLine(err.Error()); !strings.Contains(text, want) || strings.Contains(text, "\n") || strings.Contains(text, "-policy:") {
			t.Errorf("shunt %s: %q, want %q in it", line, text, want)
		}
	}
}

func TestDefaultsMayFollowTheirRules(t *testing.T) {
	p := newUpParser()
	words, err := p.parse(strings.Fields("--port 80 --scope any --cgroup a b --busy-poll 50us --deny port=22 --all"))
	if err != nil || len(words) != 1 || words[0] != "b" {
		t.Fatalf("%v, %v", words, err)
	}
	rules, err := p.rules()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"allow port=80 scope=any busy-poll=50us", "deny port=22 scope=any", "allow all scope=any busy-poll=50us"}
	for i, text := range texts(rules) {
		if text != want[i] {
			t.Errorf("rule %d: %s, want %s", i+1, text, want[i])
		}
	}
}

// The rules that the help shows are rules that work.
func TestHelpShowsRulesThatWork(t *testing.T) {
	for _, line := range strings.Split(upHelp, "\n") {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "shunt up ") || strings.Contains(line, "--policy") {
			continue
		}
		p := newUpParser()
		if _, err := p.parse(splitQuoted(line)[2:]); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if rules, err := p.rules(); err != nil || len(rules) == 0 || len(rules) > policy.MaxRules {
			t.Errorf("%s: %v, %v", line, rules, err)
		}
	}
}

func splitQuoted(line string) []string {
	var words []string
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}
