package main

import kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"

func init() { components["kube-controller-manager"] = kcm.NewControllerManagerCommand }
