"""Says which PyTorch is installed, and how C++ is compiled and linked with it."""

import json
import os

import torch
from torch.utils import cpp_extension

includes = cpp_extension.include_paths("cuda")
libraries = [os.path.join(os.path.dirname(torch.__file__), "lib")]
print(json.dumps({
    "versions": {"torch": torch.__version__, "cudnn": str(torch.backends.cudnn.version())},
    "compile": [f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"]
    + [word for folder in includes for word in ("-isystem", folder)],
    "link": [word for folder in libraries for word in ("-L", folder, f"-Wl,-rpath,{folder}")]
    + ["-Wl,--no-as-needed", "-ltorch", "-ltorch_cpu", "-ltorch_cuda", "-lc10", "-lc10_cuda"],
    "read": [os.path.dirname(os.path.dirname(torch.__file__))],
}))
