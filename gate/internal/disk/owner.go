package disk

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// Owner names this process so that no other is ever taken for it: by the boot
// and PID namespace that it lives in, its number, and the moment it started.
var Owner = sync.OnceValue(func() string {
	_, start := stat(os.Getpid())
	return fmt.Sprintf("%s-%d-%s", world(), os.Getpid(), start)
})

// world names a boot and a PID namespace: what tells numbers of processes of
// this machine apart from those of another container or machine that shares
// the cache.
var world = sync.OnceValue(func() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	return fmt.Sprintf("%.12x", sha256.Sum256([]byte(string(boot)+namespace)))[:12]
})

// Gone reports whether an owner has ended. known is false for one of another
// world, of which nothing can be said from here.
func Gone(owner string) (gone, known bool) {
	parts := strings.Split(owner, "-")
	if len(parts) != 3 || parts[0] != world() {
		return false, false
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil {
		return false, false
	}
	state, start := stat(pid)
	return start != parts[2] || state == "Z" || state == "X", true
}

// stat is the state of a process and when it started, in ticks since the boot;
// both are "" when there is no such process.
func stat(pid int) (state, start string) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ") // a name may hold anything
	fields := strings.Fields(after)
	if len(fields) < 20 {
		return "", ""
	}
	return fields[0], fields[19]
}
