"""What the services stand on: Kafka, gRPC, telemetry, configuration. The pure packages know nothing of it."""
