from trunkline_extensions.push.app import PushConfig, opened
from trunkline_extensions.run import run

if __name__ == "__main__":
    run("push", PushConfig, opened)
