import { githubIssuer, gitlabIssuer } from './create/platforms.ts'

interface Rule {
  readonly issuer: string
  readonly audience: string
  readonly subject: string
}

const exchange = (indent: string, token: string): string =>
  [
    `token=$(curl -sSf "$GATEWAY/oauth/token" \\`,
    '  --data-urlencode grant_type=urn:ietf:params:oauth:grant-type:token-exchange \\',
    '  --data-urlencode subject_token_type=urn:ietf:params:oauth:token-type:jwt \\',
    `  --data-urlencode "subject_token=${token}" | jq -r .access_token)`,
  ]
    .map(line => indent + line)
    .join('\n')

const github = ({ audience }: Rule, gateway: string): string => `permissions:
  id-token: write
  contents: read
jobs:
  work:
    runs-on: ubuntu-latest
    env:
      GATEWAY: ${gateway}
      AUDIENCE: ${audience}
    steps:
      - name: Agent token
        run: |
          id_token=$(curl -sSf -G "$ACTIONS_ID_TOKEN_REQUEST_URL" --data-urlencode "audience=$AUDIENCE" \\
            -H "Authorization: Bearer $ACTIONS_ID_TOKEN_REQUEST_TOKEN" | jq -r .value)
${exchange('          ', '$id_token')}
          echo "::add-mask::$token"
          echo "OPENAI_API_KEY=$token" >> "$GITHUB_ENV"
          echo "OPENAI_BASE_URL=$GATEWAY/v1" >> "$GITHUB_ENV"`

const gitlab = ({ audience }: Rule, gateway: string): string => `work:
  id_tokens:
    BRIGADE_ID_TOKEN:
      aud: ${audience}
  variables:
    GATEWAY: ${gateway}
  script:
    - |
${exchange('      ', '$BRIGADE_ID_TOKEN')}
      export OPENAI_API_KEY="$token" OPENAI_BASE_URL="$GATEWAY/v1"`

function kubernetes({ audience, subject }: Rule): string {
  const [namespace = 'default', account = 'default'] = subject.split(':').slice(2)
  return `apiVersion: v1
kind: Pod
metadata:
  name: worker
  namespace: ${namespace}
spec:
  serviceAccountName: ${account}
  containers:
    - name: worker
      image: registry.example.com/worker
      volumeMounts:
        - name: gateway-token
          mountPath: /var/run/secrets/gateway
          readOnly: true
  volumes:
    - name: gateway-token
      projected:
        sources:
          - serviceAccountToken:
              path: token
              audience: ${audience}
              expirationSeconds: 3600`
}

/** Returns what a person pastes at the platform of a rule, so that its workloads get tokens of an agent. */
export function snippetOf(rule: Rule, gateway: string): string {
  if (rule.issuer === githubIssuer) return github(rule, gateway)
  if (rule.issuer === gitlabIssuer || rule.subject.startsWith('project_path:')) return gitlab(rule, gateway)
  if (rule.subject.startsWith('system:serviceaccount:')) return kubernetes(rule)
  return `GATEWAY=${gateway}\n# SUBJECT_TOKEN: a token of ${rule.issuer} for ${rule.audience}\n${exchange('', '$SUBJECT_TOKEN')}`
}
