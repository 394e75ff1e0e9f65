//go:build parts

// Package parts names what this module builds beside programs/, so that `go mod tidy` keeps what it needs.
package parts

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
