"""Times a kernel of the op attention beside PyTorch's SDPA on long sequences.

    python3 long_sequences.py KERNEL.so [processes]

Shapes 4×16×4096×64 and ×128. Each process checks every contender against float64
on all rows, then times rounds in which each has its turn, ten calls between two
events. Printed are medians over rounds and the ratio to the faster SDPA backend,
with its 95 % interval over rounds; the last lines give the worst process.
"""

import ctypes
import random
import statistics
import subprocess
import sys

ROUNDS, CALLS, TOLERANCE = 20, 10, 1e-3


class Call(ctypes.Structure):
    """gate_call of gate.h."""

    _fields_ = [("num_dims", ctypes.c_int32), ("num_inputs", ctypes.c_int32), ("num_outputs", ctypes.c_int32),
                ("dims", ctypes.POINTER(ctypes.c_int64)), ("inputs", ctypes.POINTER(ctypes.c_void_p)),
                ("outputs", ctypes.POINTER(ctypes.c_void_p)), ("workspace", ctypes.c_void_p), ("workspace_bytes", ctypes.c_int64)]


def call_of(q, k, v, out):
    return Call(4, 3, 1, (ctypes.c_int64 * 4)(*q.shape), (ctypes.c_void_p * 3)(*(x.data_ptr() for x in (q, k, v))),
                (ctypes.c_void_p * 1)(out.data_ptr()), None, 0)


def contenders(library, q, k, v, out):
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    call = call_of(q, k, v, out)
    if library.gate_prepare(ctypes.byref(call)) != 0:
        sys.exit("gate_prepare failed")

    def kernel():
        if library.gate_run(ctypes.byref(call), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)) != 0:
            sys.exit("gate_run failed")
        return out

    def sdpa(backend):
        def run():
            with sdpa_kernel([backend]):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v)
        return run

    return {"kernel": kernel, "cudnn": sdpa(SDPBackend.CUDNN_ATTENTION), "flash": sdpa(SDPBackend.FLASH_ATTENTION)}


def reference(q, k, v):
    import torch

    out = torch.empty(q.shape, dtype=torch.float64, device="cuda")
    for batch in range(q.shape[0]):
        for head in range(q.shape[1]):
            a, b, c = (x[batch, head].double() for x in (q, k, v))
            out[batch, head] = torch.softmax(a @ b.T / q.shape[3] ** 0.5, -1) @ c
    return out


def interval(values, seed):
    """A bootstrap interval of the median."""
    draw = random.Random(seed)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(2000))
    return medians[50], medians[1949]


def measure(path, seed):
    import torch

    torch.manual_seed(seed)
    library = ctypes.CDLL(path)
    for dim in (64, 128):
        q, k, v = (torch.randn(4, 16, 4096, dim, device="cuda", dtype=torch.float16) for _ in range(3))
        out = torch.full_like(q, float("nan"))
        runs, exact = contenders(library, q, k, v, out), reference(q, k, v)
        for name, run in runs.items():
            error = ((run().double() - exact).norm() / exact.norm()).item()
            if not error <= TOLERANCE:
                sys.exit(f"{name} is wrong: relative error {error:.2e}")
        times = {name: [] for name in runs}
        order = random.Random(seed)
        for turn in range(ROUNDS + 3):
            for name in order.sample(list(runs), len(runs)):
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                runs[name]()
                begin.record()
                for _ in range(CALLS):
                    runs[name]()
                end.record()
                end.synchronize()
                if turn >= 3:
                    times[name].append(begin.elapsed_time(end) / CALLS)
        best = min(("cudnn", "flash"), key=lambda name: statistics.median(times[name]))
        ratios = [b / a for a, b in zip(times["kernel"], times[best])]
        low, high = interval(ratios, seed)
        work = 4 * q.numel() * q.shape[2] / 1e9
        rates = " ".join(f"{name} {work / statistics.median(t):.1f}" for name, t in times.items())
        print(f"4x16x4096x{dim} TFLOP/s: {rates}; speed over {best} {statistics.median(ratios):.3f} [{low:.3f}, {high:.3f}]", flush=True)


def main():
    path, processes = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
    if processes == 0:
        return measure(path, int(sys.argv[3]))
    lines = []
    for seed in range(processes):
        text = subprocess.run([sys.executable, __file__, path, "0", str(seed)], check=True, capture_output=True, text=True).stdout
        print(text, end="")
        lines += text.splitlines()
    for dim in (64, 128):
        worst = min((line for line in lines if line.startswith(f"4x16x4096x{dim} ")), key=lambda line: float(line.split(" over ")[1].split()[1]))
        print("worst:", worst)


if __name__ == "__main__":
    main()
