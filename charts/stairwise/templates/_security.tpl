{{/*
Certificates, tokens and passwords: variables and mounts for the Secrets that are named, or that the chart makes where none
is. Only `insecure` leaves them out. The argument is the root. A pod gets the files below /etc/stairwise.
*/}}

{{- define "stairwise.makesTls" -}}
{{- if not (or .Values.insecure .Values.tls.secret) -}}yes{{- end -}}
{{- end -}}

{{- define "stairwise.makesTokens" -}}
{{- if not (or .Values.insecure .Values.tokens.secret) -}}yes{{- end -}}
{{- end -}}

{{/* The Secret of the gRPC servers' certificate; empty: they speak in the clear. */}}
{{- define "stairwise.tlsSecret" -}}
{{- if include "stairwise.makesTls" . -}}{{ include "stairwise.fullname" . }}-tls{{- else -}}{{ .Values.tls.secret }}{{- end -}}
{{- end -}}

{{/* The Secret of the file of tokens; empty: nobody is asked. */}}
{{- define "stairwise.tokensSecret" -}}
{{- if include "stairwise.makesTokens" . -}}{{ include "stairwise.fullname" . }}-tokens{{- else -}}{{ .Values.tokens.secret }}{{- end -}}
{{- end -}}

{{- define "stairwise.adminSecret" -}}
{{ include "stairwise.fullname" . }}-admin-token
{{- end -}}

{{/* The key of the token that lookups workers show each other; empty: there is none. */}}
{{- define "stairwise.serviceKey" -}}
{{- if include "stairwise.makesTokens" . -}}service{{- else -}}{{ .Values.tokens.serviceKey }}{{- end -}}
{{- end -}}

{{/* How gRPC servers and clients prove who they are; with neither TLS nor a word of consent a server won't listen. */}}
{{- define "stairwise.securityEnvironment" -}}
{{- if include "stairwise.tlsSecret" . }}
- {name: STAIRWISE_TLS_CERT, value: /etc/stairwise/tls/tls.crt}
- {name: STAIRWISE_TLS_KEY, value: /etc/stairwise/tls/tls.key}
- {name: STAIRWISE_TLS_CA, value: /etc/stairwise/tls/ca.crt}
{{- if .Values.tls.mutual }}
- {name: STAIRWISE_TLS_CLIENT_CA, value: /etc/stairwise/tls/ca.crt}
- {name: STAIRWISE_TLS_CLIENT_CERT, value: /etc/stairwise/tls/tls.crt}
- {name: STAIRWISE_TLS_CLIENT_KEY, value: /etc/stairwise/tls/tls.key}
{{- end }}
{{- with ternary (include "stairwise.fullname" .) .Values.tls.serverName (not (empty (include "stairwise.makesTls" .))) }}
- {name: STAIRWISE_TLS_SERVER_NAME, value: {{ . | quote }}}
{{- end }}
{{- else }}
- {name: STAIRWISE_INSECURE, value: "yes"}
{{- end }}
{{- if include "stairwise.tokensSecret" . }}
- {name: STAIRWISE_TOKENS_FILE, value: /etc/stairwise/tokens/{{ .Values.tokens.key }}}
{{- end }}
{{- end -}}

{{/* How Kafka is reached, and as whom: dict "root" . "service" "ingest". A service may have a user of its own. */}}
{{- define "stairwise.kafkaEnvironment" -}}
{{- $service := .service -}}
{{- with .root }}
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
{{- $mechanism := .Values.kafka.sasl.mechanism }}
{{- with get .Values.kafka.sasl.users $service | default .Values.kafka.sasl.secret }}
- {name: STAIRWISE_KAFKA_MECHANISM, value: {{ $mechanism | quote }}}
- name: STAIRWISE_KAFKA_USER
  valueFrom:
    secretKeyRef: {name: {{ . | quote }}, key: username}
- name: STAIRWISE_KAFKA_PASSWORD
  valueFrom:
    secretKeyRef: {name: {{ . | quote }}, key: password}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "stairwise.securityMounts" -}}
{{- if include "stairwise.tlsSecret" . }}
- {name: tls, mountPath: /etc/stairwise/tls, readOnly: true}
{{- end }}
{{- if include "stairwise.tokensSecret" . }}
- {name: tokens, mountPath: /etc/stairwise/tokens, readOnly: true}
{{- end }}
{{- if and .Values.kafka.tls.secret (not .Values.trialBroker.enabled) }}
- {name: kafka, mountPath: /etc/stairwise/kafka, readOnly: true}
{{- end }}
{{- end -}}

{{- define "stairwise.securityVolumes" -}}
{{- with include "stairwise.tlsSecret" . }}
- name: tls
  secret: {secretName: {{ . | quote }}, defaultMode: 0440}
{{- end }}
{{- if include "stairwise.tokensSecret" . }}
- name: tokens
  secret:
    secretName: {{ include "stairwise.tokensSecret" . | quote }}
    defaultMode: 0440
    items:
      - {key: {{ .Values.tokens.key }}, path: {{ .Values.tokens.key }}}
      {{- with include "stairwise.serviceKey" . }}
      - {key: {{ . }}, path: {{ . }}}
      {{- end }}
{{- end }}
{{- if and .Values.kafka.tls.secret (not .Values.trialBroker.enabled) }}
- name: kafka
  secret: {secretName: {{ .Values.kafka.tls.secret | quote }}, defaultMode: 0440}
{{- end }}
{{- end -}}

{{/* Kubernetes asks gRPC health without TLS alone; where there is TLS, the image's own command asks. */}}
{{- define "stairwise.probe" -}}
{{- if include "stairwise.tlsSecret" .root -}}
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
