package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// spawn runs another subcommand of this binary as a child that dies with us. Its log grows from start to start.
func (p *plane) spawn(name string, args ...string) error {
	log, err := os.OpenFile(p.path(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, append([]string{name}, args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = p.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	fmt.Printf("%s pid %d\n", name, cmd.Process.Pid)
	kid := &child{args: args, cmd: cmd, ended: make(chan struct{})}
	p.mu.Lock()
	p.kids[name] = kid
	p.mu.Unlock()
	go func() {
		err := cmd.Wait()
		close(kid.ended)
		p.mu.Lock()
		defer p.mu.Unlock()
		if !kid.stopped {
			p.dead <- fmt.Errorf("%s ended: %v; see %s", name, err, log.Name())
		}
	}()
	return nil
}

// halt kills a component and waits until it is gone.
func (p *plane) halt(name string) error {
	p.mu.Lock()
	kid := p.kids[name]
	if kid == nil || kid.stopped {
		p.mu.Unlock()
		return fmt.Errorf("%s does not run", name)
	}
	kid.stopped = true
	p.mu.Unlock()
	if err := kid.cmd.Process.Kill(); err != nil {
		return err
	}
	<-kid.ended
	return nil
}

// again starts a component that was halted, with the arguments that it had.
func (p *plane) again(name string) error {
	p.mu.Lock()
	kid := p.kids[name]
	p.mu.Unlock()
	if kid == nil || !kid.stopped {
		return fmt.Errorf("%s was not stopped", name)
	}
	return p.spawn(name, kid.args...)
}

func (p *plane) killAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, kid := range p.kids {
		kid.stopped = true
		_ = kid.cmd.Process.Kill() // nothing here is worth a graceful drain
	}
}
