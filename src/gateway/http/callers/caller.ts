/** Who calls a row, and what becomes of a request whose caller is not known. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AnyRow } from '../../../platform/endpoint.ts'
import { fail, GatewayError } from '../../../platform/errors.ts'
import type { CallOwners } from '../../../platform/loop/inflight.ts'
import type { Principal } from '../../../platform/security/principal.ts'
import { challenge } from '../../access/authenticate.ts'
import { gatewayCredential, providerCredential } from '../../wire/messages/credentials.ts'
import { type Binding, countsStrangers, type EdgeDeps } from '../edge.ts'
import { basicPassword } from '../oauth-wire.ts'
import { type ActCall, isAudited, recordForbidden } from '../rows/audited-actions.ts'
import { isOfStranger } from './anonymous.ts'

/** A request on a row. */
export interface RowRequest {
  readonly binding: Binding
  readonly params: Readonly<Record<string, string>>
  readonly requestId: string
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

type Caller = Principal | null

/** Who calls. Null on public rows, for callers without a valid credential, and on signed ones. Throws 401, 403, 503. */
export function authenticate({ auth, at, row }: Binding, request: IncomingMessage, response: ServerResponse, deps: EdgeDeps): Caller | Promise<Caller> {
  const { headers, method = '' } = request
  switch (auth) {
    case 'public':
      return countsStrangers(at) ? knownOrAnonymous(row, request, response, deps) : null
    case 'signature':
      return null
    case 'key':
      if (row.clients === 'oauth') return oauthClient(headers, deps)
      return deps.authenticate(row.clients === 'anthropic' ? ofMessagesCall(headers) : headers)
    case 'session':
      return deps.authenticateSession(method, headers)
    case 'key-or-session':
      return headers.authorization === undefined ? deps.authenticateSession(method, headers) : deps.authenticate(headers)
  }
}

/** Who calls as an OAuth client: a bearer credential like everywhere, or an API key as the password of HTTP Basic, then refused in the same scheme. */
async function oauthClient(headers: IncomingMessage['headers'], deps: EdgeDeps): Promise<Caller> {
  const password = basicPassword(headers.authorization)
  if (password === null) return deps.authenticate(headers)
  try {
    return await deps.authenticate({ authorization: `Bearer ${password}` })
  } catch (thrown) {
    if (!(thrown instanceof GatewayError) || thrown.status !== 401) throw thrown
    throw fail(thrown.errorName, { ...thrown.options, message: thrown.message, headers: { 'www-authenticate': 'Basic realm="brigade"' } })
  }
}

/** The gateway key among the credentials of a messages call. Throws `invalid_api_key` when there is one for a provider alone. */
function ofMessagesCall(headers: IncomingMessage['headers']): { authorization?: string } {
  const found = gatewayCredential(headers)
  if (found.authorization === undefined && providerCredential(headers) !== null)
    throw fail('invalid_api_key', { message: providerKeyAlone, headers: challenge })
  return found
}

const providerKeyAlone =
  'The credential is not one of this gateway. Send the gateway key in "x-br-api-key" beside it (Claude Code: ANTHROPIC_CUSTOM_HEADERS="x-br-api-key: br-…"), or in its place.'

/** The caller of a public row: by a valid credential the one that it names, who is held to the rate of the key; everybody else is anonymous and counted. */
async function knownOrAnonymous({ clients }: AnyRow, request: IncomingMessage, response: ServerResponse, deps: EdgeDeps): Promise<Caller> {
  if (request.headers.authorization !== undefined) {
    try {
      return await (clients === 'oauth' ? oauthClient(request.headers, deps) : deps.authenticate(request.headers))
    } catch (thrown) {
      if (!(thrown instanceof GatewayError) || thrown.status !== 401) throw thrown
    }
  }
  deps.countAnonymous(request, response)
  return null
}

/**
 * The answer to a request whose caller is unknown. A wrong or missing credential counts against its sender, and that refusal
 * goes before the 401. Who was kept from an act, by the page that sent it or as an agent, is in the audit trail all the same.
 */
export async function refusalOfUnknown(thrown: unknown, call: RowRequest, deps: EdgeDeps): Promise<unknown> {
  const { binding, request, response } = call
  if (binding.auth === 'public' || binding.auth === 'signature') return thrown
  if (countsStrangers(binding.at) && isOfStranger(thrown)) {
    try {
      deps.countAnonymous(request, response)
    } catch (tooMany) {
      return tooMany
    }
  }
  if (thrown instanceof GatewayError && thrown.status === 403 && isAudited(binding.row)) {
    const reader = await whoReads(request, deps)
    if (reader !== null) await recordForbidden(actOf(call, reader, deps), deps)
  }
  return thrown
}

async function whoReads(request: IncomingMessage, deps: EdgeDeps): Promise<Principal | null> {
  try {
    return await deps.authenticateSession('GET', request.headers)
  } catch {
    return null
  }
}

/** The act that a request is, for the audit trail. */
export function actOf({ binding, params, requestId, request }: RowRequest, principal: Principal, deps: EdgeDeps): ActCall {
  return { name: binding.name, principal, params, requestId, clientIp: () => deps.clientIp(request) }
}

/** Under whom a call in flight is registered. */
export function ownersOf(principal: Principal): CallOwners {
  switch (principal.kind) {
    case 'agent':
      return {
        agentIds: principal.ancestorIds.length === 0 ? [principal.agentId] : [principal.agentId, ...principal.ancestorIds],
        keyId: principal.keyId,
        tokenIds: principal.tokenIds,
      }
    case 'key':
      return { agentIds: [], keyId: principal.keyId }
    case 'session':
      return { agentIds: [], keyId: null }
  }
}
