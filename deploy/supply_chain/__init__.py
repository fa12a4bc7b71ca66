"""What the project is made of, and whether it is what the lock and the poms say: ``make audit``.

    lock.py        requirements.lock against the environment: versions, hashes, nothing beside it
    licences.py    the licence of every package, against those that may go into images
    jvm.py         the poms against each other, against pyspark, and against the jars
    sbom.py        for each image what is in it, as CycloneDX

exceptions.toml holds what was looked at and left, with the reason; one that no longer applies is a finding too.
"""
