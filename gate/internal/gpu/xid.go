package gpu

import (
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/gate/gate/internal/printable"
)

const maxKernelLog = 8 << 20 // bytes

// LastXid returns the last error that the driver wrote into the kernel's log,
// with its code, by NVIDIA's table of Xid errors: 79 is a GPU that fell off
// the bus. It is "" where there is none, or where the log cannot be read: that
// takes CAP_SYSLOG or kernel.dmesg_restrict=0, and most containers have
// neither.
func LastXid() string {
	size, err := unix.Klogctl(unix.SYSLOG_ACTION_SIZE_BUFFER, nil)
	if err != nil || size <= 0 {
		return ""
	}
	buf := make([]byte, min(size, maxKernelLog))
	n, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, buf)
	if err != nil {
		return ""
	}
	return lastXid(string(buf[:n]))
}

// xidLine is how the driver logs an Xid: "NVRM: Xid (PCI:0000:0f:00): 79, …";
// under MIG the instance follows the address.
var xidLine = regexp.MustCompile(`NVRM: Xid \(PCI:[0-9a-fA-F:.]+[^)]{0,40}\): (\d{1,4}), .*`)

func lastXid(log string) string {
	found := xidLine.FindAllStringSubmatch(strings.ReplaceAll(log, "\r\n", "\n"), -1)
	if len(found) == 0 {
		return ""
	}
	m := found[len(found)-1]
	return m[1] + " (" + printable.Cut(m[0], 300) + ")"
}
