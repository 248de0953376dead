package gpu

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/gate/gate/internal/printable"
)

// An Xid is an error that the driver wrote into the kernel's log. NVIDIA's
// table of Xid errors says what a code means; 79 is a GPU that fell off the
// bus.
type Xid struct {
	PCI  string `json:"pci"` // "0000:0f:00"
	Code int    `json:"code"`
	Text string `json:"text"` // the line, without its time stamp
}

// ErrUnavailable says that the kernel's log cannot be read here: it takes
// CAP_SYSLOG or kernel.dmesg_restrict=0, and most containers have neither.
var ErrUnavailable = errors.New("the kernel's log cannot be read")

const (
	maxXids      = 64      // the last ones are kept
	maxKernelLog = 8 << 20 // bytes
)

// Xids returns the last Xid errors in the kernel's log, oldest first.
func Xids(ctx context.Context) ([]Xid, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	size, err := unix.Klogctl(unix.SYSLOG_ACTION_SIZE_BUFFER, nil)
	if err != nil || size <= 0 {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	buf := make([]byte, min(size, maxKernelLog))
	n, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, buf)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return parseXids(string(buf[:n])), nil
}

// xidLine is how the driver logs an Xid: "NVRM: Xid (PCI:0000:0f:00): 79, …";
// under MIG the instance stands behind the address.
var xidLine = regexp.MustCompile(`NVRM: Xid \(PCI:([0-9a-fA-F:.]+)[^)]{0,40}\): (\d{1,4}), .*`)

func parseXids(log string) []Xid {
	var list []Xid
	for line := range strings.Lines(log) {
		m := xidLine.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if m == nil {
			continue
		}
		code, err := strconv.Atoi(m[2])
		if err != nil {
			continue
		}
		list = append(list, Xid{PCI: m[1], Code: code, Text: printable.Cut(m[0], 300)})
		list = list[max(0, len(list)-maxXids):]
	}
	return list
}
