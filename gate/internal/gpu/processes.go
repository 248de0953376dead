package gpu

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/gate/gate/internal/printable"
)

// A Process is a program that has a compute context on a GPU.
type Process struct {
	UUID   string  `json:"uuid"` // of the GPU
	PID    int     `json:"pid"`  // 0 when the driver does not tell
	Name   string  `json:"name"` // "" when the driver does not tell: another container's, another user's
	Memory Reading `json:"memory_mib"`
}

// maxProcesses bounds what is believed of one machine.
const maxProcesses = 65536

// Processes returns who computes on the GPUs, by GPU and process id. In a
// container the driver may hide processes of the host, so an empty list is no
// proof that nobody is there; a device's utilization and memory tell more.
func Processes(ctx context.Context) ([]Process, error) {
	list, err := firstAnswer(ctx, nvmlProcesses, smiProcesses)
	if err != nil {
		return nil, fmt.Errorf("list GPU processes: %w", err)
	}
	slices.SortFunc(list, func(a, b Process) int {
		return cmp.Or(cmp.Compare(a.UUID, b.UUID), cmp.Compare(a.PID, b.PID), cmp.Compare(a.Name, b.Name))
	})
	return list, nil
}

func smiProcesses(ctx context.Context) ([]Process, error) {
	out, err := smi(ctx, "--query-compute-apps=gpu_uuid,pid,process_name,used_memory", "--format=csv,noheader,nounits")
	if err != nil {
		return nil, err
	}
	var list []Process
	n := 0
	for line := range strings.Lines(out) {
		n++
		if line = strings.TrimSpace(line); line == "" || line == "No running processes found" {
			continue
		}
		p, err := parseProcess(line)
		if err != nil {
			return nil, fmt.Errorf("line %d of nvidia-smi: %w", n, err)
		}
		if list = append(list, p); len(list) > maxProcesses {
			return nil, fmt.Errorf("nvidia-smi lists more than %d", maxProcesses)
		}
	}
	return list, nil
}

// parseProcess reads one row. The name is whatever lies between the second
// comma and the last: a program's name may hold commas and is not quoted.
func parseProcess(line string) (Process, error) {
	uuid, rest, ok1 := strings.Cut(line, ",")
	pid, rest, ok2 := strings.Cut(rest, ",")
	last := strings.LastIndexByte(rest, ',')
	if !ok1 || !ok2 || last < 0 {
		return Process{}, fmt.Errorf("want 4 columns: %s", printable.Cut(line, 120))
	}
	p := Process{UUID: strings.TrimSpace(uuid), Name: textOrNothing(strings.TrimSpace(rest[:last]))}
	if err := checkUUID(p.UUID); err != nil {
		return Process{}, err
	}
	var err error
	pid = strings.TrimSpace(pid)
	if _, hidden := unavailable(pid); !hidden {
		if p.PID, err = strconv.Atoi(pid); err != nil || p.PID <= 0 {
			return Process{}, fmt.Errorf("%s is not a process id", printable.Quote(pid, 40))
		}
	}
	p.Memory, err = parseReading(strings.TrimSpace(rest[last+1:]))
	return p, err
}
