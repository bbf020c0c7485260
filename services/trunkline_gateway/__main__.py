"""`python -m trunkline_gateway`."""

import gc


def main() -> None:
    gc.disable()  # among modules being loaded there is no garbage; `run` enables it
    from trunkline_gateway.app import run_app
    from trunkline_gateway.settings import GatewaySettings
    from trunkline_service import run

    run("gateway", run_app, GatewaySettings)


if __name__ == "__main__":
    main()
