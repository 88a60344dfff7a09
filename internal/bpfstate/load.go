// SPDX-License-Identifier: GPL-2.0

// The program with its rules in the kernel, not attached yet. Each policy is a
// program of its own with maps of its own: a half-written policy is never seen
// by a connection.

package bpfstate

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"

	"shunt.dev/shunt/internal/bpfobj"
	"shunt.dev/shunt/internal/policy"
)

func load(rules []policy.Rule) (*bpfobj.PolicyObjects, error) {
	objs := &bpfobj.PolicyObjects{}
	if err := bpfobj.LoadPolicyObjects(objs, nil); err != nil {
		return nil, explain(err)
	}
	for i, r := range rules {
		if err := objs.ShuntRules.Put(uint32(i), r.Compile()); err != nil {
			objs.Close()
			return nil, fmt.Errorf("writing rule %d: %w", i+1, err)
		}
	}
	if err := objs.ShuntRules.Freeze(); err != nil {
		objs.Close()
		return nil, fmt.Errorf("freezing the rules: %w", err)
	}
	return objs, nil
}

// explain turns the loader's words into one line that says what to do.
func explain(err error) error {
	var verifier *ebpf.VerifierError
	switch {
	case errors.As(err, &verifier):
		return fmt.Errorf("the kernel refused the policy program (%w): run shunt doctor", firstCause(verifier))
	case errors.Is(err, ebpf.ErrNotSupported):
		return fmt.Errorf("the policy program does not find bpf_shunt_join: the loaded tcp_shunt has no type information, or is too old; run shunt doctor")
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("loading a BPF program is not permitted: run as root, outside of a container")
	}
	return fmt.Errorf("loading the policy program: %w", err)
}

// firstCause is the verifier's last line of complaint, without its whole log.
func firstCause(v *ebpf.VerifierError) error {
	for i := len(v.Log) - 1; i >= 0; i-- {
		line := v.Log[i]
		if line != "" && !isSummary(line) {
			return fmt.Errorf("%s: %w", line, v.Cause)
		}
	}
	return v.Cause
}

// isSummary tells the verifier's closing statistics from its complaint.
func isSummary(line string) bool {
	return strings.HasPrefix(line, "processed ") || strings.HasPrefix(line, "verification time")
}
