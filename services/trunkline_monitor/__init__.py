"""What the NATS servers say of themselves, and when certificates expire, as metrics."""
