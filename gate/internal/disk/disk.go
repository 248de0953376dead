// Package disk reads and writes files that other processes read and write at
// the same moment, and that a kill or a power cut may leave behind.
package disk

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// unnamed is how a file begins that does not have its name yet. It lies in the
// folder of that name, which may be on another file system than the cache.
const unnamed = ".tmp-"

// IsUnnamed reports whether a name is one under which a file is written before it gets its own.
func IsUnnamed(name string) bool { return strings.HasPrefix(name, unnamed) }

// WriteFile replaces a file as a whole or not at all; when it returns without
// an error, a power cut does not undo it.
func WriteFile(path string, data []byte) error {
	if err := replace(path, data, (*os.File).Sync); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// ReplaceFile is WriteFile for files that are written often and whose readers find out
// when one is damaged: a kill does not tear the file, but a power cut soon after may.
func ReplaceFile(path string, data []byte) error {
	return replace(path, data, func(*os.File) error { return nil })
}

func replace(path string, data []byte, sync func(*os.File) error) error {
	sweep(filepath.Dir(path), unnamed)
	f, err := os.CreateTemp(filepath.Dir(path), unnamed+Owner()+"-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	for _, step := range []func() error{
		func() error { _, err := f.Write(data); return err },
		func() error { return f.Chmod(0o644) },
		func() error { return sync(f) },
		f.Close,
		func() error { return os.Rename(f.Name(), path) },
	} {
		if err := step(); err != nil {
			f.Close()
			os.Remove(f.Name())
			return fmt.Errorf("writing %s: %w", path, err)
		}
	}
	return nil
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// PublishFolder renames a folder that is complete to its final name. What lies
// there already is kept when it is whole and replaced when it is not: a
// damaged folder would otherwise stay for ever.
func PublishFolder(made, final string, whole func() bool) error {
	if err := os.Chmod(made, 0o755); err != nil { // TempDir makes it the user's alone
		return err
	}
	if err := os.Rename(made, final); err == nil || whole() {
		return nil
	}
	if err := os.RemoveAll(final); err != nil {
		return err
	}
	return os.Rename(made, final)
}

// ReadFile reads a file of at most so many bytes. What is larger, or is a link
// or no regular file, is refused.
func ReadFile(path string, most int64) ([]byte, error) {
	refused := fmt.Errorf("%s is not a file of at most %d bytes", path, most)
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, refused
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return nil, refused
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1)) // a file below /proc does not tell its size
	if int64(len(data)) > most {
		return nil, refused
	}
	return data, err
}

// SHA256 is the hash of a file's content, in hex.
func SHA256(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
