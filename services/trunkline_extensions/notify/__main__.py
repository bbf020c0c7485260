from trunkline_extensions.notify.app import NotifyConfig, opened
from trunkline_extensions.run import run

if __name__ == "__main__":
    run("notify", NotifyConfig, opened)
