package command

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// drain is how long output is read after the child's end: a process that
	// it left behind in another group can hold the pipe open for ever.
	drain = time.Second
	// grace is how long a killed child may take to end. One that is stuck in a
	// driver never does.
	grace = 5 * time.Second
)

// A process is a running child and its group.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the child is reaped and its output is read

	mu     sync.Mutex
	reaped bool
}

// start forks on a thread that is kept until the child ends: the kernel sends
// the death signal when the thread that forked ends, not when gate does.
func start(cmd *exec.Cmd) (*process, error) {
	// A child that outlived a killed gate would go on using a GPU whose lock is
	// free again.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = drain
	p := &process{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.wait()
		}
	}()
	return p, <-started
}

// wait kills what the child left of its group before the child is reaped: up
// to then no other group can have its number.
func (p *process) wait() {
	for unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	p.kill(true)
	p.cmd.Wait() // how the child ended is in its ProcessState
	close(p.ended)
}

func (p *process) kill(last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	}
	p.reaped = last
}

// stop kills the group and waits for the child as long as its grace lasts.
func (p *process) stop() {
	p.kill(false)
	select {
	case <-p.ended:
	case <-time.After(grace):
	}
}

func (p *process) gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}
