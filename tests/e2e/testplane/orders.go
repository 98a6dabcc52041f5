package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// obey reads orders from standard input, one a line, and answers each with a line "ok ORDER" or "error ORDER: why".
// Orders wait until everything is up. When the input ends, stop is called.
func (p *plane) obey(up <-chan struct{}, stop func()) {
	defer stop()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		<-up
		order := lines.Text()
		if err := p.carryOut(strings.Fields(order)); err != nil {
			fmt.Printf("error %s: %v\n", order, err)
		} else {
			fmt.Printf("ok %s\n", order)
		}
	}
}

func (p *plane) carryOut(words []string) error {
	switch {
	case len(words) == 2 && words[0] == "stop":
		return p.halt(words[1])
	case len(words) == 2 && words[0] == "start":
		return p.again(words[1])
	case len(words) == 1 && words[0] == "compact":
		return p.compact()
	}
	return fmt.Errorf("expected start NAME, stop NAME or compact")
}

// compact forgets all history of etcd, so that a watch from an older revision is refused.
func (p *plane) compact() error {
	revision := p.etcd.Server.KV().Rev()
	_, err := p.etcd.Server.Compact(context.Background(), &pb.CompactionRequest{Revision: revision, Physical: true})
	return err
}
