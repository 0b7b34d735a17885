"""An exception out of a conversion fails the test: users would get the op in eager."""

from sinter.pytorch import importer

importer.RAISES_FAULTS = True
