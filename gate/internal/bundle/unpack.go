package bundle

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/kernelgate/gate/gate/internal/printable"
)

// The end of a zip file: its directory lies right before it, and nothing after.
const (
	endBytes  = 22
	endMagic  = 0x06054b50
	fileBytes = 46 // of the directory, at least, for each file
	deflated  = zip.Deflate

	headBytes  = 30
	headMagic  = 0x04034b50
	streamed   = 1 << 3 // sizes and sum follow the file
	afterBytes = 16     // and take so many bytes
)

// unpack reads all files of a bundle into memory. Names that are not on the
// list, anything but plain files, files that lie in each other, and bytes that
// belong to no file are refused.
func unpack(data []byte) (map[string][]byte, error) {
	count, err := directory(data)
	if err != nil {
		return nil, err
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("the bundle is not a zip file: %w", err)
	}
	if len(z.File) != count {
		return nil, errors.New("the directory of the bundle contradicts itself")
	}
	files, left, at := map[string][]byte{}, int64(mostUnpacked), int64(0)
	for _, f := range z.File {
		if f.Name != manifestName && !fileName.MatchString(f.Name) {
			return nil, fmt.Errorf("no bundle has a file %s", printable.Quote(f.Name, 100))
		}
		if _, twice := files[f.Name]; twice {
			return nil, fmt.Errorf("%s stands twice in the bundle", f.Name)
		}
		if !f.Mode().IsRegular() || f.Method != deflated || f.Flags&^(streamed|1<<11) != 0 || len(f.Extra) > 0 || f.Comment != "" {
			return nil, fmt.Errorf("%s is not a plain file", f.Name)
		}
		begin, err := f.DataOffset()
		if err != nil || !follows(data, f, at, begin) {
			return nil, fmt.Errorf("%s does not follow the file before it", f.Name)
		}
		text, err := content(f, min(left, most(f.Name)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		if at = begin + int64(f.CompressedSize64) + afterBytes; at > int64(len(data)) {
			return nil, fmt.Errorf("%s ends after the bundle", f.Name)
		}
		files[f.Name], left = text, left-int64(len(text))
	}
	if at != int64(binary.LittleEndian.Uint32(data[len(data)-6:])) {
		return nil, errors.New("the bundle has bytes that belong to no file")
	}
	return files, nil
}

// follows reports whether a file begins where the one before it ends, and calls
// itself what the directory calls it.
func follows(data []byte, f *zip.File, at, begin int64) bool {
	if begin != at+headBytes+int64(len(f.Name)) || begin > int64(len(data)) {
		return false
	}
	head := data[at:begin]
	return binary.LittleEndian.Uint32(head) == headMagic && binary.LittleEndian.Uint16(head[6:]) == f.Flags && f.Flags&streamed != 0 &&
		binary.LittleEndian.Uint16(head[8:]) == f.Method && string(head[headBytes:]) == f.Name
}

func most(name string) int64 {
	if name == manifestName {
		return mostManifest
	}
	return mostUnpacked
}

// content reads at most so many bytes, whatever the directory says.
func content(f *zip.File, most int64) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(text)) > most {
		err = errors.New("it is larger than a bundle may be")
	}
	return text, err
}

// directory is the number of files that the end of the bundle names. It is read
// before anything is made for each of them.
func directory(data []byte) (int, error) {
	if len(data) < endBytes {
		return 0, errors.New("the bundle is cut short")
	}
	end := data[len(data)-endBytes:]
	word := func(at int) int { return int(binary.LittleEndian.Uint16(end[at:])) }
	long := func(at int) int64 { return int64(binary.LittleEndian.Uint32(end[at:])) }
	count, size, offset := word(10), long(12), long(16)
	switch {
	case long(0) != endMagic || word(20) != 0:
		return 0, errors.New("the bundle is cut short, or something follows it")
	case word(4) != 0 || word(6) != 0 || word(8) != count || offset+size != int64(len(data)-endBytes):
		return 0, errors.New("the directory of the bundle is not where it says")
	case count == 0 || count > mostFiles || int64(count)*fileBytes > size:
		return 0, fmt.Errorf("the bundle has %d files", count)
	}
	return count, nil
}
