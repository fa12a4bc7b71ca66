"""Operators: the heavy window state, in Spark Structured Streaming, per topic partition and shard."""

import os

# Spark's launcher forks while gRPC threads run; with gRPC's own fork support the child is lost now and then.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
