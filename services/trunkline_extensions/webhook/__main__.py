from trunkline_extensions.run import run
from trunkline_extensions.webhook.app import WebhookConfig, opened

if __name__ == "__main__":
    run("webhook", WebhookConfig, opened)
