from trunkline_extensions.chat.app import ChatConfig, opened
from trunkline_extensions.run import run

if __name__ == "__main__":
    run("chat", ChatConfig, opened)
