# From an unpacked bootstrap set to an installed system. Nothing is downloaded:
# the sources are empty, so apt proves that the list is complete.
set -eu
export DEBIAN_FRONTEND=noninteractive DEBCONF_NONINTERACTIVE_SEEN=true LC_ALL=C.UTF-8 HOME=/root TZ=UTC

mkdir -p /var/lib/dpkg/info /var/lib/dpkg/updates /etc/dpkg/dpkg.cfg.d /etc/apt/apt.conf.d /proc /sys /dev /tmp /run /root
touch /var/lib/dpkg/status /var/lib/dpkg/available
chmod 1777 /tmp
# No service starts here, and a build image needs no manuals.
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
cat > /etc/dpkg/dpkg.cfg.d/builder << 'CFG'
force-unsafe-io
path-exclude=/usr/share/man/*
path-exclude=/usr/share/locale/*
path-exclude=/usr/share/info/*
path-exclude=/usr/share/doc/*
path-include=/usr/share/doc/*/copyright
CFG

# base-passwd reads its master files; awk is an alternative that mawk would set.
[ -e /etc/passwd ] || cp /usr/share/base-passwd/passwd.master /etc/passwd
[ -e /etc/group ] || cp /usr/share/base-passwd/group.master /etc/group
[ -e /usr/bin/awk ] || ln -s mawk /usr/bin/awk
dpkg --force-depends --force-confnew --install @BOOTSTRAP@

# Everything else, in an order that apt works out.
: > /etc/apt/sources.list
mkdir -p /tmp/lists/partial /tmp/cache/archives/partial
rm -f /etc/apt/sources.list.d/*
apt-get -o Dir::State::lists=/tmp/lists -o Dir::Cache=/tmp/cache -o APT::Sandbox::User=root \
    -o Dpkg::Options::=--force-confnew -o Dpkg::Use-Pty=0 -q \
    install --yes --no-install-recommends --no-remove --allow-downgrades @ALL@

# What was installed is what was locked, and all of it is configured.
dpkg --audit
[ -z "$(dpkg --audit)" ]
cat > /tmp/want << 'WANT'
@WANT@
WANT
dpkg-query -W -f '${db:Status-Status} ${Package} ${Version}\n' | sed -n 's/^installed //p' | LC_ALL=C sort > /tmp/have
LC_ALL=C sort /tmp/want > /tmp/want.sorted
diff -u /tmp/want.sorted /tmp/have

for file in @UNPACK@; do
    dpkg-deb --fsys-tarfile "$file" | tar -x --keep-directory-symlink --keep-old-files -C /
done

# What differs from one installation to the next says nothing about the list.
rm -rf /tmp/lists /tmp/cache /tmp/want /tmp/want.sorted /tmp/have /usr/sbin/policy-rc.d /etc/dpkg/dpkg.cfg.d/builder
rm -rf /var/log/* /var/cache/apt/* /var/cache/debconf/*-old /var/lib/dpkg/*-old /var/cache/ldconfig/aux-cache /var/lib/apt/extended_states
rm -f /etc/machine-id /var/lib/dbus/machine-id /etc/hostname /etc/resolv.conf.dpkg-*
: > /etc/machine-id
