{{- define "evenkeel.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "evenkeel.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains (include "evenkeel.name" .) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "evenkeel.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "evenkeel.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{- define "evenkeel.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "evenkeel.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* The one place that says which pods are the operator's. */}}
{{- define "evenkeel.selector" -}}
app.kubernetes.io/name: {{ include "evenkeel.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "evenkeel.labels" -}}
{{ include "evenkeel.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* Call with (dict "image" .Values.image "root" $): registry/repository:tag. */}}
{{- define "evenkeel.image" -}}
{{- $tag := default .root.Chart.AppVersion .image.tag -}}
{{- if .image.registry -}}
{{- printf "%s/%s:%s" .image.registry .image.repository $tag -}}
{{- else -}}
{{- printf "%s:%s" .image.repository $tag -}}
{{- end -}}
{{- end -}}

{{/* What the operator adds to every coordinator and worker pod, as JSON. */}}
{{- define "evenkeel.podDefaults" -}}
{{- $out := dict "imagePullPolicy" .Values.trainer.image.pullPolicy -}}
{{- with .Values.imagePullSecrets }}{{- $_ := set $out "imagePullSecrets" . }}{{- end -}}
{{- with .Values.trainer.podDefaults.nodeSelector }}{{- $_ := set $out "nodeSelector" . }}{{- end -}}
{{- with .Values.trainer.podDefaults.tolerations }}{{- $_ := set $out "tolerations" . }}{{- end -}}
{{- with .Values.trainer.podDefaults.priorityClassName }}{{- $_ := set $out "priorityClassName" . }}{{- end -}}
{{- toJson $out -}}
{{- end -}}

{{/* Rules of the operator, for a ClusterRole or a Role: the verbs it uses and no other (docs/security.md;
     tests/rights compares them with an audit log). */}}
{{- define "evenkeel.rules" -}}
- apiGroups: [training.evenkeel.dev]
  resources: [trainingjobs]
  verbs: [get, list, watch, delete]    # delete: ttlSecondsAfterFinished
- apiGroups: [training.evenkeel.dev]
  resources: [trainingjobs/status]
  verbs: [patch]
- apiGroups: [training.evenkeel.dev]
  resources: [trainingjobs/finalizers]
  verbs: [update]    # no request asks for it: some clusters want it of whoever sets blockOwnerDeletion
- apiGroups: [""]
  resources: [pods, services, configmaps]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end -}}
