"""`python -m trunkline_gateway`."""

from trunkline_gateway.app import run_app
from trunkline_gateway.settings import GatewaySettings
from trunkline_service import run


def main() -> None:
    run("gateway", run_app, GatewaySettings)


if __name__ == "__main__":
    main()
