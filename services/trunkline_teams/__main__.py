"""`python -m trunkline_teams`."""

import gc


def main() -> None:
    gc.disable()  # among modules being loaded there is no garbage; `run` enables it
    from trunkline_service import run
    from trunkline_teams.app import NAME, run_app

    run(NAME, run_app)


if __name__ == "__main__":
    main()
