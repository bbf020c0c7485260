"""`python -m trunkline_monitor`."""

from trunkline_monitor.app import NAME, run_app
from trunkline_monitor.settings import MonitorSettings
from trunkline_service import run_apart


def main() -> None:
    run_apart(NAME, run_app, MonitorSettings)


if __name__ == "__main__":
    main()
