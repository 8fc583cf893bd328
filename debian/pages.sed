# Who preloads has the library without the developers' link.
/LD_PRELOAD=/s,\(libreap-[a-z]*\.so\)\([^.]\|$\),\1.0\2,g
# The path of a library has the architecture's name: the loader finds it without, and a shell has a word for it.
/bpftrace/s,/usr/lib/[a-z0-9_]*-linux-gnu/libreap,/usr/lib/'"$(uname -m)"'-linux-gnu/libreap,
s,/usr/lib/[a-z0-9_]*-linux-gnu/libreap,libreap,g
