"""`python -m trunkline_projector`."""

import gc


def main() -> None:
    gc.disable()  # among modules being loaded there is no garbage; `run` enables it
    from trunkline_projector.app import NAME, run_app
    from trunkline_projector.settings import ProjectorSettings
    from trunkline_service import run

    run(NAME, run_app, ProjectorSettings)


if __name__ == "__main__":
    main()
