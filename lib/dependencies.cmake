# Third-party libraries that lib itself links; Debian package names stand in bin/lib/setup.sh.
# Modules name them in DEPS.

shardbus_dependency(Threads::Threads PACKAGE Threads)
shardbus_dependency(PkgConfig::libzmq PC libzmq)
