"""What the projector can be told."""

from trunkline_service import Settings


class ProjectorSettings(Settings, frozen=True, kw_only=True):
    """`parts`: in how many parts the 64 partitions are cut, to be shared by replicas: 1, 2, 4 … 64."""

    parts: int = 1
