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
  projected:
    sources:
      - configMap: {name: {{ include "tailrace.name" .root }}-{{ .config }}}
      {{- if and (eq .part "node") .root.Values.tailers }}
      - configMap:
          name: {{ include "tailrace.name" .root }}-tailers
          items:
            {{- range $name, $text := .root.Values.tailers }}
            - {key: {{ $name }}.yaml, path: tailers/{{ $name }}.yaml}
            {{- end }}
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

{{/* A part is ready, started and alive by what it says itself. A pod that drains is told first, so that it is called no more. */}}
{{- define "tailrace.probes" -}}
startupProbe:
  exec: {command: [tailrace, health, {{ .address | quote }}]}
  periodSeconds: 3
  timeoutSeconds: 5
  failureThreshold: 60
readinessProbe:
  exec: {command: [tailrace, health, {{ .address | quote }}]}
  periodSeconds: 10
  timeoutSeconds: 5
lifecycle:
  preStop: {exec: {command: [sleep, "3"]}}
{{- end -}}
