"""What starts in the pod of an executor: Spark's backend, with everything that the driver has said."""

from __future__ import annotations

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

from stairwise.platform.config import SOURCE_TREE

SAID = {
    "SPARK_JAVA_OPT_0": "-Dspark.driver.port=7078",
    "SPARK_JAVA_OPT_10": "-Dlast=1",
    "SPARK_JAVA_OPT_2": "-Dsecond=1",
    "SPARK_EXECUTOR_MEMORY": "2g",
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@driver:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.7",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "demo-exec-3",
}


@pytest.fixture(scope="module")
def executor() -> ModuleType:
    """The program has no suffix: Spark calls it by its name."""
    loader = SourceFileLoader("executor", str(SOURCE_TREE / "deploy" / "images" / "executor"))
    spec = spec_from_loader("executor", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_options_keep_their_order_and_every_argument_is_given(executor: ModuleType) -> None:
    words = executor.command(SAID, Path("/spark"))
    assert words[:6] == ["java", "-Dspark.driver.port=7078", "-Dsecond=1", "-Dlast=1", "-Xms2g", "-Xmx2g"]
    given = dict(
        zip(words[words.index(executor.BACKEND) + 1 :: 2], words[words.index(executor.BACKEND) + 2 :: 2], strict=True)
    )
    assert given["--driver-url"] == SAID["SPARK_DRIVER_URL"]
    assert given["--podName"] == "demo-exec-3"
    assert len(given) == 7


def test_what_the_driver_did_not_say_is_missed_by_name(executor: ModuleType) -> None:
    with pytest.raises(KeyError, match="SPARK_DRIVER_URL"):
        executor.command({**{n: v for n, v in SAID.items() if n != "SPARK_DRIVER_URL"}}, Path("/spark"))
