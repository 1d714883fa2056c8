# What Enroot's shell runs inside, in the place of the image's own /etc/rc: it goes to a folder, and becomes a command there.
cd "$1" && shift && exec "$@"
