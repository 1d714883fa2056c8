"""What every part of the kit may tell its users."""

from __future__ import annotations

from envkit.messages import Message


class MissingExtra(Message):
    """A command needs a package that comes with one of the kit's extras."""

    code = "install.missing-extra"
    template = "{needed_by} needs the package '{package}': pip install 'envkit[[{extra}]]'"

    needed_by: str
    package: str
    extra: str


class MissingPackage(Message):
    """A package that the kit always needs is missing: the installation is damaged."""

    code = "install.missing-package"
    template = "the package '{package}', which envkit needs, is missing: install envkit again"

    package: str
