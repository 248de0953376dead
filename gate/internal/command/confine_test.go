package command

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hostile is what a kernel's library can do before anybody calls it. It says
// what it was able to do.
const hostile = `
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void did(const char* what, bool able) { if (able) printf("%s\n", what), fflush(stdout); }

static bool reach(int type, int protocol, const char* port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(atoi(getenv(port)));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int s = socket(AF_INET, type, protocol);
  return s >= 0 && connect(s, (sockaddr*)&to, sizeof to) == 0 && (type != SOCK_DGRAM || send(s, "x", 1, 0) == 1);
}

static bool read_one(const char* path) { char c; int f = open(path, O_RDONLY); return f >= 0 && read(f, &c, 1) == 1; }

__attribute__((constructor)) static void hostile() {
  const char *library = getenv("BASE_LIBRARY"), *evidence = getenv("EVIDENCE");
  char beside[4096];
  did("reads the key", read_one(getenv("KEY")));
  did("reads the credential of the checkout", read_one(getenv("CREDENTIAL")));
  did("reads gate's environment", read_one(getenv("GATE_ENVIRON")));
  did("overwrites the base's library", open(library, O_WRONLY) >= 0);
  did("empties the base's library", truncate(library, 0) == 0);
  did("deletes evidence", unlink(evidence) == 0);
  snprintf(beside, sizeof beside, "%s.new", evidence);
  did("forges evidence", open(beside, O_WRONLY | O_CREAT, 0644) >= 0);
  did("makes a link", symlink("/", beside) == 0);
  did("opens a connection", reach(SOCK_STREAM, 0, "TCP"));
  did("opens a multipath connection", reach(SOCK_STREAM, 262, "TCP"));
  did("sends a datagram", reach(SOCK_DGRAM, 0, "UDP"));
  did("signals gate", kill(atoi(getenv("GATE_PID")), 0) == 0);
  if (fork() == 0) execl("/bin/sh", "sh", "-c", "cat \"$KEY\" >/dev/null 2>&1 && echo reads the key in another program", nullptr), _exit(1);
  wait(nullptr);
}
`

// harness is what loads it.
const harness = `
#include <dlfcn.h>
#include <stdio.h>
int main(int, char** args) {
  FILE* f = fopen("mine", "w");
  if (!dlopen(args[1], RTLD_NOW) || !f || fputs("x", f) < 0 || fclose(f) || !fopen("/dev/null", "w")) { perror(dlerror()); return 1; }
  puts("measured");
}
`

// A prey is a user's files that a confined program must not reach.
type prey struct {
	home, cache, repo string
	program, library  string
}

func write(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func newPrey(t testing.TB) prey {
	t.Helper()
	home := t.TempDir()
	p := prey{home: home, cache: filepath.Join(home, ".cache/gate"), repo: filepath.Join(home, "repo")}
	t.Setenv("HOME", home)
	p.program, p.library = filepath.Join(p.cache, "harness"), filepath.Join(p.cache, "head.so")
	write(t, filepath.Join(home, ".ssh/id"), "secret")
	write(t, filepath.Join(p.repo, ".git/config"), "secret")
	write(t, filepath.Join(p.repo, "kernels/k.cu"), "kernel")
	p.reset(t)
	for out, text := range map[string]string{p.program: harness, p.library: hostile} {
		flags := []string{"-x", "c++", "-o", out, write(t, filepath.Join(home, "source.cc"), text), "-ldl"}
		if out == p.library {
			flags = append(flags, "-shared", "-fPIC")
		}
		if said, err := exec.Command("g++", flags...).CombinedOutput(); err != nil {
			t.Skipf("no C++ compiler: %v: %s", err, said)
		}
	}
	return p
}

func (p prey) reset(t testing.TB) {
	os.Remove(filepath.Join(p.cache, "evidence.json.new"))
	write(t, filepath.Join(p.cache, "base.so"), "library")
	write(t, filepath.Join(p.cache, "evidence.json"), "evidence")
}

// attack runs the hostile library and returns what it was able to do.
func (p prey) attack(t *testing.T, confine *Confinement) []string {
	t.Helper()
	tcp, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	port := func(a net.Addr) string { _, port, _ := net.SplitHostPort(a.String()); return port }
	c := Command{Path: p.program, Args: []string{p.library}, Dir: t.TempDir(), Limit: time.Minute, Most: 1 << 16, Confine: confine}
	if confine != nil {
		c.Dir = confine.Temp
	}
	c.Env = []string{"KEY=" + p.home + "/.ssh/id", "CREDENTIAL=" + p.repo + "/.git/config", "BASE_LIBRARY=" + p.cache + "/base.so",
		"EVIDENCE=" + p.cache + "/evidence.json", "TCP=" + port(tcp.Addr()), "UDP=" + port(udp.LocalAddr()),
		"GATE_PID=" + fmt.Sprint(os.Getpid()), fmt.Sprintf("GATE_ENVIRON=/proc/%d/environ", os.Getpid())}
	r := run(t, c)
	did := strings.Split(strings.TrimSpace(string(r.Stdout)), "\n")
	if r.Err() != nil || did[len(did)-1] != "measured" {
		t.Fatalf("%q, %+v", did, r)
	}
	return did[:len(did)-1]
}

func needLandlock(t testing.TB) int {
	t.Helper()
	version, why := Landlock()
	if why != "" {
		t.Skip("nothing can be confined here: ", why)
	}
	return version
}

func TestHostileKernel(t *testing.T) {
	p := newPrey(t)
	free := p.attack(t, nil)
	for _, must := range []string{"reads the key", "overwrites the base's library", "deletes evidence", "opens a connection", "sends a datagram"} {
		if !slices.Contains(free, must) {
			t.Errorf("without a confinement it did not do what this test is about: %s", must)
		}
	}
	version := needLandlock(t)
	for _, device := range []bool{true, false} {
		p.reset(t)
		temp := filepath.Join(p.cache, "tmp")
		write(t, filepath.Join(temp, "x"), "")
		var want []string
		for _, open := range []struct {
			what   string
			before int
			all    bool
		}{{"empties the base's library", 3, true}, {"opens a connection", 4, false}, {"sends a datagram", 10, false}, {"signals gate", 6, true}} {
			if version < open.before && (open.all || device) {
				want = append(want, open.what)
			}
		}
		did := p.attack(t, &Confinement{Temp: temp, Read: []string{p.program, p.library, p.repo}, Device: device})
		if !slices.Equal(did, want) {
			t.Errorf("device %v: it did %q, want %q", device, did, want)
		}
	}
}

// What is declared can be read, at exactly its place.
func TestReadsOfAConfinedProgram(t *testing.T) {
	needLandlock(t)
	p := newPrey(t)
	temp := filepath.Join(p.cache, "tmp")
	write(t, filepath.Join(temp, "x"), "")
	write(t, filepath.Join(p.home, "tools/bin/tool"), "tool")
	t.Setenv("LD_LIBRARY_PATH", filepath.Join(p.home, "tools")+":"+p.home+":relative:")
	for path, able := range map[string]bool{
		p.repo + "/kernels/k.cu": true, p.cache + "/base.so": true, p.home + "/tools/bin/tool": true, "/etc/passwd": true, "/proc/self/stat": true,
		p.repo + "/.git/config": false, p.cache + "/evidence.json": false, p.home + "/.ssh/id": false,
	} {
		r := run(t, shell("cat "+path, func(c *Command) {
			c.Confine = &Confinement{Temp: temp, Read: []string{p.repo, p.cache + "/base.so", p.home, p.home + "/none"}}
		}))
		if (r.Err() == nil) != able {
			t.Errorf("%s: %+v, want %v", path, r, able)
		}
	}
	r := run(t, shell("echo $HOME $TMPDIR; pwd; cd ~ && mkdir -p a b && echo x >a/f && mv a/f b && rm -r a b && exit 3", func(c *Command) {
		c.Dir, c.Confine = temp, &Confinement{Temp: temp}
	}))
	if string(r.Stdout) != temp+" "+temp+"\n"+temp+"\n" || r.Code != 3 {
		t.Errorf("%+v", r)
	}
}

// withLandlock lets a test run on a kernel of another version.
func withLandlock(t *testing.T, version int, why string) {
	before, said := look, openings.list
	look, openings.list = func() (int, string) { return version, why }, nil
	t.Cleanup(func() { look, openings.list = before, said })
}

func TestWhereNothingCanBeConfined(t *testing.T) {
	withLandlock(t, 0, "this kernel is old")
	temp := t.TempDir()
	for range 2 {
		if r := run(t, shell("echo $TMPDIR", func(c *Command) { c.Confine = &Confinement{Temp: temp} })); string(r.Stdout) != temp+"\n" {
			t.Errorf("%+v", r)
		}
	}
	if want := []string{"the compiler, harness and ncu ran unconfined: this kernel is old"}; !slices.Equal(Openings(), want) {
		t.Errorf("%q, want %q", Openings(), want)
	}
}

func TestWhatAnOlderLandlockLeavesOpen(t *testing.T) {
	root := 0
	if unix.Access("/proc/sys/kernel/core_pattern", unix.W_OK) == nil {
		root = 1
	}
	for version, want := range map[int]int{1: 3, 2: 3, 3: 2, 4: 1, 9: 1, 10: 0} {
		withLandlock(t, version, "")
		(&Confinement{}).note()
		if compiler := len(Openings()); (compiler > 0) != (version < 3) {
			t.Errorf("version %d: a compiler can do %q", version, Openings())
		}
		(&Confinement{Device: true}).note()
		if len(Openings()) != want+root {
			t.Errorf("version %d: %q, want %d", version, Openings(), want+root)
		}
	}
}

// A confinement that cannot be taken on is an error, and the program does not
// run.
func TestRefusedConfinement(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	script := shell("echo ran >"+out, func(c *Command) { c.Confine = &Confinement{Temp: filepath.Join(t.TempDir(), "none")} })
	if needLandlock(t); true {
		if r, err := script.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "/bin/sh: confining the program: ") {
			t.Errorf("no temporary folder: %+v, %v", r, err)
		}
	}
	withLandlock(t, 99, "")
	if r, err := script.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "there is no Landlock version 99") {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("the program ran")
	}
}

// A program may read more files than an argument can name, and does not see the list.
func TestConfinementOfManyFiles(t *testing.T) {
	needLandlock(t)
	dir := t.TempDir()
	var files []string
	for i := range 2000 {
		files = append(files, write(t, filepath.Join(dir, fmt.Sprintf("%0100d", i)), "text\n"))
	}
	last := files[len(files)-1]
	r := run(t, shell("cat "+last+"; ls /proc/self/fd", func(c *Command) { c.Confine = &Confinement{Temp: t.TempDir(), Read: files} }))
	if lines := strings.Fields(string(r.Stdout)); r.Code != 0 || len(lines) < 4 || lines[0] != "text" || slices.Contains(lines, "4") {
		t.Errorf("%+v, %q", r, r.Stdout)
	}
}

func BenchmarkStart(b *testing.B) {
	temp := b.TempDir()
	for _, c := range []struct {
		name    string
		confine *Confinement
	}{{"free", nil}, {"confined", &Confinement{Temp: temp}}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := (Command{Path: "/bin/true", Limit: time.Minute, Confine: c.confine}).Run(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestStandardInputIsPrivate: what a confined program is given by standard input, no
// other confined program can take or read, although it may read /proc.
func TestStandardInputIsPrivate(t *testing.T) {
	needLandlock(t)
	temp := t.TempDir()
	reader := func(confine *Confinement) (found bool) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		pids := make(chan string, 1)
		holder := shell("echo $$; exec sleep 60", func(c *Command) {
			c.In, c.Confine, c.Lines = strings.NewReader("secret\n"), &Confinement{Temp: temp, Device: true}, func(pid string) { pids <- pid }
		})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = holder.Run(ctx)
		}()
		pid := <-pids
		look := run(t, shell("timeout 5 cat /proc/"+pid+"/fd/0; tr '\\0' ' ' </proc/"+pid+"/cmdline", func(c *Command) { c.Confine = confine }))
		cancel()
		<-ended
		if !strings.Contains(string(look.Stdout), "sleep 60") {
			t.Errorf("the arguments of the other are not seen: %+v", look)
		}
		return strings.Contains(string(look.Stdout), "secret")
	}
	if reader(&Confinement{Temp: t.TempDir(), Device: true}) {
		t.Error("a confined program reads the standard input of another one")
	}
	if !reader(nil) {
		t.Error("a program that is not confined does not read it: the test shows nothing")
	}
}
