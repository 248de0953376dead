package ncu

import (
	"errors"
	"fmt"
	"sort"
	"strings"
)

const (
	maxDevices    = 1 << 10
	maxAttributes = 1 << 12
)

// session gathers what the block headers of a report say about the run. Of the
// many entries only versions and devices are kept.
type session struct{ Session }

func (s *session) add(b []byte) error {
	return eachField(b, func(f field) error {
		if f.wire != wireBytes {
			return nil
		}
		switch f.num {
		case 6:
			return s.device(f.bytes)
		case 8:
			return s.version(f.bytes)
		}
		return nil
	})
}

func (s *session) version(b []byte) error {
	var name, value string
	err := eachField(b, func(f field) error {
		switch {
		case f.num == 1 && f.wire == wireBytes:
			name = reportText(f.bytes)
		case f.num == 2 && f.wire == wireBytes:
			value = reportText(f.bytes)
		}
		return nil
	})
	switch name {
	case "Nsight Compute Target":
		s.Version, _, _ = strings.Cut(value, " ")
	case "CUDA Version":
		s.CUDAVersion = value
	case "Display Driver Version":
		s.DriverVersion = value
	}
	return err
}

func (s *session) device(b []byte) error {
	if len(s.Devices) >= maxDevices {
		return errors.New("it has too many devices")
	}
	var d Device
	err := eachField(b, func(f field) error {
		switch {
		case f.num == 1 && f.wire == wireVarint:
			if f.value >= maxDevices {
				return fmt.Errorf("device number %d", f.value)
			}
			d.Index = int(f.value)
		case f.num == 2 && f.wire == wireBytes:
			d.Name = reportText(f.bytes)
		case f.num == 3 && f.wire == wireBytes:
			return d.attribute(f.bytes)
		}
		return nil
	})
	sort.SliceStable(d.Attributes, func(i, j int) bool { return d.Attributes[i].Name < d.Attributes[j].Name })
	s.Devices = append(s.Devices, d)
	return err
}

func (d *Device) attribute(b []byte) error {
	if len(d.Attributes) >= maxAttributes {
		return errors.New("a device has too many attributes")
	}
	var a Attribute
	err := eachField(b, func(f field) (err error) {
		switch {
		case f.num == 1 && f.wire == wireBytes:
			a.Name = reportText(f.bytes)
		case f.num == 2 && f.wire == wireBytes:
			a.Value, err = reportValue(f.bytes)
		}
		return err
	})
	d.Attributes = append(d.Attributes, a)
	return err
}

// cc returns the compute capability, or "" when the report does not say.
func (d *Device) cc() string {
	major, minor := -1.0, -1.0
	for _, a := range d.Attributes {
		switch a.Name {
		case "device__attribute_compute_capability_major":
			major, _ = a.Value.Float()
		case "device__attribute_compute_capability_minor":
			minor, _ = a.Value.Float()
		}
	}
	if major < 0 || minor < 0 {
		return ""
	}
	return fmt.Sprintf("%.0f.%.0f", major, minor)
}
