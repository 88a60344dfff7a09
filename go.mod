module shunt.dev/shunt

go 1.24.0

require (
	github.com/cilium/ebpf v0.20.0 // indirect
	golang.org/x/sys v0.40.0 // indirect
)

tool github.com/cilium/ebpf/cmd/bpf2go
