// What holds a pod's namespaces open: it waits for the end and reaps whatever dies before it.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	heard := make(chan os.Signal, 16)
	signal.Notify(heard, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for one := range heard {
		if one != syscall.SIGCHLD {
			os.Exit(0)
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}
