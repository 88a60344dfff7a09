// SPDX-License-Identifier: GPL-2.0

// Flags as every verb reads them: anywhere on the line, with one or two
// dashes, and with mistakes told in one line of our own words.

package main

import (
	"errors"
	"flag"
	"io"
	"strings"
)

type flags struct {
	*flag.FlagSet
	json bool
}

func newFlags(name string) *flags {
	f := &flags{FlagSet: flag.NewFlagSet(name, flag.ContinueOnError)}
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	f.BoolVar(&f.json, "json", false, "")
	return f
}

// parse reads flags and returns the words between them.
func (f *flags) parse(args []string) ([]string, error) {
	var words []string
	for {
		if err := f.Parse(args); err != nil {
			return nil, mistake(err)
		}
		if f.NArg() == 0 {
			return words, nil
		}
		words = append(words, f.Arg(0))
		args = f.Args()[1:]
	}
}

// parseOnly reads flags where no other word has a meaning.
func (f *flags) parseOnly(args []string) error {
	words, err := f.parse(args)
	if err == nil && len(words) > 0 {
		return usage("%q has no meaning here: see shunt %s --help", words[0], f.Name())
	}
	return err
}

// mistake puts the flag package's words into ours.
func mistake(err error) error {
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	text := err.Error()
	if name, found := strings.CutPrefix(text, "flag provided but not defined: -"); found {
		return usage("there is no flag --%s: see --help", name)
	}
	if name, found := strings.CutPrefix(text, "flag needs an argument: -"); found {
		return usage("--%s needs a value: see --help", name)
	}
	if _, rest, found := strings.Cut(text, " for flag -"); found {
		return usage("--%s", rest)
	}
	if value, name, found := strings.Cut(text, " for -"); found {
		name, _, _ = strings.Cut(name, ":")
		return usage("--%s is a switch without a value, %s has no meaning", name, strings.TrimPrefix(value, "invalid boolean value "))
	}
	return usage("%s", text)
}
