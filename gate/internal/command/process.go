package command

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// drain is how long output is read after the child's end: a process that
	// cannot be ended can hold the pipe open for ever.
	drain = time.Second
	// grace is how long a killed child may take to end: a driver that takes a
	// GPU's memory back needs seconds. One that is stuck in it never ends.
	grace = 30 * time.Second
)

// notice is when a user has to know for what gate still waits.
var notice = time.Second

// Waiting is told of a process that was killed and has not ended after a
// second. It is set before the first child is started.
var Waiting = func(process string) {}

// A process is a running child and its descendants.
type process struct {
	cmd   *exec.Cmd
	name  string
	id    string        // of this run
	ended chan struct{} // closed when the child is reaped, nothing of it runs, and its output is read
	left  error         // descendants that do not end; set, as broke is, before ended is closed
	broke error         // its streams could not be served

	mu     sync.Mutex
	reaped bool
}

// start forks on a thread that is kept until the child ends: the kernel sends
// the death signal when the thread that forked ends, not when gate does.
func start(cmd *exec.Cmd, name, id string) (*process, error) {
	// A child that outlived a killed gate would go on using a GPU whose lock is
	// free again. Nothing in a session of its own can join gate's group, reach
	// the terminal, or get a signal that is meant for gate.
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
	cmd.WaitDelay = drain
	p := &process{cmd: cmd, name: name, id: id, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := children.start(cmd, id)
		started <- err
		if err == nil {
			p.wait()
		}
	}()
	return p, <-started
}

// wait kills what the child left before the child is reaped: up to then no
// other group can have its number.
func (p *process) wait() {
	for unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	p.kill(true)
	p.left = children.endStrays(p.cmd.Process.Pid)
	if err := p.cmd.Wait(); !errors.As(err, new(*exec.ExitError)) { // how the child ended is in its ProcessState
		p.broke = err
	}
	children.forget(p.cmd.Process.Pid, p.id)
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
	say, end := time.After(notice), time.After(grace)
	for {
		select {
		case <-p.ended:
			return
		case <-say:
			Waiting(p.String())
		case <-end:
			return
		}
	}
}

func (p *process) String() string {
	return fmt.Sprintf("%s (process %d)", p.name, p.cmd.Process.Pid)
}

func (p *process) gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}
