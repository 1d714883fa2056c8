"""Messages about where the training data is from."""

from __future__ import annotations

from envkit.messages import Caution, Message, Note


class NoSource(Note):
    """A source does not have the data. ``source`` is one of the names below, ``problem`` its own."""

    template = "data: {source}: {problem}"

    source: str
    problem: Message


class SyntheticInstead(Caution):
    """No source has the data, so that the kit makes some."""

    template = "data: Fashion-MNIST is not available: using SYNTHETIC data of the same shapes"


class NotInFolder(Message):
    """The folder that the user named does not have the data."""

    template = "--data {folder}: {problem}; give a folder with the four files of Fashion-MNIST"

    folder: str
    problem: Message


class CacheUnwritable(Message):
    template = "{folder}: the data set can't be cached there: {reason}; set XDG_CACHE_HOME to a folder with 60 MB"

    folder: str
    reason: str


# Why a source does not have the data.


class FileMissing(Note):
    template = "{file}[[.gz]]: no such file"

    file: str


class FileDamaged(Note):
    template = "{file}: corrupt or truncated ({reason})"

    file: str
    reason: Message


class CacheEmpty(Note):
    template = "{folder}: still empty"

    folder: str


class FolderMissing(Note):
    template = "{folder}: no such folder"

    folder: str


class ToolTimedOut(Note):
    template = "{tool} did not finish within {seconds:g} s"

    tool: str
    seconds: float


class ToolFailed(Note):
    """``printed`` is the last line that a tool printed."""

    template = "{tool} failed[: {printed}]"

    tool: str
    printed: str | None = None


class NoPackageTools(Note):
    template = "apt-get or dpkg-deb is not on this machine"


class NoPackage(Note):
    template = "apt-get download {package} left no package"

    package: str


class DownloadFailed(Note):
    template = "{url}: {reason}"

    url: str
    reason: str


# Where the data of a run is from. A record has one of these.


class FromPlace(Note):
    """``kind`` is FOLDER, CACHE, SYSTEM_FOLDER, PACKAGE or PUBLISHER."""

    template = "{kind} {place}"

    kind: str
    place: str  # a folder, a package or a URL


FOLDER, CACHE, SYSTEM_FOLDER, PACKAGE, PUBLISHER = "folder", "cache", "system folder", "Debian package", "publisher"


class SyntheticAsked(Note):
    template = "synthetic, as asked for"


class SyntheticUsed(Caution):
    template = "synthetic, because no source of Fashion-MNIST could be reached"


class OfCommand(Note):
    """A user's command brings its own data."""

    template = "the command's own"


class FromSeed(Note):
    """Workloads make their data themselves."""

    template = "generated from a seed"


class PartlyFromSeed(Note):
    """Some of several workloads make their data themselves."""

    template = "{source}; the other workloads' data is generated from a seed"

    source: Message
