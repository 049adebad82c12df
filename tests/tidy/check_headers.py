"""Compiles each public header alone: C++ headers as C++20, C headers as C11 and as C++20."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

from common import ROOT, finish, name_of, project_files

FLAGS = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-DMSGPACK_NO_BOOST",
         "-I", str(ROOT / "include")]


def compile_alone(job):
    language, standard, path = job
    compiler = os.environ.get("CC", "gcc") if language == "c" else os.environ.get("CXX", "g++")
    header = path.relative_to(ROOT / "include").as_posix()
    run = subprocess.run([compiler, *FLAGS, f"-std={standard}", "-x", language, "-"],
                         input=f"#include <{header}>\n", capture_output=True, text=True,
                         check=False)
    if run.returncode == 0:
        return None
    return f"{name_of(path)} does not compile alone as {standard}:\n{run.stderr}"


def jobs():
    for path in project_files(".hpp", ".h"):
        if not name_of(path).startswith("include/"):
            continue
        yield "c++", "c++20", path
        if path.suffix == ".h":
            yield "c", "c11", path


def main():
    with ThreadPoolExecutor(max_workers=2) as pool:
        problems = [problem for problem in pool.map(compile_alone, jobs()) if problem]
    finish(problems, "A public header includes all that it uses, and nothing of lib.")


if __name__ == "__main__":
    main()
