{{- define "plimsoll.fullname" -}}
{{- if .Values.fullnameOverride -}}{{ .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains .Chart.Name .Release.Name -}}{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else -}}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "plimsoll.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}{{ .Values.serviceAccount.name | default (include "plimsoll.fullname" .) }}
{{- else -}}{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end -}}

{{- define "plimsoll.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "plimsoll.labels" -}}
{{ include "plimsoll.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "plimsoll.image" -}}
{{- if .Values.image.digest -}}{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* Names of the Lease and of the status ConfigMap, as the flags have them: the rules are for these names alone. */}}
{{- define "plimsoll.lease" -}}{{ index .Values.flags "leader-elect-resource-name" | default "cluster-autoscaler" }}{{- end -}}
{{- define "plimsoll.status" -}}{{ index .Values.flags "status-config-map-name" | default "cluster-autoscaler-status" }}{{- end -}}

{{/* The Secret that holds the cloud's key; empty if there is none. */}}
{{- define "plimsoll.secret" -}}
{{- if and (eq .Values.cloudProvider "alicloud") (eq .Values.alicloud.auth "access-key") -}}
{{- .Values.alicloud.existingSecret | default (printf "%s-cloud" (include "plimsoll.fullname" .)) -}}
{{- else if eq .Values.cloudProvider "utho" -}}
{{- .Values.utho.existingSecret | default (printf "%s-cloud" (include "plimsoll.fullname" .)) -}}
{{- end -}}
{{- end -}}

{{/* What the cloud's provider is granted, from the cloud's values. */}}
{{- define "plimsoll.cloudGrants" -}}
{{- if eq .Values.cloudProvider "alicloud" -}}
{{- $cloud := .Values.alicloud -}}
plugins:
  alicloud:
    hosts: ["https://*.aliyuncs.com"]
    credentials:
      api:
        kind: alicloud-v3
        hosts: ["*.aliyuncs.com"]
        {{- if eq $cloud.auth "access-key" }}
        access-key: {folder: /var/run/secrets/cloud}
        {{- else if eq $cloud.auth "rrsa" }}
        rrsa:
          role-arn: {{ required "alicloud.roleArn is needed for auth: rrsa" $cloud.roleArn | quote }}
          oidc-provider-arn: {{ required "alicloud.oidcProviderArn is needed for auth: rrsa" $cloud.oidcProviderArn | quote }}
          oidc-token-file: /var/run/secrets/tokens/oidc-token
          {{- with $cloud.sessionName }}
          session-name: {{ . | quote }}
          {{- end }}
        {{- else if has $cloud.auth (list "ram-role" "assume-role") }}
        ram-role: {{ if $cloud.ramRole }}{name: {{ $cloud.ramRole | quote }}}{{ else }}{}{{ end }}
        {{- if eq $cloud.auth "assume-role" }}
        assume-role:
          role-arn: {{ required "alicloud.roleArn is needed for auth: assume-role" $cloud.roleArn | quote }}
          {{- with $cloud.externalId }}
          external-id: {{ . | quote }}
          {{- end }}
        {{- end }}
        {{- else }}
        {{- fail (printf "alicloud.auth is %q; expected access-key, rrsa, ram-role or assume-role" $cloud.auth) }}
        {{- end }}
{{- else if eq .Values.cloudProvider "utho" -}}
plugins:
  utho:
    hosts: ["https://api.utho.com"]
    credentials:
      api: {kind: bearer, file: /var/run/secrets/cloud/token, hosts: [api.utho.com]}
{{- end -}}
{{- end -}}

{{- define "plimsoll.pluginConfig" -}}
{{- $cloud := include "plimsoll.cloudGrants" . | fromYaml -}}
{{- mergeOverwrite $cloud .Values.pluginConfig | toYaml -}}
{{- end -}}
