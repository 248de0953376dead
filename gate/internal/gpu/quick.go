package gpu

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Info is what the driver's files tell of a GPU without starting a process.
type Info struct {
	UUID, Model, Driver, PCI string
}

const (
	procDriver = "/proc/driver/nvidia"
	procLimit  = 64 << 10 // bytes read of one file
)

// Quick returns the GPUs named under /proc/driver/nvidia, by PCI address, in
// well under a millisecond. ok is false when anything is missing: no driver,
// or a driver that has not yet initialised a GPU and shows its UUID as
// question marks. Then ask List.
func Quick() (list []Info, ok bool) {
	return quickIn(procDriver)
}

func quickIn(dir string) ([]Info, bool) {
	version, err := readLimited(filepath.Join(dir, "version"))
	if err != nil {
		return nil, false
	}
	driver := driverVersion(version)
	files, err := filepath.Glob(filepath.Join(dir, "gpus", "*", "information")) // sorted by address
	if err != nil || driver == "" || len(files) == 0 || len(files) > maxDevices {
		return nil, false
	}
	list := make([]Info, 0, len(files))
	for _, file := range files {
		text, err := readLimited(file)
		if err != nil {
			return nil, false
		}
		info := parseInformation(text)
		info.Driver = driver
		if info.Model == "" || checkUUID(info.UUID) != nil {
			return nil, false
		}
		list = append(list, info)
	}
	return list, true
}

var dottedVersion = regexp.MustCompile(`^\d+\.\d+(\.\d+)?$`)

// driverVersion finds the version in the line "NVRM version: NVIDIA UNIX …
// 580.159.03 …", whose words differ between the open and the closed module.
func driverVersion(text string) string {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, "NVRM version:")
		if !ok {
			continue
		}
		for _, word := range strings.Fields(rest) {
			if dottedVersion.MatchString(word) {
				return word
			}
		}
	}
	return ""
}

func parseInformation(text string) Info {
	var info Info
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		value = printable(strings.TrimSpace(value), 100)
		switch strings.TrimSpace(key) {
		case "Model":
			info.Model = value
		case "GPU UUID":
			info.UUID = value
		case "Bus Location":
			info.PCI = value
		}
	}
	return info
}

// readLimited reads a small file; a larger one is an error.
func readLimited(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, procLimit+1))
	if err == nil && len(data) > procLimit {
		err = errors.New(path + " is too large")
	}
	return string(data), err
}
