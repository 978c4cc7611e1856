{{- define "tailrace.name" -}}
{{- printf "%s" .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "tailrace.labels" -}}
app.kubernetes.io/name: tailrace
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "tailrace.selector" -}}
app.kubernetes.io/name: tailrace
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- define "tailrace.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{/* The hosts by which others call a part: of a StatefulSet's one pod, whose name stays. */}}
{{- define "tailrace.host" -}}
{{ include "tailrace.name" .root }}-{{ .part }}-0.{{ include "tailrace.name" .root }}-{{ .part }}
{{- end -}}

{{- define "tailrace.certificate" -}}
{{- $named := index .root.Values.certificates.secrets .part -}}
{{- if .root.Values.certificates.issuer -}}
{{ include "tailrace.name" .root }}-{{ .part }}-tls
{{- else -}}
{{ required (printf "certificates.secrets.%s: name a Secret with tls.crt, tls.key and ca.crt, or give certificates.issuer" .part) $named }}
{{- end -}}
{{- end -}}

{{- define "tailrace.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "tailrace.containerSecurity" -}}
securityContext:
  readOnlyRootFilesystem: true
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
{{- end -}}

{{/* Volumes that every part has: its files, its certificate, and what it may write to. */}}
{{- define "tailrace.volumes" -}}
- name: config
  configMap: {name: {{ include "tailrace.name" .root }}-{{ .config }}}
{{- if eq .part "node" }}
- name: tailers
  configMap: {name: {{ include "tailrace.name" .root }}-tailers}
{{- end }}
- name: tls
  secret: {secretName: {{ include "tailrace.certificate" (dict "root" .root "part" .part) }}, defaultMode: 0440}
- name: tmp
  emptyDir: {}
- name: run
  emptyDir: {medium: Memory, sizeLimit: 16Mi}
{{- end -}}

{{- define "tailrace.mounts" -}}
- {name: config, mountPath: /etc/tailrace, readOnly: true}
- {name: tls, mountPath: /etc/tailrace-tls, readOnly: true}
- {name: tmp, mountPath: /tmp}
- {name: run, mountPath: /run/tailrace}
{{- end -}}

{{/* The environment of a part: who it is, what all parts have, and what is its own. Secrets are references. */}}
{{- define "tailrace.environment" -}}
env:
  - {name: TAILRACE_TLS, value: /etc/tailrace-tls}
  - {name: TAILRACE_RUN_DIR, value: /run/tailrace/own}  # the volume itself is root's
  {{- if and (eq .part "node") .root.Values.database.url }}
  - name: DATABASE_PASSWORD
    valueFrom:
      secretKeyRef:
        name: {{ required "database.secret.name: name the Secret that has the password of database.url" .root.Values.database.secret.name }}
        key: {{ .root.Values.database.secret.key }}
  {{- end }}
  {{- range $name, $text := merge (dict) (.own.env | default dict) .root.Values.env }}
  - {name: {{ $name | quote }}, value: {{ $text | quote }}}
  {{- end }}
{{- with .own.secrets }}
envFrom:
  {{- range . }}
  - secretRef: {name: {{ . }}}
  {{- end }}
{{- end }}
{{- end -}}

{{/* What all parts of a platform need alike: the leases, above all. */}}
{{- define "tailrace.shared" -}}
{{- pick .Values.files "access.yaml" "leases.yaml" | toJson -}}
{{- end -}}

{{/* Keys that the chart sets itself, by their value: given for a file they would be lost. */}}
{{- define "tailrace.unset" -}}
{{- range $key, $instead := .keys }}
{{- if hasKey ($.given | default dict) $key }}
{{- fail (printf "%s.%s: the chart sets it%s" $.value $key $instead) }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Waits until the pod's own name is known, at which its part listens: that takes some seconds after it got its address. */}}
{{- define "tailrace.named" -}}
initContainers:
  - name: named
    image: {{ include "tailrace.image" .root }}
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    command: [sh, -c, "until getent hosts {{ include "tailrace.host" . }}; do sleep 1; done"]
    {{- include "tailrace.containerSecurity" .root | nindent 4 }}
    resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {memory: 64Mi}}
{{- end -}}

{{/* A part is ready, started and alive by what it says itself. A pod that drains is told first, so that it is called no more. */}}
{{- define "tailrace.probes" -}}
startupProbe:
  exec: {command: [tailrace, health, {{ .address | quote }}]}
  periodSeconds: 3
  timeoutSeconds: 5
  failureThreshold: {{ div (add .startup 2) 3 }}
readinessProbe:
  exec: {command: [tailrace, health, {{ .address | quote }}]}
  periodSeconds: 10
  timeoutSeconds: 5
lifecycle:
  preStop: {exec: {command: [sleep, "3"]}}
{{- end -}}
