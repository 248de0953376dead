package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// A Confinement is what a program may reach that runs code or flags of a
// change. It may read the system's folders besides, and reach no network.
type Confinement struct {
	Temp string   // the one folder that it may write in; TMPDIR and HOME point there
	Read []string // files and folders
	// Device is for what uses the GPU: CUDA does not start unless it may write
	// in /dev and /proc. Its sockets are left alone, but for what Landlock says
	// of them, since it is not known which of them the driver needs.
	Device bool
	// Counters is for what reads the GPU's performance counters: the driver may
	// ask for root's capabilities, which every other program loses.
	Counters bool
}

// system are the folders that every program may read and run programs of.
var system = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store", "/gnu/store", "/sys", "/proc", "/dev"}

// newest is the version of Landlock that brought the last right that gate denies.
const newest = 10

// look asks this kernel for its version of Landlock, or why there is none.
var look = sync.OnceValues(func() (version int, why string) {
	version, err := landlock.LandlockGetABIVersion()
	switch {
	case errors.Is(err, syscall.ENOSYS):
		return 0, "this kernel has no Landlock (it came with 5.13), or a container's filter hides it"
	case errors.Is(err, syscall.EOPNOTSUPP):
		return 0, "Landlock was switched off when this kernel was started (lsm=)"
	case err != nil:
		return 0, "the kernel refuses Landlock: " + err.Error()
	}
	return min(version, newest), ""
})

// Landlock is the version that this kernel has of what confines, or why nothing
// can be confined here.
func Landlock() (version int, why string) {
	if os.Getenv("GATE_CONFINE") == "off" {
		return 0, "GATE_CONFINE is off"
	}
	return look()
}

// openings are what was left open to the children of this process, each once.
var openings struct {
	mu   sync.Mutex
	list []string
}

// Openings says what the confinement of children has left open so far: for the
// reader of a result that their doings could have changed.
func Openings() []string {
	openings.mu.Lock()
	defer openings.mu.Unlock()
	return slices.Clone(openings.list)
}

func (c *Confinement) note() {
	version, why := Landlock()
	const all, device = "the compiler, harness and ncu", "the harness and ncu"
	for _, o := range []struct {
		open bool
		text string
	}{
		{version == 0, all + " ran unconfined: " + why},
		{version > 0 && version < 3, all + " ran confined, but could empty files of this user: Landlock has version " + fmt.Sprint(version) + " here, 3 forbids it"},
		{version > 0 && version < 4 && c.Device, device + " ran confined, but could use TCP: Landlock has version " + fmt.Sprint(version) + " here, 4 forbids it"},
		{version > 0 && c.Device && unix.Access("/proc/sys/kernel/core_pattern", unix.W_OK) == nil, device + " ran confined, but as root, which can change devices and settings of this machine"},
		{version > 0 && version < 10 && c.Device, device + " ran confined, but could use UDP: Landlock has version " + fmt.Sprint(version) + " here, 10 forbids it"},
	} {
		openings.mu.Lock()
		if o.open && !slices.Contains(openings.list, o.text) {
			openings.list = append(openings.list, o.text)
		}
		openings.mu.Unlock()
	}
}

// environ is what changes for a program whose home is not to be reached. One
// that links to ccache would fail on ccache's own folder.
func (c *Confinement) environ() []string {
	return []string{"TMPDIR=" + c.Temp, "HOME=" + c.Temp, "CCACHE_DISABLE=1"}
}

// bounds are a confinement as it travels to the process that takes it on.
type bounds struct {
	Version     int
	Device      bool
	Counters    bool
	Temp        string
	Dirs, Files []string
}

func (c *Confinement) bounds(version int) bounds {
	b := bounds{Version: version, Device: c.Device, Counters: c.Counters, Temp: c.Temp}
	home := []string{os.Getenv("HOME")}
	if real, err := filepath.EvalSymlinks(home[0]); err == nil {
		home = append(home, real)
	}
	read := slices.Concat(system, c.Read, filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")))
	for _, path := range read {
		for _, p := range without(path, home) {
			switch info, err := os.Stat(p); {
			case err != nil || !filepath.IsAbs(p):
			case info.IsDir():
				b.Dirs = append(b.Dirs, p)
			default:
				b.Files = append(b.Files, p)
			}
		}
	}
	return b
}

// without is a folder less what nobody may read in it: a home, and git's folder
// with the credentials that a checkout leaves there. Landlock can only allow,
// so what remains is named.
func without(path string, home []string) (parts []string) {
	hidden := func(p string) bool {
		return filepath.Base(p) == ".git" || slices.ContainsFunc(home, func(h string) bool {
			rel, err := filepath.Rel(p, h)
			return err == nil && filepath.IsLocal(rel)
		})
	}
	if path = filepath.Clean(path); path == "/" || slices.Contains(home, path) {
		return nil
	}
	if _, err := os.Lstat(filepath.Join(path, ".git")); err != nil && !hidden(path) {
		return []string{path}
	}
	entries, _ := os.ReadDir(path)
	for _, e := range entries {
		if part := filepath.Join(path, e.Name()); !hidden(part) {
			parts = append(parts, part)
		}
	}
	return parts
}

// program is how a command is started: by itself, or by a gate that takes the
// confinement on and then becomes the program, so that process and group stay.
// A gate that cannot says so on the file descriptor that is returned.
func (c Command) program() (cmd *exec.Cmd, said *os.File, err error) {
	path, err := exec.LookPath(c.Path)
	if err != nil {
		return nil, nil, err
	}
	if c.Confine == nil {
		return exec.Command(path, c.Args...), nil, nil
	}
	c.Confine.note()
	version, _ := Landlock()
	if version == 0 {
		return exec.Command(path, c.Args...), nil, nil
	}
	taken, err := c.Confine.bounds(version).file()
	if err != nil {
		return nil, nil, fmt.Errorf("writing its confinement: %w", err)
	}
	said, say, err := os.Pipe()
	if err != nil {
		taken.Close()
		return nil, nil, err
	}
	cmd = exec.Command("/proc/self/exe", slices.Concat([]string{confineArg, path, c.Path}, c.Args)...)
	cmd.ExtraFiles = []*os.File{say, taken} // sayFD, boundsFD
	return cmd, said, nil
}

// file holds the bounds in memory, to be read by who inherits it: an argument takes
// 128 KiB at most, and a program may read any number of files.
func (b bounds) file() (*os.File, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("gate-confinement", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "gate-confinement")
	_, err = f.Write(text)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart) // who inherits it reads from where it stands
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// refusal is what a gate said that could not take the confinement on.
func refusal(said *os.File) error {
	if said == nil {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(said, stderrTail))
	if err == nil && len(text) > 0 {
		err = errors.New(strings.TrimSpace(string(text)))
	}
	return err
}
