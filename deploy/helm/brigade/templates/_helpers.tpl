{{- define "brigade.fullname" -}}
{{- default (ternary .Release.Name (printf "%s-%s" .Release.Name (default .Chart.Name .Values.nameOverride)) (contains (default .Chart.Name .Values.nameOverride) .Release.Name)) .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "brigade.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "brigade.labels" -}}
{{ include "brigade.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}
