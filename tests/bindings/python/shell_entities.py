"""An entity class for shell_test.py to run by its name."""

import shardbus


@shardbus.host("upper")
class Upper:
    def __init__(self, ctx):
        self.ctx = ctx

    def say(self, text):
        return text.upper()
