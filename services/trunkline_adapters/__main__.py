"""`python -m trunkline_adapters`: the worker process."""

from trunkline_adapters.app import run_app
from trunkline_adapters.settings import AdaptersSettings
from trunkline_service import run

if __name__ == "__main__":
    run("adapters", run_app, AdaptersSettings)
