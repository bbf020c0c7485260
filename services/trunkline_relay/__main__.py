"""`python -m trunkline_relay`: the host's side of a relay."""

from trunkline_relay.app import NAME, run_app
from trunkline_relay.settings import RelaySettings
from trunkline_service import run_apart


def main() -> None:
    run_apart(NAME, run_app, RelaySettings)


if __name__ == "__main__":
    main()
