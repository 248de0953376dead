package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/gate/gate/internal/printable"
)

// A field is one column of `nvidia-smi --query-gpu`.
type field struct {
	name  string
	older string // what older drivers call it
	set   func(d *Device, text string) error
}

// fields are asked in one call. A driver that does not know one of them
// refuses the whole call, so those are dropped one by one; the first four
// cannot be.
var fields = []field{
	{"index", "", func(d *Device, s string) (err error) { d.Index, err = parseIndex(s); return }},
	{"uuid", "", func(d *Device, s string) error { d.UUID = s; return checkUUID(s) }},
	{"name", "", func(d *Device, s string) (err error) { d.Name, err = parseText(s); return }},
	{"driver_version", "", func(d *Device, s string) (err error) { d.Driver, err = parseText(s); return }},
	{"pci.bus_id", "", func(d *Device, s string) error { d.PCI = textOrNothing(s); return nil }},
	{"compute_cap", "", func(d *Device, s string) error { d.ComputeCapability = textOrNothing(s); return nil }},
	{"mig.mode.current", "", func(d *Device, s string) (err error) { d.MIG, err = parseSwitch(s); return }},
	{"persistence_mode", "", func(d *Device, s string) (err error) { d.Persistence, err = parseSwitch(s); return }},
	{"power.limit", "", reading(func(d *Device) *Reading { return &d.PowerLimit })},
	{"power.draw", "", reading(func(d *Device) *Reading { return &d.PowerDraw })},
	{"temperature.gpu", "", reading(func(d *Device) *Reading { return &d.Temperature })},
	{"clocks.sm", "", reading(func(d *Device) *Reading { return &d.SMClock })},
	{"clocks.mem", "", reading(func(d *Device) *Reading { return &d.MemoryClock })},
	{"clocks.max.sm", "", reading(func(d *Device) *Reading { return &d.MaxSMClock })},
	{"clocks.max.mem", "", reading(func(d *Device) *Reading { return &d.MaxMemClock })},
	{"memory.total", "", reading(func(d *Device) *Reading { return &d.MemoryTotal })},
	{"memory.used", "", reading(func(d *Device) *Reading { return &d.MemoryUsed })},
	{"utilization.gpu", "", reading(func(d *Device) *Reading { return &d.Utilization })},
	{"clocks_event_reasons.active", "clocks_throttle_reasons.active", func(d *Device, s string) (err error) { d.Throttle, err = parseReasons(s); return }},
}

const requiredFields = 4

// maxDevices bounds what is believed of one machine.
const maxDevices = 1024

// List returns the GPUs that the driver shows, by index.
func List(ctx context.Context) ([]Device, error) {
	list, err := firstAnswer(ctx, nvmlDevices, smiDevices)
	if err != nil {
		return nil, fmt.Errorf("list GPUs: %w", err)
	}
	return list, nil
}

func smiDevices(ctx context.Context) ([]Device, error) {
	asked := slices.Clone(fields)
	for {
		out, err := smi(ctx, "--query-gpu="+names(asked), "--format=csv,noheader,nounits")
		if err == nil {
			return parseDevices(out, asked)
		}
		if asked, err = withoutRefused(asked, err); err != nil {
			return nil, err
		}
	}
}

func names(fs []field) string {
	list := make([]string, len(fs))
	for i, f := range fs {
		list[i] = f.name
	}
	return strings.Join(list, ",")
}

var refusedField = regexp.MustCompile(`Field "([^"]+)" is not a valid field to query`)

// withoutRefused takes the field that the driver refused out of the list, or
// puts its older name in. Each call shortens the list or uses up a name, so
// asking again ends.
func withoutRefused(asked []field, err error) ([]field, error) {
	var failed *smiError
	if !errors.As(err, &failed) {
		return nil, err
	}
	m := refusedField.FindStringSubmatch(failed.said)
	if m == nil {
		return nil, err
	}
	i := slices.IndexFunc(asked, func(f field) bool { return f.name == m[1] })
	if i < requiredFields {
		return nil, err
	}
	if older := asked[i].older; older != "" {
		asked[i].name, asked[i].older = older, ""
		return asked, nil
	}
	return slices.Delete(asked, i, i+1), nil
}

// parseDevices reads the table that was asked for.
func parseDevices(out string, asked []field) ([]Device, error) {
	var list []Device
	seen := map[string]bool{}
	n := 0
	for line := range strings.Lines(out) {
		n++
		if strings.TrimSpace(line) == "" {
			continue
		}
		d, err := parseDevice(line, asked)
		if err != nil {
			return nil, fmt.Errorf("line %d of nvidia-smi: %w", n, err)
		}
		if seen[d.UUID] {
			return nil, fmt.Errorf("line %d of nvidia-smi: %s is listed twice", n, d.UUID)
		}
		seen[d.UUID] = true
		if list = append(list, d); len(list) > maxDevices {
			return nil, fmt.Errorf("nvidia-smi lists more than %d", maxDevices)
		}
	}
	if len(list) == 0 {
		return nil, ErrNoDevice
	}
	slices.SortFunc(list, byIndex)
	return list, nil
}

func byIndex(a, b Device) int {
	return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.UUID, b.UUID))
}

func parseDevice(line string, asked []field) (Device, error) {
	d := Device{MIG: Absent, Persistence: Absent, Source: SMI}
	cells := strings.Split(strings.TrimSpace(line), ",")
	if len(cells) != len(asked) {
		return Device{}, fmt.Errorf("%d columns, want %d: %s", len(cells), len(asked), printable.Cut(line, 120))
	}
	for i, f := range asked {
		if err := f.set(&d, strings.TrimSpace(cells[i])); err != nil {
			return Device{}, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return d, nil
}

// unavailable returns the word by which nvidia-smi says that it has no value:
// "[N/A]", "N/A", "[Not Supported]", "[GPU requires reset]", "ERR!".
func unavailable(s string) (why string, is bool) {
	if len(s) > 2 && s[0] == '[' && s[len(s)-1] == ']' {
		return printable.Cut(s[1:len(s)-1], 80), true
	}
	return s, s == "N/A" || s == "ERR!"
}

func reading(at func(*Device) *Reading) func(*Device, string) error {
	return func(d *Device, s string) error {
		r, err := parseReading(s)
		*at(d) = r
		return err
	}
}

func parseReading(s string) (Reading, error) {
	if why, is := unavailable(s); is {
		return Reading{Why: why}, nil
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return Reading{}, fmt.Errorf("%s is not a number", printable.Quote(s, 40))
	}
	return Reading{Value: v, Known: true}, nil
}

func parseIndex(s string) (int, error) {
	v, err := strconv.Atoi(s)
	if err != nil || v < 0 {
		return 0, fmt.Errorf("%s is not an index", printable.Quote(s, 40))
	}
	return v, nil
}

func parseText(s string) (string, error) {
	if _, is := unavailable(s); is || s == "" {
		return "", fmt.Errorf("%s is not a value", printable.Quote(s, 40))
	}
	return printable.Cut(s, 100), nil
}

func textOrNothing(s string) string {
	text, err := parseText(s)
	if err != nil {
		return ""
	}
	return text
}

func parseSwitch(s string) (Switch, error) {
	if _, is := unavailable(s); is {
		return Absent, nil
	}
	switch s {
	case "Enabled":
		return On, nil
	case "Disabled":
		return Off, nil
	}
	return Absent, fmt.Errorf("%s is neither Enabled nor Disabled", printable.Quote(s, 40))
}

// parseReasons reads the bit mask of clocks_event_reasons.active.
func parseReasons(s string) (Throttle, error) {
	if why, is := unavailable(s); is {
		return Throttle{Why: why}, nil
	}
	digits, ok := strings.CutPrefix(s, "0x")
	mask, err := strconv.ParseUint(digits, 16, 64)
	if !ok || err != nil {
		return Throttle{}, fmt.Errorf("%s is not a bit mask", printable.Quote(s, 40))
	}
	return reasons(mask), nil
}

// reasons names the bits of a mask of clock event reasons. A bit that has no
// name here is still a reason.
func reasons(mask uint64) Throttle {
	t := Throttle{Known: true}
	for bit := range 64 {
		if mask&(1<<bit) == 0 {
			continue
		}
		name := fmt.Sprintf("unnamed_0x%x", uint64(1)<<bit)
		if bit < len(eventReasons) {
			name = eventReasons[bit]
		}
		t.Active = append(t.Active, name)
	}
	slices.Sort(t.Active)
	return t
}

var uuidForm = regexp.MustCompile(`^(GPU|MIG)-[0-9A-Za-z][0-9A-Za-z/-]{7,99}$`)

// checkUUID holds a UUID against its form, which also makes it safe as part of
// a file name once slashes are replaced.
func checkUUID(s string) error {
	if !uuidForm.MatchString(s) {
		return fmt.Errorf("%s is not the UUID of a GPU", printable.Quote(s, 60))
	}
	return nil
}
