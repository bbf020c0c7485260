"""`python -m trunkline_projector`."""

from trunkline_projector.app import NAME, run_app
from trunkline_service import run


def main() -> None:
    run(NAME, run_app)


if __name__ == "__main__":
    main()
