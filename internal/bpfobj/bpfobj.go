// SPDX-License-Identifier: GPL-2.0

// Package bpfobj carries the compiled policy program and its Go types, made
// from bpf/policy.bpf.c by `go generate`. The result is committed, so that
// building the CLI needs no clang.
package bpfobj

//go:generate go tool bpf2go -go-package bpfobj -output-stem policy -target bpfel -type shunt_rule -type shunt_counter Policy ../../bpf/policy.bpf.c -- -O2 -g -mcpu=v3 -Wall -Werror -I/usr/include/x86_64-linux-gnu
