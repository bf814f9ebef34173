// The agents of a Kubernetes node in one program. The first argument says which one to be:
//
//	node kubelet|kube-proxy [flags]
package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/component-base/cli"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	part := ""
	if len(os.Args) > 1 {
		part = os.Args[1]
		os.Args = os.Args[1:]
	}
	switch part {
	case "kubelet":
		os.Exit(cli.Run(kubelet.NewKubeletCommand(context.Background())))
	case "kube-proxy":
		os.Exit(cli.Run(proxy.NewProxyCommand()))
	default:
		fmt.Fprintln(os.Stderr, "which part? kubelet or kube-proxy")
		os.Exit(2)
	}
}
