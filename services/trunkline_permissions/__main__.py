"""`python -m trunkline_permissions`."""

from trunkline_permissions.app import run_app
from trunkline_permissions.settings import PermissionsSettings
from trunkline_service import run

if __name__ == "__main__":
    run("permissions", run_app, PermissionsSettings)
