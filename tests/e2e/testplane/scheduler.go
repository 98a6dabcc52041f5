package main

import (
	"github.com/spf13/cobra"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func init() {
	components["kube-scheduler"] = func() *cobra.Command { return scheduler.NewSchedulerCommand() }
}
