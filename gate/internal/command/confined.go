package command

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// confineArg is the argument with which gate starts itself to become a confined
// program. It is not for users, to whom it does no harm.
const confineArg = "--gate-confined"

// sayFD is where the start reads why it failed. It closes when the program runs.
// boundsFD holds the confinement.
const (
	sayFD    = 3
	boundsFD = 4
)

// init comes before main, so that a test of any package is such a gate as well,
// and before anything that a start does not need.
func init() {
	if len(os.Args) < 4 || os.Args[1] != confineArg {
		return
	}
	syscall.CloseOnExec(sayFD)
	err := becomeConfined(os.Args[2], os.Args[3:])
	fmt.Fprintln(os.NewFile(sayFD, "said"), err)
	os.Exit(126)
}

func becomeConfined(path string, args []string) error {
	f := os.NewFile(boundsFD, "gate-confinement")
	text, err := io.ReadAll(f)
	f.Close() // not the program's
	if err != nil {
		return fmt.Errorf("reading its confinement: %w", err)
	}
	var b bounds
	if err := json.Unmarshal(text, &b); err != nil {
		return fmt.Errorf("reading its confinement: %w", err)
	}
	if b.Version < 1 || b.Version > newest {
		return fmt.Errorf("there is no Landlock version %d", b.Version)
	}
	runtime.LockOSThread() // what follows holds for the thread that becomes the program
	if err := b.restrict(); err != nil {
		return fmt.Errorf("confining the program: %w", err)
	}
	if err := filterSockets(!b.Device); err != nil {
		return fmt.Errorf("confining the program: %w", err)
	}
	if !b.Counters {
		if err := dropCapabilities(); err != nil {
			return fmt.Errorf("confining the program: %w", err)
		}
	}
	return fmt.Errorf("starting it confined: %w", syscall.Exec(path, args, os.Environ()))
}

// dropCapabilities leaves of root's what access to files needs, where Landlock
// decides. With more a program could read the environment of any other.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var now [2]unix.CapUserData // the capabilities of 0 to 31, and those from 32
	if err := unix.Capget(&header, &now[0]); err != nil {
		return err
	}
	const files = 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH | 1<<unix.CAP_FOWNER
	less := [2]unix.CapUserData{{Effective: now[0].Effective & files, Permitted: now[0].Permitted & files}}
	return unix.Capset(&header, &less[0])
}

// Rights to files. Only the GPU's driver may give orders to devices, and nobody
// may connect to the sockets of services.
const (
	reads  = landlock.AccessFSExecute | landlock.AccessFSReadFile | landlock.AccessFSReadDir
	writes = 1<<15 - 1 // all that Landlock had names for in its third version
	ofFile = landlock.AccessFSExecute | landlock.AccessFSReadFile | landlock.AccessFSWriteFile | landlock.AccessFSTruncate
)

// denied is what a version of Landlock can deny, and denies but for rules.
func denied(version int) (all landlock.RulesetAttr) {
	for _, rights := range []struct {
		since int
		landlock.RulesetAttr
	}{
		{1, landlock.RulesetAttr{HandledAccessFS: landlock.AccessFSRefer - 1}},
		{2, landlock.RulesetAttr{HandledAccessFS: landlock.AccessFSRefer}},
		{3, landlock.RulesetAttr{HandledAccessFS: landlock.AccessFSTruncate}},
		{4, landlock.RulesetAttr{HandledAccessNet: landlock.AccessNetBindTCP | landlock.AccessNetConnectTCP}},
		{5, landlock.RulesetAttr{HandledAccessFS: landlock.AccessFSIoctlDev}},
		{6, landlock.RulesetAttr{Scoped: landlock.ScopeAbstractUnixSocket | landlock.ScopeSignal}},
		{9, landlock.RulesetAttr{HandledAccessFS: landlock.AccessFSResolveUnix}},
		{newest, landlock.RulesetAttr{HandledAccessNet: landlock.AccessNetBindUDP | landlock.AccessNetConnectSendUDP}},
	} {
		if version >= rights.since {
			all.HandledAccessFS |= rights.HandledAccessFS
			all.HandledAccessNet |= rights.HandledAccessNet
			all.Scoped |= rights.Scoped
		}
	}
	return all
}

// restrict confines this thread alone: it becomes the program, and to stop all
// others first takes many times as long.
func (b bounds) restrict() error {
	all := denied(b.Version)
	rules, err := landlock.LandlockCreateRuleset(&all, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(rules)
	type rule struct {
		access uint64
		paths  []string
	}
	list := []rule{{writes, []string{b.Temp}}, {reads, b.Dirs}, {reads & ofFile, b.Files}, {ofFile, []string{"/dev/null"}}}
	if b.Device {
		list = append(list, rule{writes | landlock.AccessFSIoctlDev, []string{"/dev"}}, rule{writes, []string{"/proc"}})
	}
	for _, r := range list {
		for _, path := range r.paths {
			if err := allow(rules, r.access&all.HandledAccessFS, path); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return landlock.LandlockRestrictSelf(rules, 0)
}

func allow(rules int, access uint64, path string) error {
	fd, err := syscall.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	return landlock.LandlockAddPathBeneathRule(rules, &landlock.PathBeneathAttr{AllowedAccess: access, ParentFd: fd}, 0)
}

// filterSockets refuses what Landlock does not see: connections by multipath
// TCP, and io_uring, which makes sockets past a filter. all refuses every
// internet socket.
func filterSockets(all bool) error {
	const family, protocol = 16, 32 // where seccomp_data holds the first and third argument, on little-endian machines
	refuse := uint32(unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES))
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	end := func(how uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: how} }
	is := func(value uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jt: yes, Jf: no}
	}
	inet := unix.SECCOMP_RET_ALLOW
	if all {
		inet = int(refuse)
	}
	program := []unix.SockFilter{
		load(4), is(nativeArch, 0, 10), // a call of another architecture has other numbers, as has one of x32
		load(0), {Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: 0x40000000, Jt: 8},
		is(unix.SYS_IO_URING_SETUP, 7, 0), is(unix.SYS_SOCKET, 0, 7),
		load(protocol), is(unix.IPPROTO_MPTCP, 4, 0),
		load(family), is(unix.AF_INET, 1, 0), is(unix.AF_INET6, 0, 2),
		end(uint32(inet)),
		end(refuse),
		end(unix.SECCOMP_RET_ALLOW),
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter)), 0, 0)
}
