module shunt.dev/shunt

go 1.24.0

require (
	github.com/cilium/ebpf v0.20.0
	golang.org/x/sys v0.40.0
)

tool github.com/cilium/ebpf/cmd/bpf2go
