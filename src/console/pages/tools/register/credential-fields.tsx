import { useQuery } from '@tanstack/react-query'
import { apiQuery } from '../../../api/queries.ts'
import { Code } from '../../../ui/data/code.tsx'
import { RadioCards } from '../../../ui/forms/choices.tsx'
import { TextField } from '../../../ui/forms/field.tsx'
import { authKinds, text } from '../text.ts'
import type { AuthKind, ServerBody } from '../use-tools.ts'

/** A credential as a person typed it. What was typed for one kind stays while another one is chosen. */
export interface Credential {
  readonly kind: AuthKind
  readonly headerName: string
  readonly headerValue: string
  readonly clientId: string
  readonly clientSecret: string
  readonly scopes: string
  readonly issuer: string
}

export const emptyCredential: Credential = {
  kind: 'none',
  headerName: 'Authorization',
  headerValue: '',
  clientId: '',
  clientSecret: '',
  scopes: '',
  issuer: '',
}

const kinds = Object.keys(authKinds) as readonly AuthKind[]
const given = (name: string, value: string): object => (value.trim() === '' ? {} : { [name]: value.trim() })

/** Returns the credential as the gateway takes it. Undefined while something that its kind needs is missing. */
export function authOf({ kind, headerName, headerValue, clientId, clientSecret, scopes, issuer }: Credential): ServerBody['auth'] | undefined {
  if (kind === 'none') return { kind }
  if (kind === 'header') {
    const isWhole = headerName.trim() !== '' && headerValue.trim() !== ''
    return isWhole ? { kind, header_name: headerName.trim(), header_value: headerValue.trim() } : undefined
  }
  const [id, secret] = [clientId.trim(), clientSecret.trim()]
  if (kind === 'client_credentials' ? id === '' || secret === '' : id === '' && secret !== '') return undefined
  return { kind, ...given('client_id', id), ...given('client_secret', secret), ...given('scopes', scopes), ...given('issuer', issuer) }
}

interface CredentialFieldsProps {
  readonly value: Credential
  readonly onChange: (value: Credential) => void
}

/** What the server requires: a kind, and the fields of that kind. */
export function CredentialFields({ value, onChange }: CredentialFieldsProps) {
  const field = (name: Exclude<keyof Credential, 'kind'>, label: string, hint?: string, isSecret = false) => (
    <TextField
      label={label}
      hint={hint}
      value={value[name]}
      onChange={event => onChange({ ...value, [name]: event.target.value })}
      {...(isSecret ? { type: 'password', autoComplete: 'new-password' } : {})}
    />
  )
  const isOfClient = value.kind === 'client_credentials' || value.kind === 'oauth_user'
  return (
    <>
      <div className="auth-kinds">
        <RadioCards
          label={text.form.auth}
          value={value.kind}
          options={kinds.map(kind => ({ value: kind, ...authKinds[kind] }))}
          onChange={kind => onChange({ ...value, kind })}
        />
      </div>
      {value.kind === 'header' && (
        <div className="credential-pair">
          {field('headerName', text.form.headerName)}
          {field('headerValue', text.form.headerValue, text.form.headerHint, true)}
        </div>
      )}
      {isOfClient && (
        <>
          {value.kind === 'oauth_user' && <RedirectAddress />}
          <div className="credential-pair">
            {field('clientId', text.form.clientId, value.kind === 'oauth_user' ? text.form.clientIdHint : undefined)}
            {field('clientSecret', text.form.clientSecret, undefined, true)}
          </div>
          <div className="credential-pair">
            {field('scopes', text.form.scopes, text.form.scopesHint)}
            {field('issuer', text.form.issuer, text.form.issuerHint)}
          </div>
        </>
      )}
    </>
  )
}

/** The address to which an issuer sends people back, as the gateway itself names it. */
function RedirectAddress() {
  const document = useQuery(apiQuery('toolClientDocument'))
  const [address] = document.data?.redirect_uris ?? []
  return address === undefined ? null : <Code label={text.form.redirect} text={address} />
}
