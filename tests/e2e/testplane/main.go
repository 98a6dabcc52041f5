// Command testplane is a whole Kubernetes control plane in one binary, for
// integration tests: the real etcd, kube-apiserver, kube-scheduler,
// kube-controller-manager and kubectl, each under its own subcommand, and
// "up", which starts them together on loopback.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
)

// components maps a subcommand to its constructor. Each registers
// itself from its own file.
var components = map[string]func() *cobra.Command{}

func main() {
	// Works both as "testplane kubectl ..." and through a link named kubectl.
	name, args := filepath.Base(os.Args[0]), os.Args[1:]
	if components[name] == nil {
		if len(args) == 0 {
			usage()
		}
		name, args = args[0], args[1:]
	}
	newCommand := components[name]
	if newCommand == nil {
		usage()
	}
	os.Args = append([]string{name}, args...) // what cobra and kubectl read
	os.Exit(cli.Run(newCommand()))
}

func usage() {
	names := []string{}
	for name := range components {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Fprintf(os.Stderr, "usage: testplane COMPONENT [FLAGS]\ncomponents: %v\n", names)
	os.Exit(2)
}
