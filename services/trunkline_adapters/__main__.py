"""`python -m trunkline_adapters`: the worker process."""

import gc


def main() -> None:
    gc.disable()  # among modules being loaded there is no garbage; `run` enables it
    from trunkline_adapters.app import run_app
    from trunkline_adapters.settings import AdaptersSettings
    from trunkline_service import run

    run("adapters", run_app, AdaptersSettings)


if __name__ == "__main__":
    main()
