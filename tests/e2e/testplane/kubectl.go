package main

import kubectl "k8s.io/kubectl/pkg/cmd"

func init() { components["kubectl"] = kubectl.NewDefaultKubectlCommand }
