/** Access tokens of Microsoft Entra: a client secret, a federated token, or the managed identity of a machine. Decision 0866 gives the reasons. */
import { readFile } from 'node:fs/promises'
import { CredentialsError } from './authorise.ts'
import type { AccessToken } from './bearer.ts'
import type { GivenCredentials } from './given-credentials.ts'
import { postForToken, type TokenDeps, tokenFrom } from './token-request.ts'

/** The variables by which Azure describes the identity of a process. */
export interface EntraProcess {
  readonly tenantId: string | null
  readonly clientId: string | null
  readonly clientSecret: string | null
  readonly federatedTokenFile: string | null
  /** The identity endpoint of App Service, with its secret. */
  readonly identityEndpoint: string | null
  readonly identityHeader: string | null
  /** The metadata service of virtual machines. */
  readonly metadataUrl: string
}

export interface EntraOptions extends TokenDeps {
  /** `https://login.microsoftonline.com`, or the one of a sovereign cloud. The operator sets it. */
  readonly loginUrl: string
  readonly scope: string
}

const assertionType = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
const assertionMaxChars = 64 * 1024

type ClientSecret = Pick<Extract<GivenCredentials, { kind: 'entra' }>, 'tenantId' | 'clientId' | 'clientSecret'>

/** Returns a token for a client secret. */
export function clientSecretToken({ tenantId, clientId, clientSecret }: ClientSecret, { loginUrl, scope, ...deps }: EntraOptions): Promise<AccessToken> {
  const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret.reveal(), scope }
  return postForToken(tokenUrlOf(loginUrl, tenantId), form, 'Entra', deps)
}

/** Says how the process signs in, for people. */
export function entraSource({ tenantId, clientId, clientSecret, federatedTokenFile, identityEndpoint }: EntraProcess): string {
  if (tenantId !== null && clientId !== null && federatedTokenFile !== null) return 'Entra federated token'
  if (tenantId !== null && clientId !== null && clientSecret !== null) return 'Entra client secret'
  return identityEndpoint === null ? 'Entra managed identity of the machine' : 'Entra managed identity of App Service'
}

/** Returns a token of the identity of this process. A federated token is read again each time, because Kubernetes replaces its file. */
export async function processEntraToken(process: EntraProcess, options: EntraOptions): Promise<AccessToken> {
  const { tenantId, clientId, clientSecret, federatedTokenFile } = process
  const { loginUrl, scope, ...deps } = options
  if (tenantId === null || clientId === null) return managedIdentityToken(process, options)
  const form = { grant_type: 'client_credentials', client_id: clientId, scope }
  const url = tokenUrlOf(loginUrl, tenantId)
  if (federatedTokenFile !== null) {
    const assertion = await assertionIn(federatedTokenFile)
    return postForToken(url, { ...form, client_assertion_type: assertionType, client_assertion: assertion }, 'Entra', deps)
  }
  if (clientSecret !== null) return postForToken(url, { ...form, client_secret: clientSecret }, 'Entra', deps)
  return managedIdentityToken(process, options)
}

async function assertionIn(path: string): Promise<string> {
  try {
    const text = (await readFile(path, 'utf8')).trim()
    if (text === '' || text.length > assertionMaxChars) throw new Error('not a token')
    return text
  } catch (cause) {
    throw new CredentialsError('the file in AZURE_FEDERATED_TOKEN_FILE cannot be read', { cause })
  }
}

function managedIdentityToken({ clientId, identityEndpoint, identityHeader, metadataUrl }: EntraProcess, options: EntraOptions): Promise<AccessToken> {
  const ofAppService = identityEndpoint !== null && identityHeader !== null
  const url = new URL(ofAppService ? identityEndpoint : `${metadataUrl}/metadata/identity/oauth2/token`)
  url.searchParams.set('api-version', ofAppService ? '2019-08-01' : '2018-02-01')
  url.searchParams.set('resource', options.scope.replace(/\/\.default$/, ''))
  if (clientId !== null) url.searchParams.set('client_id', clientId)
  const headers: Record<string, string> = ofAppService ? { 'x-identity-header': identityHeader } : { metadata: 'true' }
  return tokenFrom({ method: 'GET', url: url.href, headers }, 'The managed identity', options)
}

const tokenUrlOf = (loginUrl: string, tenantId: string): string => `${loginUrl}/${encodeURIComponent(tenantId)}/oauth2/v2.0/token`
