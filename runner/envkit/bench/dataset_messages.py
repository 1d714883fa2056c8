"""Messages about where the training data is from."""

from __future__ import annotations

from envkit.messages import Message, Severity


class NoSource(Message):
    """A source does not have the data. ``source`` is one of the names below, ``problem`` its own."""

    code = "bench.no-source"
    severity = Severity.NOTE
    template = "data: {source}: {problem}"

    source: str
    problem: Message


class SyntheticInstead(Message):
    """No source has the data, so that the kit makes some."""

    code = "bench.synthetic-instead"
    severity = Severity.WARNING
    template = "data: Fashion-MNIST is not available: using SYNTHETIC data of the same shapes"


class NotInFolder(Message):
    """The folder that the user named does not have the data."""

    code = "bench.not-in-folder"
    template = "--data {folder}: {problem}; give a folder with the four files of Fashion-MNIST"

    folder: str
    problem: Message


class CacheUnwritable(Message):
    code = "bench.cache-unwritable"
    template = "{folder}: the data set can't be cached there: {reason}; set XDG_CACHE_HOME to a folder with 60 MB"

    folder: str
    reason: str


# Why a source does not have the data.


class FileMissing(Message):
    code = "bench.file-missing"
    severity = Severity.NOTE
    template = "{file}[[.gz]]: no such file"

    file: str


class FileDamaged(Message):
    code = "bench.file-damaged"
    severity = Severity.NOTE
    template = "{file}: corrupt or truncated ({reason})"

    file: str
    reason: str


class FileDiffers(Message):
    """A file is not the one that was published."""

    code = "bench.file-differs"
    severity = Severity.NOTE
    template = "{file}: {problem}"

    file: str
    problem: Message


class CacheEmpty(Message):
    code = "bench.cache-empty"
    severity = Severity.NOTE
    template = "{folder}: still empty"

    folder: str


class FolderMissing(Message):
    code = "bench.folder-missing"
    severity = Severity.NOTE
    template = "{folder}: no such folder"

    folder: str


class ToolTimedOut(Message):
    code = "bench.tool-timed-out"
    severity = Severity.NOTE
    template = "{tool} did not finish within {seconds:g} s"

    tool: str
    seconds: float


class ToolFailed(Message):
    """``printed`` is the last line that a tool printed."""

    code = "bench.tool-failed"
    severity = Severity.NOTE
    template = "{tool} failed[: {printed}]"

    tool: str
    printed: str | None = None


class NoPackageTools(Message):
    code = "bench.no-package-tools"
    severity = Severity.NOTE
    template = "apt-get or dpkg-deb is not on this machine"


class NoPackage(Message):
    code = "bench.no-package"
    severity = Severity.NOTE
    template = "apt-get download {package} left no package"

    package: str


class DownloadFailed(Message):
    code = "bench.download-failed"
    severity = Severity.NOTE
    template = "{url}: {reason}"

    url: str
    reason: str


# Where the data of a run is from. A record has one of these.


class FromPlace(Message):
    """``kind`` is FOLDER, CACHE, SYSTEM_FOLDER, PACKAGE or PUBLISHER."""

    code = "bench.from-place"
    severity = Severity.NOTE
    template = "{kind} {place}"

    kind: str
    place: str  # a folder, a package or a URL


FOLDER, CACHE, SYSTEM_FOLDER, PACKAGE, PUBLISHER = "folder", "cache", "system folder", "Debian package", "publisher"


class SyntheticAsked(Message):
    code = "bench.synthetic-asked"
    severity = Severity.NOTE
    template = "synthetic, as asked for"


class SyntheticUsed(Message):
    code = "bench.synthetic-used"
    severity = Severity.WARNING
    template = "synthetic, because no source of Fashion-MNIST could be reached"


class OfCommand(Message):
    """A user's command brings its own data."""

    code = "bench.of-command"
    severity = Severity.NOTE
    template = "the command's own"


class FromSeed(Message):
    """Workloads make their data themselves."""

    code = "bench.from-seed"
    severity = Severity.NOTE
    template = "generated from a seed"


class PartlyFromSeed(Message):
    """Some of several workloads make their data themselves."""

    code = "bench.partly-from-seed"
    severity = Severity.NOTE
    template = "{source}; the other workloads' data is generated from a seed"

    source: Message
