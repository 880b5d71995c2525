/**
 * Credentials that an organisation gives for its own account at a cloud. Only values are taken from them. A field that names an address, a file or a command
 * is refused, because the gateway would follow it with its own network and its own rights. Decision 0867 gives the reasons.
 */
import { createHash, createPrivateKey } from 'node:crypto'
import { Secret } from '../../platform/security/secret.ts'
import { isObject } from '../../platform/values/json.ts'
import type { IdentityKind } from '../providers/provider.ts'

/** Credentials of an organisation, read and checked. */
export type GivenCredentials = {
  /** Equal credentials have the same id. It contains no part of them. */
  readonly id: string
  /** What identifies them to a person: a client id, an address, the begin of an access key. It is not secret. */
  readonly name: string
} & (
  | { readonly kind: 'aws'; readonly accessKeyId: string; readonly secretAccessKey: Secret; readonly sessionToken: Secret | null }
  | { readonly kind: 'google'; readonly clientEmail: string; readonly privateKey: Secret; readonly privateKeyId: string | null }
  | { readonly kind: 'entra'; readonly tenantId: string; readonly clientId: string; readonly clientSecret: Secret }
)

/** Why credentials cannot be used. The message is for the person who gave them. */
export class GivenCredentialsError extends Error {
  override readonly name = 'GivenCredentialsError'
}

interface Field {
  readonly shape: RegExp
  readonly says: string
  readonly isOptional?: true
}

const printable: Field = { shape: /^[\x21-\x7e]{1,4096}$/, says: 'printable characters without spaces' }
const pem: Field = {
  shape: /^-----BEGIN (?:RSA )?PRIVATE KEY-----[A-Za-z0-9+/=\s]{1,4000}-----END (?:RSA )?PRIVATE KEY-----\s*$/,
  says: 'a private key in PEM, at most 4,000 characters',
}

/** The fields that are read, by kind. */
const fields: Readonly<Record<GivenCredentials['kind'], Readonly<Record<string, Field>>>> = {
  aws: {
    access_key_id: { shape: /^[A-Z0-9]{16,128}$/, says: 'an access key id such as AKIA…' },
    secret_access_key: { ...printable, shape: /^[\x21-\x7e]{16,256}$/ },
    session_token: { ...printable, isOptional: true },
  },
  google: {
    type: { shape: /^service_account$/, says: 'service_account. Other kinds of files name addresses or files, which Brigade does not follow' },
    client_email: { shape: /^[A-Za-z0-9._%+-]{1,128}@[A-Za-z0-9.-]{1,128}$/, says: 'an e-mail address' },
    private_key: pem,
    private_key_id: { shape: /^[A-Za-z0-9_-]{1,128}$/, says: 'an id', isOptional: true },
  },
  entra: {
    tenant_id: { shape: /^[A-Za-z0-9][A-Za-z0-9.-]{0,252}$/, says: 'the id or domain of a tenant' },
    client_id: { shape: /^[A-Za-z0-9-]{1,64}$/, says: 'the id of an application' },
    client_secret: { ...printable, shape: /^[\x21-\x7e]{1,512}$/ },
  },
}

/** Fields of a service account's file that have one right value, or none that is read. Another value would lead the gateway elsewhere. */
const fixedFields: Readonly<Record<string, RegExp>> = {
  token_uri: /^https:\/\/(?:oauth2\.googleapis\.com\/token|accounts\.google\.com\/o\/oauth2\/token)$/,
  auth_uri: /^https:\/\/accounts\.google\.com\/o\/oauth2\/auth$/,
  auth_provider_x509_cert_url: /^https:\/\/www\.googleapis\.com\/oauth2\/v1\/certs$/,
  client_x509_cert_url: /^https:\/\/www\.googleapis\.com\/robot\/v1\/metadata\/x509\/[^/?#]{1,300}$/,
  universe_domain: /^googleapis\.com$/,
  project_id: /^[A-Za-z0-9.:-]{1,100}$/,
  client_id: /^\d{1,40}$/,
}

/** Returns checked credentials. Throws GivenCredentialsError for a missing, wrong or unknown field. */
export function readCredentials(given: unknown, kind: IdentityKind['kind']): GivenCredentials {
  if (!isObject(given)) throw new GivenCredentialsError('credentials must be an object.')
  const known = fields[kind]
  const values: Record<string, string> = {}
  for (const [name, value] of Object.entries(given)) {
    const field = known[name]
    if (field === undefined) refuseUnlessFixed(name, value, kind)
    else if (typeof value !== 'string' || !field.shape.test(value)) throw new GivenCredentialsError(`credentials.${name} must be ${field.says}.`)
    else values[name] = value
  }
  for (const [name, { isOptional }] of Object.entries(known))
    if (values[name] === undefined && isOptional !== true) throw new GivenCredentialsError(`credentials.${name} is missing. Expected: ${namesOf(kind)}.`)
  const made = credentialsOf(kind, values)
  if (made.kind === 'google') checkPrivateKey(made.privateKey)
  return made
}

/** Returns the fields that are kept, as one text. `readCredentials` reads its JSON again. */
export function keptCredentials(credentials: GivenCredentials): string {
  switch (credentials.kind) {
    case 'aws': {
      const { accessKeyId, secretAccessKey, sessionToken } = credentials
      const session = sessionToken === null ? {} : { session_token: sessionToken.reveal() }
      return JSON.stringify({ access_key_id: accessKeyId, secret_access_key: secretAccessKey.reveal(), ...session })
    }
    case 'google': {
      const { clientEmail, privateKey, privateKeyId } = credentials
      const keyId = privateKeyId === null ? {} : { private_key_id: privateKeyId }
      return JSON.stringify({ type: 'service_account', client_email: clientEmail, private_key: privateKey.reveal(), ...keyId })
    }
    case 'entra': {
      const { tenantId, clientId, clientSecret } = credentials
      return JSON.stringify({ tenant_id: tenantId, client_id: clientId, client_secret: clientSecret.reveal() })
    }
  }
}

const namesOf = (kind: GivenCredentials['kind']): string =>
  Object.entries(fields[kind])
    .map(([name, { isOptional }]) => (isOptional === true ? `${name} (optional)` : name))
    .join(', ')

function refuseUnlessFixed(name: string, value: unknown, kind: GivenCredentials['kind']): void {
  const shape = kind === 'google' ? fixedFields[name] : undefined
  if (shape === undefined)
    throw new GivenCredentialsError(`credentials has a field that is not read here: ${name.slice(0, 60)}. Expected: ${namesOf(kind)}. Nothing was saved.`)
  if (typeof value !== 'string' || !shape.test(value))
    throw new GivenCredentialsError(
      `credentials.${name} has another value than Google gives it. Brigade follows no address of a file, so it does not save this one.`,
    )
}

function credentialsOf(kind: GivenCredentials['kind'], values: Readonly<Record<string, string>>): GivenCredentials {
  const id = createHash('sha256')
    .update(`${kind}\n${JSON.stringify(Object.entries(values).sort())}`)
    .digest('base64url')
  const text = (name: string): string => values[name] ?? ''
  switch (kind) {
    case 'aws': {
      const session = values['session_token']
      const secrets = { secretAccessKey: new Secret(text('secret_access_key')), sessionToken: session === undefined ? null : new Secret(session) }
      return { id, kind, name: `${text('access_key_id').slice(0, 8)}…`, accessKeyId: text('access_key_id'), ...secrets }
    }
    case 'google': {
      const email = text('client_email')
      return { id, kind, name: email, clientEmail: email, privateKey: new Secret(text('private_key')), privateKeyId: values['private_key_id'] ?? null }
    }
    case 'entra': {
      const clientSecret = new Secret(text('client_secret'))
      return { id, kind, name: text('client_id'), tenantId: text('tenant_id'), clientId: text('client_id'), clientSecret }
    }
  }
}

/** The sizes of keys that are taken, in bits. Google makes keys of 2,048. A signature with a much longer one takes a thread for a second. */
const keyLeastBits = 2048
const keyMostBits = 4096

function checkPrivateKey(key: Secret): void {
  try {
    const { asymmetricKeyType, asymmetricKeyDetails } = createPrivateKey(key.reveal())
    const bits = asymmetricKeyDetails?.modulusLength ?? 0
    if (asymmetricKeyType === 'rsa' && bits >= keyLeastBits && bits <= keyMostBits) return
  } catch {
    // The error of the library may quote the key, so only ours is shown.
  }
  throw new GivenCredentialsError(`credentials.private_key is not an RSA private key of ${keyLeastBits} to ${keyMostBits} bits.`)
}
