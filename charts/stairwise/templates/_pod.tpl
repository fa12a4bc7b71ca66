{{/*
The pod of a service: the same for all, but for what its dict says.

  root, service   which one
  environment     more variables, as a list
  volumeMounts    more mounts, beside /tmp and the state directory
  volumes         more volumes
  ports           more ports
  startup         how long it may take to serve, in seconds
  grace           how long it may take to end, in seconds
  account         its ServiceAccount, with a token of it, where it must speak to Kubernetes

The root file system is read-only; /tmp and the state directory are what can be written, as no user in particular.
*/}}
{{- define "stairwise.pod" -}}
{{- $own := index .root.Values .service -}}
{{- $port := include "stairwise.port" .service | int -}}
{{- $metrics := include "stairwise.metricsPort" .service | int -}}
{{- /* A process that answers by a command of its own takes longer to ask. */ -}}
{{- $patience := ternary 10 3 (not (empty (include "stairwise.tlsSecret" .root))) -}}
metadata:
  annotations:
    checksum/configuration: {{ include (print .root.Template.BasePath "/configmap.yaml") .root | sha256sum }}
    {{- if .root.Values.metrics.annotations }}
    prometheus.io/scrape: "true"
    prometheus.io/port: {{ $metrics | quote }}
    prometheus.io/path: /metrics
    {{- end }}
    {{- with $own.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  labels:
    {{- include "stairwise.serviceLabels" . | nindent 4 }}
spec:
  serviceAccountName: {{ .account | default (include "stairwise.serviceAccount" .root) }}
  automountServiceAccountToken: {{ not (empty .account) }}
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .grace }}
  securityContext:
    {{- include "stairwise.podSecurity" .root | nindent 4 }}
  {{- include "stairwise.pullSecrets" .root | nindent 2 }}
  {{- with $own.priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
  containers:
    - name: {{ .service }}
      image: {{ include "stairwise.image" . | quote }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      workingDir: /var/lib/stairwise
      securityContext:
        {{- include "stairwise.containerSecurity" .root | nindent 8 }}
      envFrom:
        - configMapRef:
            name: {{ include "stairwise.fullname" .root }}
      env:
        - name: STAIRWISE_LISTEN
          value: 0.0.0.0:{{ $port }}
        - name: STAIRWISE_METRICS
          value: 0.0.0.0:{{ $metrics }}
        {{- include "stairwise.securityEnvironment" .root | nindent 8 }}
        {{- include "stairwise.kafkaEnvironment" (dict "root" .root "service" .service) | nindent 8 }}
        {{- with .environment }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        - name: grpc
          containerPort: {{ $port }}
        - name: metrics
          containerPort: {{ $metrics }}
        {{- with .ports }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      startupProbe:
        {{- include "stairwise.probe" . | nindent 8 }}
        periodSeconds: 2
        timeoutSeconds: {{ $patience }}
        failureThreshold: {{ div .startup 2 }}
      readinessProbe:
        {{- include "stairwise.probe" . | nindent 8 }}
        periodSeconds: 5
        timeoutSeconds: {{ $patience }}
      livenessProbe:
        {{- include "stairwise.probe" . | nindent 8 }}
        periodSeconds: 10
        timeoutSeconds: {{ $patience }}
        failureThreshold: 6
      resources:
        {{- toYaml $own.resources | nindent 8 }}
      volumeMounts:
        - name: tmp
          mountPath: /tmp
        - name: state
          mountPath: /var/lib/stairwise
        {{- include "stairwise.securityMounts" .root | nindent 8 }}
        {{- with .volumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: tmp
      emptyDir: {sizeLimit: {{ .root.Values.volumes.tmp }}}
    - name: state
      emptyDir: {sizeLimit: {{ .root.Values.volumes.state }}}
    {{- include "stairwise.securityVolumes" .root | nindent 4 }}
    {{- with .volumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- if hasKey $own "replicas" }}
  topologySpreadConstraints:
    {{- range $where := .root.Values.spreadOver }}
    - maxSkew: 1
      topologyKey: {{ $where }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "stairwise.selector" $ | nindent 10 }}
    {{- end }}
  {{- end }}
  {{- with $own.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $own.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $own.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
