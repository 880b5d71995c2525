/** The operator's file with OpenID Connect issuers (SIGN_IN_FILE). Decisions 0885 and 0886 give the reasons for its rules. */
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { type Config, ConfigError } from '../../../platform/config.ts'
import { Secret } from '../../../platform/security/secret.ts'
import { int4Max } from '../../../platform/values/row-id.ts'
import { isPublicMailDomain } from '../../orgs/members/mail-domain.ts'
import { builtInIcons, iconOf } from './issuer-icon.ts'

const fileMaxBytes = 1024 * 1024
const issuersMax = 50
const domainsMax = 200
const skewMaxSeconds = 300
const issuesShownMax = 5
/** Names that the addresses below /auth use for something else. */
const takenNames = new Set(['google', 'github', 'link', 'logout', 'callback'])
const domainShape = /^(?=.{3,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/
const claimName = z.string().min(1).max(200)

const issuerEntry = z.strictObject({
  id: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,31}$/, 'expected 1 to 32 of a-z, 0-9 and -, beginning with a letter')
    .refine(id => !takenNames.has(id), 'this name is taken'),
  name: z.string().trim().min(1).max(60),
  issuer: z.string().max(2048).refine(isIssuerUrl, 'expected an https URL without query, fragment and user name; http only for this computer'),
  client_id: z.string().min(1).max(500),
  client_secret_env: z.string().regex(/^[A-Z][A-Z0-9_]{0,99}$/, 'expected the name of an environment variable'),
  icon: z
    .string()
    .transform(text => iconOf(text) ?? '')
    .refine(icon => icon !== '', `expected one of ${Object.keys(builtInIcons).join(', ')}, or a data: URL with a PNG or an SVG without scripts, in base64`)
    .default(builtInIcons['key'] ?? ''),
  scopes: z
    .array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/, 'expected one scope'))
    .max(20)
    .default(['openid', 'email', 'profile']),
  claims: z
    .strictObject({ email: claimName.default('email'), name: claimName.default('name'), groups: claimName.nullable().default(null) })
    .default({ email: 'email', name: 'name', groups: null }),
  email_verified: z.enum(['required', 'assumed']).default('required'),
  addresses: z.enum(['domains', 'any']).default('domains'),
  domains: z
    .record(z.string(), z.strictObject({ org: z.int().min(1).max(int4Max).optional() }))
    .refine(domains => Object.keys(domains).length <= domainsMax, `expected at most ${domainsMax} domains`)
    .refine(domains => Object.keys(domains).every(name => domainShape.test(name)), 'expected mail domains in lower case, such as example.com')
    .default({}),
  clock_skew_seconds: z.int().min(0).max(skewMaxSeconds).default(60),
})
const file = z.strictObject({ issuers: z.array(issuerEntry).max(issuersMax) })

type IssuerEntry = z.output<typeof issuerEntry>

/** An issuer of the operator's file. */
export interface IssuerSettings extends IssuerEntry {
  readonly secret: Secret
}

/** Returns the issuers of the operator's file. Returns none without a file. Throws ConfigError that names the place and what is expected there. */
export function readIssuers({ SIGN_IN_FILE: path, namedSecret }: Pick<Config, 'SIGN_IN_FILE' | 'namedSecret'>): readonly IssuerSettings[] {
  if (path === null) return []
  const wrong = (what: string, cause?: unknown): ConfigError => new ConfigError(`${path}: ${what}`, cause === undefined ? undefined : { cause })
  const parsed = file.safeParse(jsonOf(path, wrong))
  if (!parsed.success) throw wrong(sentenceOf(parsed.error))
  const { issuers } = parsed.data
  for (const [index, entry] of issuers.entries()) {
    const problem = problemOf(entry, issuers.slice(0, index))
    if (problem !== null) throw wrong(`issuers[${index}].${problem}`)
  }
  return issuers.map((entry, index) => {
    const variable = entry.client_secret_env
    const secret = secretOf(variable, namedSecret, wrong)
    if (secret === null) throw wrong(`issuers[${index}].client_secret_env: neither ${variable} nor ${variable}_FILE is set`)
    return { ...entry, secret }
  })
}

/** Returns the variables of the environment that may have the secrets of issuers. */
export const variablesOfIssuers = (issuers: readonly Pick<IssuerSettings, 'client_secret_env'>[]): readonly string[] =>
  issuers.flatMap(({ client_secret_env: variable }) => [variable, `${variable}_FILE`])

function jsonOf(path: string, wrong: (what: string, cause: unknown) => ConfigError): unknown {
  try {
    const text = readFileSync(path, 'utf8')
    if (Buffer.byteLength(text) > fileMaxBytes) throw new RangeError(`has more than ${fileMaxBytes} bytes`)
    return JSON.parse(text)
  } catch (cause) {
    if (cause instanceof SyntaxError) throw wrong(`not valid JSON: ${cause.message}`, cause)
    throw wrong(cause instanceof RangeError ? cause.message : 'cannot be read; SIGN_IN_FILE names the file', cause)
  }
}

function sentenceOf({ issues }: z.ZodError): string {
  const shown = issues.slice(0, issuesShownMax).map(({ path, message }) => `${z.core.toDotPath(path) || 'the file'}: ${message}`)
  return `${shown.join('; ')}${issues.length > shown.length ? `; and ${issues.length - shown.length} more` : ''}`
}

/** Returns what a schema cannot express, or null. */
function problemOf({ id, issuer, addresses, domains, claims, email_verified: verified }: IssuerEntry, before: readonly IssuerEntry[]): string | null {
  const names = Object.keys(domains)
  if (before.some(each => each.id === id)) return `id: "${id}" is there twice`
  if (before.some(each => each.issuer === issuer)) return `issuer: "${issuer}" is there twice`
  if (addresses === 'domains' && names.length === 0)
    return 'domains: expected the mail domains for which this issuer vouches; "addresses": "any" trusts it for every address'
  const open = names.find(isPublicMailDomain)
  if (open !== undefined) return `domains: anybody can get an address of ${open}, so it belongs to no organisation`
  if (claims.email !== 'email' && verified === 'required')
    return `claims.email: the claim email_verified is about the claim email. With "${claims.email}", set "email_verified": "assumed"`
  for (const name of names)
    for (const each of before) {
      const other = each.domains[name]?.org
      if (other !== undefined && domains[name]?.org !== undefined && other !== domains[name]?.org)
        return `domains: ${name} is claimed for organisation ${other} already. A domain belongs to one organisation`
    }
  return null
}

function secretOf(variable: string, namedSecret: Config['namedSecret'], wrong: (what: string, cause: unknown) => ConfigError): Secret | null {
  const direct = namedSecret(variable)
  const path = namedSecret(`${variable}_FILE`)
  if (direct !== null || path === null) return direct
  try {
    return new Secret(readFileSync(path.reveal(), 'utf8').trim())
  } catch (cause) {
    throw wrong(`the file that ${variable}_FILE names cannot be read`, cause)
  }
}

function isIssuerUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, hostname, username, password, search, hash } = new URL(text)
  if (username !== '' || password !== '' || search !== '' || hash !== '') return false
  return protocol === 'https:' || (protocol === 'http:' && ['localhost', '127.0.0.1', '[::1]'].includes(hostname))
}
