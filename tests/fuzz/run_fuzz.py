"""Runs one libFuzzer program for a while, starting from the bytes of the conformance vectors.

The corpus grows in --work from run to run. An input that crashes is kept there and named in the
output; add it to the vectors or to a unit test.
"""

import argparse
import json
import pathlib
import subprocess
import sys


def write_seeds(vectors, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(vectors.glob("*/*.json")):
        for number, vector in enumerate(json.loads(path.read_text())):
            name = f"{path.parent.name}-{path.stem}-{number}"
            (folder / name).write_bytes(bytes.fromhex(vector["hex"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--vectors", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=int, default=20)
    args = parser.parse_args()
    seeds, corpus = args.work / "seeds", args.work / "corpus"
    write_seeds(args.vectors, seeds)
    corpus.mkdir(parents=True, exist_ok=True)
    command = [args.program, f"-max_total_time={args.seconds}", "-max_len=8192", "-timeout=5",
               "-rss_limit_mb=1024", "-malloc_limit_mb=256", "-print_final_stats=1",
               f"-artifact_prefix={args.work}/", str(corpus), str(seeds)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    print("\n".join(done.stderr.splitlines()[-40:]))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
