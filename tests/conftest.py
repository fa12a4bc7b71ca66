"""What all tests share: how many cases the property tests generate, and systems that are quick rather than thrifty."""

from __future__ import annotations

import os

os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")  # no JVM of a test lives to earn more compiling
os.environ.setdefault("STAIRWISE_TRIGGER_MS", "100")
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # with it, a process started beside gRPC threads may be lost

from hypothesis import HealthCheck, settings

_PATIENT = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("quick", max_examples=5, deadline=None, suppress_health_check=_PATIENT)
settings.register_profile("default", max_examples=25, deadline=None, suppress_health_check=_PATIENT)
settings.register_profile("long", max_examples=1000, deadline=None, suppress_health_check=_PATIENT)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
