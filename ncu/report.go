package ncu

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	reportVersion   = 7         // of the file header, in releases 2020.2 to 2026.1
	maxBlockHeader  = 64 << 20  // bytes; holds the table of names
	maxResult       = 256 << 20 // bytes of one launch
	maxReport       = 16 << 30  // bytes; most of a large report is embedded code
	maxRetained     = 1 << 30   // bytes of metrics, sections and rule results of all launches
	maxLaunches     = 1 << 20
	maxReportValues = 1 << 23 // metrics of all launches
)

// ReadReport reads a .ncu-rep file, the container that ncu and its user
// interface write, without Nsight Compute. A report has no units; its values
// are in base units, and Value.Unit is filled only for times and percentages.
// Memory is bounded by the largest launch plus the metrics of all, and these by
// limits of their own. Embedded
// sources, code, host names, paths and command lines are passed over. The Report
// is never nil; beside an error it holds the launches that were read before.
func ReadReport(r io.ReaderAt, size int64, name string) (*Report, error) {
	p := newReportReader(r, size)
	err := p.read()
	read := p.rep.Launches
	for i, l := range read {
		l.file = name
		if failed := p.finish(l); failed != nil {
			p.rep.Launches = read[:i]
			err = cmp.Or(err, failed)
			break
		}
	}
	switch {
	case err != nil:
		return p.rep, p.place(err, name)
	case len(read) == 0:
		return p.rep, &SyntaxError{File: name, Msg: "the report holds no launch", Err: ErrNoTable}
	}
	return p.rep, nil
}

type reportReader struct {
	r       io.ReaderAt
	size    int64
	pos     int64
	names   *nameTable
	values  int   // metrics so far
	kept    int64 // bytes of what was kept so far
	limit   int64 // of kept
	rep     *Report
	session session
}

func newReportReader(r io.ReaderAt, size int64) *reportReader {
	return &reportReader{r: r, size: size, names: &nameTable{}, rep: &Report{}, limit: maxRetained}
}

// place turns an error into a refusal with the byte where reading stopped.
func (p *reportReader) place(err error, name string) error {
	var s *SyntaxError
	if errors.As(err, &s) {
		s.File = name
		return s
	}
	var failed *readError
	if errors.As(err, &failed) {
		return fmt.Errorf("%s: %w", name, failed.err)
	}
	if strings.HasSuffix(name, ".ncu-repz") {
		return &SyntaxError{File: name, Msg: "a compressed report (.ncu-repz) cannot be read", Err: err, Hint: hintExport}
	}
	return &SyntaxError{File: name, Msg: fmt.Sprintf("the report is damaged before byte %d: %v", p.pos, err), Err: err,
		Hint: "check that the file is whole, or " + hintExport}
}

func (p *reportReader) read() error {
	head, err := p.take(min(p.size, int64(len(lfsHead))))
	if err != nil {
		return err
	}
	if !strings.HasPrefix(string(head), string(reportHead)) {
		return p.refuseMagic(head)
	}
	if p.size > maxReport {
		return fmt.Errorf("it has %d bytes, more than %d", p.size, int64(maxReport))
	}
	p.pos = int64(len(reportHead))
	header, err := p.sized(4096)
	if err != nil {
		return err
	}
	if err := checkVersion(header); err != nil {
		return err
	}
	for p.pos < p.size {
		if err := p.block(); err != nil {
			return err
		}
	}
	return nil
}

func (p *reportReader) refuseMagic(head []byte) error {
	if len(head) >= 4 && string(head[:4]) != string(reportHead) {
		if err := refuseBinary(head); err != nil {
			return err
		}
	}
	return &SyntaxError{Msg: "this is no .ncu-rep report", Hint: hintExport}
}

func checkVersion(header []byte) error {
	version := uint64(0)
	err := eachField(header, func(f field) error {
		if f.num == 1 && f.wire == wireVarint {
			version = f.value
		}
		return nil
	})
	if err != nil {
		return err
	}
	if version != reportVersion {
		return &SyntaxError{Msg: fmt.Sprintf("the report has format version %d, only %d is known", version, reportVersion), Hint: hintExport}
	}
	return nil
}

// take reads n bytes, which must be there.
func (p *reportReader) take(n int64) ([]byte, error) {
	if n > p.size-p.pos {
		return nil, errors.New("it is cut off")
	}
	b := make([]byte, n)
	if _, err := p.r.ReadAt(b, p.pos); err != nil && err != io.EOF {
		return nil, &readError{err}
	} else if err == io.EOF && n > 0 && p.pos+n < p.size {
		return nil, errors.New("it is shorter than its size")
	}
	p.pos += n
	return b, nil
}

// length reads the length of what follows.
func (p *reportReader) length(limit int64) (int64, error) {
	b, err := p.take(4)
	if err != nil {
		return 0, err
	}
	n := int64(binary.LittleEndian.Uint32(b))
	if n > limit {
		return 0, fmt.Errorf("a part has %d bytes, more than %d", n, limit)
	}
	return n, nil
}

func (p *reportReader) sized(limit int64) ([]byte, error) {
	n, err := p.length(limit)
	if err != nil {
		return nil, err
	}
	return p.take(n)
}

// A blockHeader says what the payload of a block is made of.
type blockHeader struct {
	sources, results, ranges uint64
	payload                  uint64
}

func (p *reportReader) block() error {
	b, err := p.sized(maxBlockHeader)
	if err != nil {
		return err
	}
	var h blockHeader
	if err := eachField(b, func(f field) error { return p.headerField(&h, f) }); err != nil {
		return err
	}
	if h.payload > uint64(p.size-p.pos) {
		return errors.New("a block is cut off")
	}
	end := p.pos + int64(h.payload)
	if h.sources+h.results+h.ranges < h.sources || h.sources+h.results+h.ranges > h.payload/4 {
		return errors.New("a block is too small for what it should hold")
	}
	if h.ranges > 0 {
		return &SyntaxError{Msg: fmt.Sprintf("the report holds %d profiled ranges, which are not launches", h.ranges),
			Hint: "profile with --replay-mode kernel or application"}
	}
	for i := uint64(0); i < h.sources; i++ { // embedded code
		n, err := p.length(maxReport)
		if err != nil {
			return err
		}
		if n > end-p.pos {
			return errors.New("a source is longer than its block")
		}
		p.pos += n
	}
	for i := uint64(0); i < h.results; i++ {
		if err := p.result(end); err != nil {
			return err
		}
	}
	if p.pos != end {
		return errors.New("a block has another size than its parts")
	}
	return nil
}

func (p *reportReader) headerField(h *blockHeader, f field) error {
	switch {
	case f.num == 1 && f.wire == wireVarint:
		h.sources = f.value
	case f.num == 2 && f.wire == wireVarint:
		h.results = f.value
	case f.num == 3 && f.wire == wireBytes:
		return p.session.add(f.bytes)
	case f.num == 4 && f.wire == wireBytes && len(f.bytes) > 0:
		names, err := p.names.next(f.bytes)
		p.names = names
		return err
	case f.num == 5 && f.wire == wireVarint:
		h.payload = f.value
	case f.num == 7 && f.wire == wireVarint:
		h.ranges = f.value
	}
	return nil
}

func (p *reportReader) result(end int64) error {
	n, err := p.length(maxResult)
	if err != nil {
		return err
	}
	if n > end-p.pos {
		return errors.New("a result is longer than its block")
	}
	if len(p.rep.Launches) >= maxLaunches {
		return fmt.Errorf("it holds more than %d launches", maxLaunches)
	}
	b, err := p.take(n)
	if err != nil {
		return err
	}
	l := &Launch{ID: len(p.rep.Launches)}
	if err := p.launch(l, b); err != nil {
		return err
	}
	p.rep.Launches = append(p.rep.Launches, l)
	return nil
}

// finish fills in what comes after the launch in the file: the names of its
// metrics and what the session says.
func (p *reportReader) finish(l *Launch) error {
	p.rep.Session = p.session.Session
	v := l.values.(*reportValues)
	if err := v.resolve(); err != nil {
		return err
	}
	l.identify(v)
	if l.CC != "" {
		return nil
	}
	for _, d := range p.session.Devices {
		if d.Index == l.Device {
			l.CC = d.cc()
		}
	}
	return nil
}
