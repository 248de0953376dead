package toolchain

import (
	"crypto/sha256"
	_ "embed" // toolchain.lock
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/strictjson"
)

// Version is that of the compiler that Install puts on a machine.
const Version = "13.0.88"

// pinnedBuild is what that compiler answers to --version.
const pinnedBuild = "cuda_13.0.r13.0/compiler.36424714_0"

// lock is a pip requirements file: every wheel by version and hash.
//
//go:embed toolchain.lock
var lock []byte

const (
	markerFile  = "gate-toolchain.json"
	markerLimit = 64 << 10 // bytes
)

// A marker says that the folder it lies in is whole. It is written last,
// before the folder gets its name.
type marker struct {
	Lock  string           `json:"lock_sha256"`
	Files map[string]int64 `json:"files"` // size in bytes of each program and library, by path in the folder
}

// vital are the files without which no kernel can be built. A cleaner of old
// cache files takes these too; that must be noticed before nvcc does.
var vital = []string{
	"bin/nvcc", "bin/nvcc.profile", "bin/ptxas", "bin/cudafe++", "bin/fatbinary", "bin/nvlink",
	"bin/cuobjdump", "bin/nvdisasm", "nvvm/bin/cicc", "nvvm/libdevice/libdevice.10.bc",
	"lib64/libcudart_static.a", "lib64/libcudadevrt.a", "include/cuda_runtime.h", "include/crt/host_config.h",
	"include/cccl/cuda/std/type_traits",
}

func lockSHA256() string {
	sum := sha256.Sum256(lock)
	return hex.EncodeToString(sum[:])
}

// installDir is named by what is in it, so that another gate with another
// lock file installs beside, not over.
func installDir(cacheDir string) string {
	return filepath.Join(cacheDir, "toolchains", "cuda-"+Version+"-"+lockSHA256()[:12])
}

// rootIn is the CUDA root inside a folder that pip filled.
func rootIn(dir string) string { return filepath.Join(dir, "nvidia", "cu13") }

// installedRoot returns the root of the compiler that Install left in cacheDir.
// ok is false when there is none; a damaged one is an error.
func installedRoot(cacheDir string) (root string, ok bool, err error) {
	dir := installDir(cacheDir)
	root = rootIn(dir)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err := verifyMarker(dir); err != nil {
		return root, false, fmt.Errorf("the installed compiler is damaged: %w", err)
	}
	return root, true, nil
}

// verifyMarker holds the vital files against the sizes noted at installation.
func verifyMarker(dir string) error {
	path := filepath.Join(dir, markerFile)
	data, err := disk.ReadFile(path, markerLimit)
	if err != nil {
		return err
	}
	var m marker
	if err := strictjson.Decode(data, markerLimit, &m); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if m.Lock != lockSHA256() {
		return fmt.Errorf("%s belongs to another lock file", path)
	}
	for _, name := range vital {
		want, noted := m.Files[name]
		if !noted {
			return fmt.Errorf("%s does not list %s", path, name)
		}
		info, err := os.Stat(filepath.Join(rootIn(dir), name))
		if err != nil {
			return err
		}
		if info.Size() != want {
			return fmt.Errorf("%s has %d bytes, want %d", filepath.Join(rootIn(dir), name), info.Size(), want)
		}
	}
	return nil
}

// writeMarker notes the sizes of the vital files; one that is missing or empty
// is an error.
func writeMarker(dir string) error {
	m := marker{Lock: lockSHA256(), Files: map[string]int64{}}
	for _, name := range vital {
		info, err := os.Stat(filepath.Join(rootIn(dir), name))
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() || info.Size() == 0 {
			return fmt.Errorf("%s is not a file with content", filepath.Join(rootIn(dir), name))
		}
		m.Files[name] = info.Size()
	}
	data, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	return disk.WriteFile(filepath.Join(dir, markerFile), append(data, '\n'))
}
