package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A valve is a pipe that is full from the start: who writes into it waits until
// somebody reads. So a child can be held that knows nothing of it.
type valve struct {
	out, in *os.File
	filled  int64         // bytes that are not the child's
	shut    chan struct{} // closed when nothing more is waited for
	done    chan struct{} // closed when all is read
}

func newValve() (*valve, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	v := &valve{out: out, in: in, shut: make(chan struct{}), done: make(chan struct{})}
	if err := v.fill(); err != nil {
		out.Close()
		in.Close()
		return nil, fmt.Errorf("filling a pipe: %w", err)
	}
	return v, nil
}

// fill writes until not one byte more has room.
func (v *valve) fill() error {
	fd := int(v.in.Fd())
	if err := unix.SetNonblock(fd, true); err != nil {
		return err
	}
	page := make([]byte, os.Getpagesize())
	for _, piece := range [][]byte{page, page[:1]} {
		for {
			n, err := unix.Write(fd, piece)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if errors.Is(err, unix.EAGAIN) {
				break
			}
			if err != nil {
				return err
			}
			v.filled += int64(n)
		}
	}
	return unix.SetNonblock(fd, false) // the child shares this state
}

// pour passes on what the child writes, from when it is let go.
func (v *valve) pour(letGo <-chan struct{}, to io.Writer) {
	defer close(v.done)
	select {
	case <-letGo:
	case <-v.shut:
	}
	if _, err := io.CopyN(io.Discard, v.out, v.filled); err == nil {
		io.Copy(to, v.out) // ends with the last writer, or by drain
	}
}

// drain waits until what the child wrote is read; the child has ended.
func (v *valve) drain() {
	if v == nil {
		return
	}
	close(v.shut)
	v.out.SetReadDeadline(time.Now().Add(drain))
	<-v.done
	v.out.Close()
}
