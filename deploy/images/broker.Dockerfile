# A Kafka of one process, for trials (the chart's trialBroker):
#
#   docker build -f deploy/images/broker.Dockerfile -t stairwise/broker:0.1.0 .      (after deploy/images/base.Dockerfile)
ARG TAG=0.1.0

FROM maven:3.9-eclipse-temurin-17 AS jars
COPY deploy/jvm/broker/pom.xml /build/pom.xml
RUN mvn --batch-mode --quiet -f /build/pom.xml dependency:copy-dependencies -DoutputDirectory=/jars

FROM stairwise/runtime:${TAG}
USER 0:0
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/* \
    && install --directory --owner 10001 --group 10001 /var/lib/broker
COPY --from=jars /jars /opt/jvm/broker
COPY deploy/local/log4j2.properties /opt/jvm/log4j2.properties
COPY --chmod=755 deploy/images/start-broker /usr/local/bin/
USER 10001:10001
EXPOSE 9092
HEALTHCHECK NONE
CMD ["start-broker"]
