"""`python -m trunkline_teams`."""

from trunkline_service import run
from trunkline_teams.app import NAME, run_app


def main() -> None:
    run(NAME, run_app)


if __name__ == "__main__":
    main()
