import pathlib
import sys

HERE = pathlib.Path(__file__).parent
for folder in (HERE, HERE.parent / "support", HERE.parents[1] / "bindings/python"):
    sys.path.insert(0, str(folder))
