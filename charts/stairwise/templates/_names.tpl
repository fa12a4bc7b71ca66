{{/* What things are called. The argument is the root, or a dict of the root and the service. */}}

{{- define "stairwise.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* dict "root" . "service" "ingest" */}}
{{- define "stairwise.name" -}}
{{ include "stairwise.fullname" .root }}-{{ .service }}
{{- end -}}

{{- define "stairwise.port" -}}
{{- get (dict "windows" "7070" "results" "7071" "lookups" "7072" "ingest" "7073" "operators" "7074") . -}}
{{- end -}}

{{/* Where Prometheus scrapes a service: a hundred above its gRPC. */}}
{{- define "stairwise.metricsPort" -}}
{{- add 100 (include "stairwise.port" . | int) -}}
{{- end -}}

{{- define "stairwise.address" -}}
{{ include "stairwise.name" . }}:{{ include "stairwise.port" .service }}
{{- end -}}

{{/* The Kafka of this release: the trial broker if there is one, else what kafka.brokers says. */}}
{{- define "stairwise.brokers" -}}
{{- if .Values.trialBroker.enabled -}}
{{ include "stairwise.name" (dict "root" . "service" "broker") }}:9092
{{- else -}}
{{ .Values.kafka.brokers }}
{{- end -}}
{{- end -}}

{{/* dict "root" . "service" "ingest" */}}
{{- define "stairwise.image" -}}
{{ printf "%s/%s:%s" .root.Values.image.repository .service (.root.Values.image.tag | default .root.Chart.AppVersion) }}
{{- end -}}

{{- define "stairwise.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "stairwise.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end -}}

{{/* Does operators start executors as pods? Then its account may make them, and no other's may. */}}
{{- define "stairwise.hasExecutors" -}}
{{- if eq .Values.operators.spark.mode "kubernetes" -}}yes{{- end -}}
{{- end -}}

{{/* What finds the pods of one service: never changes over the life of a release. */}}
{{- define "stairwise.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .service }}
{{- end -}}

{{/* The labels of everything that belongs to the release. */}}
{{- define "stairwise.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "stairwise.serviceLabels" -}}
{{ include "stairwise.labels" .root }}
app.kubernetes.io/component: {{ .service }}
{{- end -}}
