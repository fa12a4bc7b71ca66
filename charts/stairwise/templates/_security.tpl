{{/*
Certificates, tokens and passwords: variables and mounts for the Secrets that are named, nothing for those that are
not. The argument is the root. A pod gets the files below /etc/stairwise.
*/}}

{{/* How gRPC servers and clients prove who they are; with neither TLS nor a word of consent a server won't listen. */}}
{{- define "stairwise.securityEnvironment" -}}
{{- if .Values.tls.secret }}
- {name: STAIRWISE_TLS_CERT, value: /etc/stairwise/tls/tls.crt}
- {name: STAIRWISE_TLS_KEY, value: /etc/stairwise/tls/tls.key}
- {name: STAIRWISE_TLS_CA, value: /etc/stairwise/tls/ca.crt}
{{- if .Values.tls.mutual }}
- {name: STAIRWISE_TLS_CLIENT_CA, value: /etc/stairwise/tls/ca.crt}
- {name: STAIRWISE_TLS_CLIENT_CERT, value: /etc/stairwise/tls/tls.crt}
- {name: STAIRWISE_TLS_CLIENT_KEY, value: /etc/stairwise/tls/tls.key}
{{- end }}
{{- with .Values.tls.serverName }}
- {name: STAIRWISE_TLS_SERVER_NAME, value: {{ . | quote }}}
{{- end }}
{{- else }}
- {name: STAIRWISE_INSECURE, value: "yes"}
{{- end }}
{{- with .Values.tokens.secret }}
- {name: STAIRWISE_TOKENS_FILE, value: /etc/stairwise/tokens/{{ $.Values.tokens.key }}}
{{- end }}
{{- end -}}

{{/* How Kafka is reached. */}}
{{- define "stairwise.kafkaEnvironment" -}}
{{- if not .Values.trialBroker.enabled }}
{{- if .Values.kafka.tls.secret }}
- {name: STAIRWISE_KAFKA_CA, value: /etc/stairwise/kafka/ca.crt}
{{- if .Values.kafka.tls.clientCertificate }}
- {name: STAIRWISE_KAFKA_CERT, value: /etc/stairwise/kafka/tls.crt}
- {name: STAIRWISE_KAFKA_KEY, value: /etc/stairwise/kafka/tls.key}
{{- end }}
{{- else if .Values.kafka.tls.enabled }}
- {name: STAIRWISE_KAFKA_TLS, value: "yes"}
{{- end }}
{{- with .Values.kafka.sasl.secret }}
- {name: STAIRWISE_KAFKA_MECHANISM, value: {{ $.Values.kafka.sasl.mechanism | quote }}}
- name: STAIRWISE_KAFKA_USER
  valueFrom:
    secretKeyRef: {name: {{ . | quote }}, key: username}
- name: STAIRWISE_KAFKA_PASSWORD
  valueFrom:
    secretKeyRef: {name: {{ . | quote }}, key: password}
{{- end }}
{{- end }}
{{- end -}}

{{- define "stairwise.securityMounts" -}}
{{- if .Values.tls.secret }}
- {name: tls, mountPath: /etc/stairwise/tls, readOnly: true}
{{- end }}
{{- if .Values.tokens.secret }}
- {name: tokens, mountPath: /etc/stairwise/tokens, readOnly: true}
{{- end }}
{{- if and .Values.kafka.tls.secret (not .Values.trialBroker.enabled) }}
- {name: kafka, mountPath: /etc/stairwise/kafka, readOnly: true}
{{- end }}
{{- end -}}

{{- define "stairwise.securityVolumes" -}}
{{- with .Values.tls.secret }}
- name: tls
  secret: {secretName: {{ . | quote }}, defaultMode: 0440}
{{- end }}
{{- with .Values.tokens.secret }}
- name: tokens
  secret: {secretName: {{ . | quote }}, defaultMode: 0440}
{{- end }}
{{- if and .Values.kafka.tls.secret (not .Values.trialBroker.enabled) }}
- name: kafka
  secret: {secretName: {{ .Values.kafka.tls.secret | quote }}, defaultMode: 0440}
{{- end }}
{{- end -}}

{{/* Kubernetes asks gRPC health without TLS alone; where there is TLS, the image's own command asks. */}}
{{- define "stairwise.probe" -}}
{{- if .root.Values.tls.secret -}}
exec:
  command: [python, -P, -m, stairwise.platform.healthcheck]
{{- else -}}
grpc:
  port: {{ include "stairwise.port" .service }}
{{- end -}}
{{- end -}}

{{/* What a pod may do to its node and itself. */}}
{{- define "stairwise.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "stairwise.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "stairwise.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}
