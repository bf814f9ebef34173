// The parts of a Kubernetes control plane in one program: they share most of their code, so one
// program links and starts faster than five. The first argument says which part to be:
//
//	controlplane etcd|kube-apiserver|kube-controller-manager|kube-scheduler|kubectl [flags]
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // request counts in /metrics
	"k8s.io/kubectl/pkg/cmd"
	kubectlerrors "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

var daemons = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
}

func main() {
	if len(os.Args) < 2 {
		usage()
	}
	part := os.Args[1]
	os.Args = os.Args[1:]
	if daemon, known := daemons[part]; known {
		os.Exit(cli.Run(daemon()))
	}
	switch part {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kubectl":
		// kubectl words its own errors; the plain runner would print them a second time.
		kubectlerrors.CheckErr(cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()))
	default:
		usage()
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "which part? etcd, kube-apiserver, kube-controller-manager, kube-scheduler or kubectl")
	os.Exit(2)
}
