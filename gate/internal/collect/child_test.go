package collect

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shell is a child that runs a script, with limits that no test reaches.
func shell(script string, change func(*child)) child {
	c := child{path: "/bin/sh", args: []string{"-c", script}, total: 2 * time.Minute, most: 1 << 20}
	if change != nil {
		change(&c)
	}
	return c
}

func run(t *testing.T, c child) *ending {
	t.Helper()
	e, err := c.run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEndings(t *testing.T) {
	for _, c := range []struct {
		name, script, stdout, stderr, signal string
		code                                 int
	}{
		{"well", "echo out; echo err >&2", "out\n", "err\n", "", 0},
		{"with a status", "echo out; exit 3", "out\n", "", "", 3},
		{"segmentation fault", "echo out; kill -SEGV $$", "out\n", "", "segmentation fault", -1},
		{"abort", "kill -ABRT $$", "", "", "aborted", -1},
		{"killed", "kill -KILL $$", "", "", "killed", -1},
		{"bus error", "kill -BUS $$", "", "", "bus error", -1},
		{"status like a signal's", "exit 139", "", "", "", 139},
		{"silent", "", "", "", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := run(t, shell(c.script, nil))
			if string(e.stdout) != c.stdout || e.stderr != c.stderr || e.signal != c.signal || e.code != c.code || e.timedOut != "" || e.over || e.took <= 0 {
				t.Errorf("%+v", e)
			}
		})
	}
}

// gone reports whether a process is dead; one that nobody waits for may stay
// in the table.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func wantGone(t *testing.T, text string) {
	t.Helper()
	pids := strings.Fields(text)
	if len(pids) == 0 {
		t.Fatal("the script named no process")
	}
	for _, word := range pids {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(20 * time.Second); !gone(pid); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				syscall.Kill(pid, syscall.SIGKILL)
				t.Fatalf("process %d outlives its group", pid)
			}
		}
	}
}

func TestLimitsKillTheWholeGroup(t *testing.T) {
	family := "trap '' TERM; echo $$; (trap '' TERM; sh -c 'echo $$; exec sleep 600') & wait"
	for _, c := range []struct {
		name, script, want string
		change             func(*child)
	}{
		{"total", family, "it ran for more than 300ms", func(c *child) { c.total = 300 * time.Millisecond }},
		{"idle", family, "it gave no sign of life for 300ms", func(c *child) { c.idle = 300 * time.Millisecond }},
		{"busy, so the total counts", "echo $$; while :; do :; done", "it ran for more than 300ms", func(c *child) { c.total = 300 * time.Millisecond }},
		{"idle in spite of its stderr", "echo $$; while :; do echo x >&2; sleep 0.05; done", "it gave no sign of life for 300ms", func(c *child) { c.idle = 300 * time.Millisecond }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := run(t, shell(c.script, c.change))
			if e.timedOut != c.want {
				t.Errorf("%q, want %q", e.timedOut, c.want)
			}
			wantGone(t, string(e.stdout))
		})
	}
}

func TestSignsOfLifeHoldTheIdleLimitOff(t *testing.T) {
	e := run(t, shell("for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; sleep 0.2; done", func(c *child) { c.idle = 1500 * time.Millisecond }))
	if e.timedOut != "" || e.code != 0 {
		t.Errorf("%+v", e)
	}
}

func TestWhatAChildLeavesRunningIsKilled(t *testing.T) {
	e := run(t, shell("sleep 600 >/dev/null 2>&1 & echo $!", nil))
	if e.code != 0 {
		t.Errorf("%+v", e)
	}
	wantGone(t, string(e.stdout))
}

func TestOutputIsBounded(t *testing.T) {
	e := run(t, shell("yes", func(c *child) { c.most = 10000 }))
	if !e.over || len(e.stdout) > 10000 || e.timedOut != "" {
		t.Errorf("over: %v, %d bytes, %q", e.over, len(e.stdout), e.timedOut)
	}
	e = run(t, shell("head -c 10000 /dev/zero", func(c *child) { c.most = 10000 }))
	if e.over || len(e.stdout) != 10000 || e.code != 0 {
		t.Errorf("exactly the bound: over: %v, %d bytes, status %d", e.over, len(e.stdout), e.code)
	}
	e = run(t, shell("head -c 100000 /dev/zero | tr '\\0' x >&2; printf 'the \\377 end' >&2", nil))
	if len(e.stderr) > stderrTail+10 || !strings.HasSuffix(e.stderr, "xthe � end") {
		t.Errorf("%d bytes of stderr", len(e.stderr))
	}
}

func TestNothingToStart(t *testing.T) {
	e, err := child{path: "/none/harness", total: time.Minute}.run(context.Background())
	if err == nil || e != nil || !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "starting /none/harness: ") {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestCancelledByTheCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(200*time.Millisecond, cancel)
	e, err := shell("sleep 600", nil).run(ctx)
	if !errors.Is(err, context.Canceled) || e != nil {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestCredentialsStayBehind(t *testing.T) {
	secrets := []string{"GITHUB_TOKEN", "GH_TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_URL", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE",
		"AZURE_CLIENT_SECRET", "GOOGLE_APPLICATION_CREDENTIALS", "SSH_AUTH_SOCK", "NPM_TOKEN", "MY_API_KEY", "DB_PASSWORD", "X_SECRET", "RUNNER_TOKEN", "LD_PRELOAD"}
	for _, name := range secrets {
		if name == "LD_PRELOAD" {
			continue // it would reach the shell through the test's own environment
		}
		t.Setenv(name, "hidden-value")
	}
	t.Setenv("CUDA_MODULE_LOADING", "LAZY")
	e := run(t, shell("env", func(c *child) { c.env = []string{"CUDA_VISIBLE_DEVICES=GPU-1"} }))
	text := string(e.stdout)
	if strings.Contains(text, "hidden-value") {
		t.Errorf("a credential is handed on:\n%s", text)
	}
	for _, want := range []string{"CUDA_MODULE_LOADING=LAZY\n", "CUDA_VISIBLE_DEVICES=GPU-1\n", "PATH="} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, name := range secrets {
		if !secret(name) {
			t.Errorf("%s is handed on", name)
		}
	}
	for _, name := range []string{"PATH", "HOME", "CUDA_HOME", "TOKENIZERS_PARALLELISM", "NVIDIA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "GITHUB_WORKSPACE"} {
		if secret(name) {
			t.Errorf("%s is taken for a secret", name)
		}
	}
}

func TestLastLine(t *testing.T) {
	for text, want := range map[string]string{"": "", "a": "a", "a\nb\n": "b", "a\n  b  \n\n": "b", "\n": ""} {
		if got := lastLine(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
