"""`python -m trunkline_permissions`."""

import gc


def main() -> None:
    gc.disable()  # among modules being loaded there is no garbage; `run` enables it
    from trunkline_permissions.app import run_app
    from trunkline_permissions.settings import PermissionsSettings
    from trunkline_service import run

    run("permissions", run_app, PermissionsSettings)


if __name__ == "__main__":
    main()
