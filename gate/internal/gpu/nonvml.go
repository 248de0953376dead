//go:build !cgo || !linux

package gpu

import "context"

func nvmlDevices(context.Context) ([]Device, error) { return nil, errNVMLUnavailable }

func nvmlProcesses(context.Context) ([]Process, error) { return nil, errNVMLUnavailable }
