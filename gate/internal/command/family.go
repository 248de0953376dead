package command

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/gate/gate/internal/disk"
)

// runID is the variable that every child and what it starts carry: the gate
// that they belong to, and the child's number in it.
const runID = "GATE_RUN"

// A family is gate's running children. A process that leaves the group of the
// child that started it is found nevertheless: gate is a sub-reaper, so that
// what loses its parent becomes gate's own child.
type family struct {
	mu      sync.Mutex
	count   int
	running map[int]string // number of a process → its run id
}

var children = family{running: map[int]string{}}

func (f *family) id() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count++; f.count == 1 {
		unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // every kernel since 3.4 has it
	}
	return fmt.Sprintf("%s.%d", disk.Owner(), f.count)
}

// start keeps the lock while it forks: a child that is not noted yet would be
// taken for a stray.
func (f *family) start(cmd *exec.Cmd, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := cmd.Start()
	if err == nil {
		f.running[cmd.Process.Pid] = id
	}
	return err
}

// forget drops a child that was waited for, unless its number is already
// another's: that one would be taken for a stray.
func (f *family) forget(pid int, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running[pid] == id {
		delete(f.running, pid)
	}
}

// endStrays ends what a child that has ended left behind, and returns an error
// that names what does not end.
func (f *family) endStrays(child int) error {
	told, began, pause := false, time.Now(), time.Millisecond
	for {
		strays := f.killStrays(child)
		if len(strays) == 0 {
			return nil
		}
		what := fmt.Sprintf("process %d, which was left behind,", strays[0])
		switch since := time.Since(began); {
		case since > grace:
			return fmt.Errorf("%s was killed and does not end", what)
		case since > notice && !told:
			told = true
			Waiting(what)
		}
		time.Sleep(pause)
		pause = min(2*pause, 50*time.Millisecond)
	}
}

// killStrays kills and reaps every stray that is not of another child that
// runs. Those it found may have left children of their own to gate.
func (f *family) killStrays(child int) (found []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, pid := range ofParent(os.Getpid()) {
		if f.running[pid] != "" || f.others(child, pid) {
			continue
		}
		syscall.Kill(pid, syscall.SIGKILL) // its number is its own until it is waited for
		syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		found = append(found, pid)
	}
	return found
}

// others reports whether a process is none of command's, or that of a child
// which still runs: by its group, or by the run id in its environment.
func (f *family) others(child, pid int) bool {
	group, err := syscall.Getpgid(pid)
	if err != nil || group == syscall.Getpgrp() || group != child && f.running[group] != "" {
		return true
	}
	id := runOf(pid)
	for of, running := range f.running {
		if of != child && id == running {
			return true
		}
	}
	return false
}

// ofParent lists the children of a process. Kernels without the list for each
// thread are asked about every process.
func ofParent(parent int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	for _, l := range lists {
		text, _ := os.ReadFile(l)
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	if len(lists) > 0 {
		return pids
	}
	return slices.DeleteFunc(all(), func(pid int) bool {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		return !bytes.Contains(text, fmt.Appendf(nil, "\nPPid:\t%d\n", parent))
	})
}

// all lists every process of this machine.
func all() (pids []int) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// runOf is the run id with which a process was started, "" where it has none
// or is another user's.
func runOf(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	for e := range bytes.SplitSeq(text, []byte{0}) {
		if id, ok := bytes.CutPrefix(e, []byte(runID+"=")); ok {
			return string(id)
		}
	}
	return ""
}

// EndLeftovers ends the processes of gates that were killed, waits for them as
// long as a user waits without a word, and removes their temporary files.
func EndLeftovers(cache string) {
	var left []int
	for _, pid := range all() {
		if endLeftover(pid) {
			left = append(left, pid)
		}
	}
	for end := time.Now().Add(notice); len(left) > 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		left = slices.DeleteFunc(left, func(pid int) bool { return !leftover(pid) })
	}
	disk.SweepTemp(cache)
}

// leftover reports whether a process of this user belongs to a gate that has
// ended.
func leftover(pid int) bool {
	owner, _, _ := strings.Cut(runOf(pid), ".")
	gone, _ := disk.Gone(owner)
	return gone
}

// endLeftover kills a leftover by a handle, so that no later process of the
// same number is hit.
func endLeftover(pid int) bool {
	if !leftover(pid) {
		return false
	}
	handle, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return syscall.Kill(pid, syscall.SIGKILL) == nil // a kernel before 5.3
	}
	defer unix.Close(handle)
	return leftover(pid) && unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0) == nil
}
