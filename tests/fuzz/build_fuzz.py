"""Compiles one libFuzzer program and writes what it depends on, for ninja."""

import argparse
import pathlib
import subprocess
import tempfile

FLAGS = ["-std=c++20", "-O1", "-g1", "-fsanitize=fuzzer,address,undefined",
         "-fno-sanitize-recover=all", "-DMSGPACK_NO_BOOST"]


def compile_source(args, source, folder):
    """Returns the object and the paths that the source includes."""
    output = folder / (pathlib.Path(source).stem + ".o")
    deps = output.with_suffix(".d")
    includes = [f"-I{path}" for path in args.include]
    subprocess.run([args.compiler, *FLAGS, *includes, "-MMD", "-MF", deps, "-c", source, "-o",
                    output], check=True)
    words = deps.read_text().replace("\\\n", " ").split()
    return output, words[1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("sources", nargs="+")
    args = parser.parse_args()
    paths = set()
    with tempfile.TemporaryDirectory() as name:
        objects = []
        for source in args.sources:
            compiled, used = compile_source(args, source, pathlib.Path(name))
            objects.append(compiled)
            paths.update(used)
        subprocess.run([args.compiler, *FLAGS, *objects, "-o", args.output], check=True)
    pathlib.Path(args.output + ".d").write_text(f"{args.output}: {' '.join(sorted(paths))}\n")


if __name__ == "__main__":
    main()
