# Run-time environment of stack: fabric roce, lib 4, version 2.0.

# no fallback
# holds for: fabric roce
# source: https://example.com/net
ENV NET=IB

# a witness
# place: every process
# reported: https://example.com/debug
ENV DEBUG=INFO

# asked for
ENV A=1,2

# it hangs
# holds for: version >=2.0
# unconfirmed: https://example.com/sync
# option: --sync.backend gloo

# asked for
# option: --b x

# note: this release pins another lib
# https://example.com/pins

# note: lib 4 counts no GPUs
# https://example.com/count
