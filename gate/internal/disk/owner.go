package disk

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Owner names this process so that no other is ever taken for it: by the boot
// and PID namespace that it lives in, its number, and the moment it started.
var Owner = sync.OnceValue(func() string {
	_, start, _ := stat(os.Getpid())
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

// Gone reports whether an owner has ended. known is false where nothing can be
// said of it from here: it is of another world, or cannot be looked at. Who is
// taken for gone loses its children and its files, so doubt is never "gone".
func Gone(owner string) (gone, known bool) {
	parts := strings.Split(owner, "-")
	if len(parts) != 3 || parts[0] != world() || parts[2] == "" {
		return false, false
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil {
		return false, false
	}
	state, start, err := stat(pid)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH):
		return true, true
	case err != nil:
		return false, false
	}
	return start != parts[2] || state == "Z" || state == "X", true
}

// readStat is os.ReadFile but in tests.
var readStat = os.ReadFile

// stat is the state of a process and when it started, in ticks since the boot.
func stat(pid int) (state, start string, err error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	text, err := readStat(path)
	if err != nil {
		return "", "", err
	}
	_, after, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ") // a name may hold anything
	fields := strings.Fields(after)
	if len(fields) < 20 {
		return "", "", fmt.Errorf("%s says too little", path)
	}
	return fields[0], fields[19], nil
}
