// SPDX-License-Identifier: GPL-2.0

// What the operator wrote after shunt up, checked before anything is done.
//
// Neighbours: up.go (uses it), internal/policy (rules), internal/cgroup.

package main

import (
	"fmt"
	"time"

	"shunt.dev/shunt/internal/cgroup"
	"shunt.dev/shunt/internal/module"
	"shunt.dev/shunt/internal/policy"
)

type upOptions struct {
	groups   []cgroup.Group
	rules    []policy.Rule
	ringSize uint64
	dryRun   bool
	json     bool
}

// ruleSource is one rule flag. All are read after the last flag, because
// defaults may follow the rules that they are for.
type ruleSource func(policy.Defaults) ([]policy.Rule, error)

type upParser struct {
	*flags
	paths    []string
	sources  []ruleSource
	defaults policy.Defaults
	ringSize uint64
	root     bool
	dryRun   bool
}

func newUpParser() *upParser {
	p := &upParser{flags: newFlags("up")}
	p.Func("cgroup", "", p.addPath)
	p.BoolVar(&p.root, "root-cgroup", false, "")
	p.BoolVar(&p.dryRun, "dry-run", false, "")
	p.Func("scope", "", p.setScope)
	p.Func("busy-poll", "", p.setBusyPoll)
	p.Func("ring-size", "", p.setRingSize)
	p.BoolFunc("all", "", p.addAll)
	p.Func("port", "", p.addText("allow port="))
	p.Func("allow", "", p.addText("allow "))
	p.Func("deny", "", p.addText("deny "))
	p.Func("policy", "", p.addFile)
	return p
}

func parseUp(args []string) (upOptions, error) {
	p := newUpParser()
	words, err := p.parse(args)
	if err != nil {
		return upOptions{}, err
	}
	for _, w := range words {
		if len(p.paths) == 0 {
			return upOptions{}, usage("%q has no meaning here: cgroups are given by --cgroup, see shunt up --help", w)
		}
		p.paths = append(p.paths, w)
	}
	rules, err := p.rules()
	if err != nil {
		return upOptions{}, usageError{err}
	}
	groups, err := p.groups()
	if err != nil {
		return upOptions{}, usageError{err}
	}
	return upOptions{groups, rules, p.ringSize, p.dryRun, p.json}, nil
}

func (p *upParser) rules() ([]policy.Rule, error) {
	var rules []policy.Rule
	for _, source := range p.sources {
		more, err := source(p.defaults)
		if err != nil {
			return nil, err
		}
		rules = append(rules, more...)
	}
	return rules, policy.Check(rules)
}

func (p *upParser) groups() ([]cgroup.Group, error) {
	if p.root && len(p.paths) == 0 {
		p.paths = []string{"."}
	}
	if len(p.paths) == 0 {
		return nil, fmt.Errorf("no cgroup given: add --cgroup system.slice, or --root-cgroup for the whole machine")
	}
	var groups []cgroup.Group
	for _, path := range p.paths {
		g, err := cgroup.Find(path)
		if err != nil {
			return nil, err
		}
		if g.Root && !p.root {
			return nil, fmt.Errorf("%s is the root cgroup, which is the whole machine: choose one below it, or add --root-cgroup", g.Path)
		}
		groups = append(groups, g)
	}
	kept, dropped := cgroup.Distinct(groups)
	warnDropped(dropped)
	return kept, nil
}

func (p *upParser) addPath(value string) error {
	p.paths = append(p.paths, value)
	return nil
}

func (p *upParser) addText(prefix string) func(string) error {
	return func(value string) error {
		p.sources = append(p.sources, func(def policy.Defaults) ([]policy.Rule, error) {
			return policy.Parse(prefix+value, def)
		})
		return nil
	}
}

func (p *upParser) addAll(string) error {
	return p.addText("allow ")("all")
}

func (p *upParser) addFile(path string) error {
	p.sources = append(p.sources, func(def policy.Defaults) ([]policy.Rule, error) {
		return policy.ParseFile(path, def)
	})
	return nil
}

func (p *upParser) setScope(value string) (err error) {
	p.defaults.Scope, err = policy.ParseScope(value)
	return err
}

func (p *upParser) setBusyPoll(value string) (err error) {
	var t time.Duration
	t, err = policy.ParseBusyPoll(value)
	p.defaults.BusyPoll = t
	return err
}

func (p *upParser) setRingSize(value string) (err error) {
	p.ringSize, err = module.ParseRingSize(value)
	return err
}
