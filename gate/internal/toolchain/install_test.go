package toolchain

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary be a second gate: with GATE_TEST_INSTALL set
// it installs into that cache and says how it went.
func TestMain(m *testing.M) {
	cache := os.Getenv("GATE_TEST_INSTALL")
	if cache == "" {
		os.Exit(m.Run())
	}
	_, err := Install(context.Background(), InstallOptions{
		Options: Options{CacheDir: cache, Env: os.Getenv}, Progress: func(line string) { fmt.Println(line) },
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A bench is a machine whose python3 is a fake.
type bench struct {
	python, cache, path string
}

func newBench(t *testing.T, build string) bench {
	t.Helper()
	dir := t.TempDir()
	tree := fakeWheels(t, filepath.Join(dir, "wheels"), build)
	bin := filepath.Join(dir, "bin")
	return bench{
		python: fakePython(t, filepath.Join(bin, "python3"), tree),
		cache:  filepath.Join(dir, "cache"), path: bin + ":" + systemPath,
	}
}

func (b bench) options() InstallOptions {
	return InstallOptions{Options: Options{CacheDir: b.cache, Env: environment("PATH", b.path)}}
}

func (b bench) goAhead(t *testing.T) { t.Helper(); write(t, b.python+".go", "", 0o644) }

// installs counts the calls of `pip install`.
func (b bench) installs(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile(b.python + ".calls")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(data), "-m pip install")
}

// start runs a second gate; its lines come through the channel, which is
// closed when it has ended.
func (b bench) start(t *testing.T) (*exec.Cmd, <-chan string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "GATE_TEST_INSTALL="+b.cache, "PATH="+b.path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	said := make(chan string, 100)
	go func() {
		defer close(said)
		for s := bufio.NewScanner(out); s.Scan(); {
			said <- s.Text()
		}
	}()
	return cmd, said
}

func leftovers(t *testing.T, cache string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(cache, "tmp", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// await polls until a condition holds; a minute is for machines under load.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

func TestInstall(t *testing.T) {
	b := newBench(t, pinnedBuild)
	b.goAhead(t)
	first, err := Install(context.Background(), b.options())
	if err != nil {
		t.Fatal(err)
	}
	if first.Version != Version || first.Source != sourceCache {
		t.Errorf("installed %+v", first)
	}
	if left := leftovers(t, b.cache); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
	found, err := FindCompiler(context.Background(), Options{Env: environment("PATH", "/nowhere"), CacheDir: b.cache})
	if err != nil || found.NVCC != first.NVCC {
		t.Errorf("found %+v, %v", found, err)
	}
	again := b.options()
	again.Env = environment() // no python, no pip, nothing
	if second, err := Install(context.Background(), again); err != nil || second.NVCC != first.NVCC {
		t.Errorf("second installation: %v", err)
	}
	if n := b.installs(t); n != 1 {
		t.Errorf("pip installed %d times", n)
	}
}

func TestInstallConcurrently(t *testing.T) {
	b := newBench(t, pinnedBuild)
	one, saidOne := b.start(t)
	await(t, "pip of the first gate", func() bool { return exists(b.python + ".pid") })
	two, saidTwo := b.start(t)
	if line := <-saidTwo; !strings.Contains(line, "waiting for another gate") {
		t.Errorf("the second gate says %q", line)
	}
	b.goAhead(t)
	for range saidOne {
	}
	for range saidTwo {
	}
	if err := errors.Join(one.Wait(), two.Wait()); err != nil {
		t.Error(err)
	}
	if n := b.installs(t); n != 1 {
		t.Errorf("pip installed %d times", n)
	}
	if _, ok, err := installedRoot(b.cache); !ok || err != nil {
		t.Errorf("installed: %v, %v", ok, err)
	}
}

func TestInstallAfterKill(t *testing.T) {
	b := newBench(t, pinnedBuild)
	cmd, said := b.start(t)
	await(t, "pip", func() bool {
		text, _ := os.ReadFile(b.python + ".pid")
		return strings.HasSuffix(string(text), "\n") // the shell makes the file before it writes the number
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range said {
	}
	data, err := os.ReadFile(b.python + ".pid")
	if err != nil {
		t.Fatal(err)
	}
	pip, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	await(t, "pip to die with gate", func() bool { return gone(pip) })
	if len(leftovers(t, b.cache)) == 0 {
		t.Error("nothing was left behind: the kill came too late to test anything")
	}
	if root, ok, err := installedRoot(b.cache); ok || err != nil {
		t.Errorf("a killed installation counts as installed: %q, %v", root, err)
	}
	b.goAhead(t)
	if _, err := Install(context.Background(), b.options()); err != nil {
		t.Fatal(err)
	}
	if left := leftovers(t, b.cache); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}

// gone reports whether a process has ended; a zombie waiting to be collected
// has.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestInstallRepairs(t *testing.T) {
	b := newBench(t, pinnedBuild)
	b.goAhead(t)
	first, err := Install(context.Background(), b.options())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(first.Cicc); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(context.Background(), b.options()); err != nil {
		t.Fatal(err)
	}
	if !exists(first.Cicc) || b.installs(t) != 2 {
		t.Error("the damaged compiler was not replaced")
	}
}

func TestInstallRefuses(t *testing.T) {
	failing := func(text string) func(t *testing.T, b bench) {
		return func(t *testing.T, b bench) { write(t, b.python, "#!/bin/sh\n"+text, 0o755) }
	}
	for _, c := range []struct {
		name, build, want, hint string
		prepare                 func(t *testing.T, b bench)
	}{
		{"no python", pinnedBuild, "no python3", pythonHint, func(t *testing.T, b bench) { os.Rename(b.python, b.python+"x") }},
		{"neither pip nor venv", pinnedBuild, "it has neither pip nor venv", pipHint, failing("echo No module named pip >&2; exit 1")},
		{"pip fails", pinnedBuild, "pip failed: exit status 1: THESE PACKAGES DO NOT MATCH THE HASHES", networkHint,
			failing(`case "$1" in -c) exit 0;; esac; echo "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES" >&2; echo bye; exit 1`)},
		{"pip does nothing", pinnedBuild, "no such file", "", failing("exit 0")},
		{"another compiler came", "b/other", "want 13.0.88", "", func(t *testing.T, b bench) { b.goAhead(t) }},
		{"half of it came", pinnedBuild, "what pip installed does not work", "", func(t *testing.T, b bench) {
			b.goAhead(t)
			os.Remove(filepath.Join(filepath.Dir(filepath.Dir(b.python)), "wheels/nvidia/cu13/bin/fatbinary"))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, c.build)
			c.prepare(t, b)
			o := b.options()
			o.Env = environment("PATH", filepath.Dir(b.python)+":/bin")
			if c.name == "no python" {
				o.Env = environment("PATH", filepath.Dir(b.python))
			}
			got, err := Install(context.Background(), o)
			if got != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %+v, error %v, want %q", got, err, c.want)
			}
			if h := hintOf(err); h != c.hint {
				t.Errorf("hint %q, want %q", h, c.hint)
			}
			if _, ok, err := installedRoot(b.cache); ok || err != nil {
				t.Errorf("something is installed: %v", err)
			}
			if left := leftovers(t, b.cache); len(left) != 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

func hintOf(err error) string {
	var n *NotFoundError
	var u *UnusableError
	var p *pipError
	switch {
	case errors.As(err, &n):
		return n.Advice
	case errors.As(err, &u):
		return u.Advice
	case errors.As(err, &p):
		return p.Advice
	}
	return ""
}

func TestInstallWithVenv(t *testing.T) {
	b := newBench(t, pinnedBuild)
	b.goAhead(t)
	bare := write(t, filepath.Join(t.TempDir(), "python3"), fmt.Sprintf(`#!/bin/sh
case "$2" in
venv) mkdir -p "$3/bin" && printf '#!/bin/sh\nexec %%s "$@"\n' %q >"$3/bin/python3" && chmod +x "$3/bin/python3" ;;
*) echo No module named pip >&2; exit 1 ;;
esac
`, b.python), 0o755)
	o := b.options()
	o.Python = bare
	if _, err := Install(context.Background(), o); err != nil {
		t.Fatal(err)
	}
}

func TestInstallStopsWithItsContext(t *testing.T) {
	b := newBench(t, pinnedBuild)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		for !exists(b.python + ".pid") {
			time.Sleep(5 * time.Millisecond)
		}
		cancel()
	}()
	_, err := Install(ctx, b.options())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if left := leftovers(t, b.cache); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A version manager's python3 is a script that runs the interpreter as a child.
func TestInstallGoesBehindShims(t *testing.T) {
	b := newBench(t, pinnedBuild)
	b.goAhead(t)
	shim := write(t, filepath.Join(t.TempDir(), "python3"), fmt.Sprintf("#!/bin/sh\necho \"$*\" >>\"$0.calls\"\n%q \"$@\"\nexit $?\n", b.python), 0o755)
	o := b.options()
	o.Python = shim
	if _, err := Install(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if n := calls(t, shim); n != 1 {
		t.Errorf("the shim was called %d times, want once to ask what is behind it", n)
	}
}

func TestInstallWantsAnAbsoluteCache(t *testing.T) {
	for _, dir := range []string{"", "cache"} {
		if _, err := Install(context.Background(), InstallOptions{Options: Options{CacheDir: dir}}); err == nil {
			t.Errorf("installed into %q", dir)
		}
	}
}
