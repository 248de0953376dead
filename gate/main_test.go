package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// TestSecondSignal: the first signal ends the work, and one more ends a process
// that still waits for something.
func TestSecondSignal(t *testing.T) {
	if os.Getenv("GATE_TEST_WAITS") != "" {
		waitForSignals()
	}
	for _, sent := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(sent) { // as under nohup
			continue
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestSecondSignal$")
		cmd.Env = append(os.Environ(), "GATE_TEST_WAITS=1")
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		said := bufio.NewScanner(out)
		for _, want := range []string{"waits", "the first: " + map[syscall.Signal]string{syscall.SIGINT: "interrupted", syscall.SIGTERM: "terminated", syscall.SIGHUP: "ended by signal: hangup"}[sent]} {
			if !said.Scan() || said.Text() != want {
				t.Errorf("%v: %q, want %q", sent, said.Text(), want)
			}
			cmd.Process.Signal(sent)
		}
		cmd.Wait()
		if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != sent {
			t.Errorf("%v: %v", sent, cmd.ProcessState)
		}
	}
}

// waitForSignals is a process that does not end by the first signal.
func waitForSignals() {
	ctx, end := context.WithCancelCause(context.Background())
	endBySignal(end)
	fmt.Println("waits")
	<-ctx.Done()
	fmt.Println("the first:", context.Cause(ctx))
	time.Sleep(time.Minute)
	os.Exit(0)
}
