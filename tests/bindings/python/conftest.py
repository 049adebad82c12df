import os
import pathlib
import sys

ROOT = pathlib.Path(os.environ.get("SHARDBUS_SOURCE_DIR", pathlib.Path(__file__).parents[3]))
sys.path.insert(0, str(ROOT / "bindings/python"))
sys.path.insert(0, str(pathlib.Path(__file__).parent))
