// SPDX-License-Identifier: GPL-2.0

// How failures reach the operator: one line, and the right exit status.

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// usageError is the operator's mistake: exit status 2.
type usageError struct{ error }

func usage(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// errSilent fails without another word: what is wrong was shown already.
var errSilent = errors.New("")

func exitStatus(err error) int {
	var mistake usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errSilent):
		return 1
	}
	fmt.Fprintln(os.Stderr, "shunt: "+oneLine(err.Error()))
	if errors.As(err, &mistake) {
		return 2
	}
	return 1
}

func oneLine(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ")
}

// needRoot refuses early what the kernel would refuse late and unclearly.
func needRoot() error {
	if os.Geteuid() == 0 {
		return nil
	}
	return fmt.Errorf("this needs root: run it with sudo")
}
