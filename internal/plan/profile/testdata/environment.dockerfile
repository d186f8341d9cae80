# Run-time environment of stack: fabric roce, lib 4, version 2.0.

# no fallback
# applies to: fabric roce
# source: https://example.com/net
ENV NET=IB

# a witness
# place: every process
# reported: https://example.com/debug
ENV DEBUG=INFO

# requested
ENV A=1,2

# it hangs
# applies to: version >=2.0
# unconfirmed: https://example.com/sync
# option: --sync.backend gloo

# requested
# option: --b x

# note: this release pins another lib
# https://example.com/pins

# note: lib 4 counts no GPUs
# https://example.com/count
