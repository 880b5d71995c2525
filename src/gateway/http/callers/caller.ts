/** Authenticates the caller of an endpoint, and refuses requests of unknown callers. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AnyRow } from '../../../platform/endpoint.ts'
import { fail, GatewayError } from '../../../platform/errors.ts'
import type { CallOwners } from '../../../platform/loop/inflight.ts'
import { mayCall, type Principal } from '../../../platform/security/principal.ts'
import { challenge } from '../../access/authenticate.ts'
import { geminiCredential } from '../../wire/gemini/credentials.ts'
import { gatewayCredential, providerCredential } from '../../wire/messages/credentials.ts'
import { type Binding, countsStrangers, type EdgeDeps } from '../edge.ts'
import { basicPassword } from '../oauth-wire.ts'
import { noSuchPath } from '../path-hint.ts'
import { type ActCall, isAudited, recordForbidden } from '../rows/audited-actions.ts'
import { isOfStranger } from './anonymous.ts'

/** A request to one endpoint of the table. */
export interface RowRequest {
  readonly binding: Binding
  readonly params: Readonly<Record<string, string>>
  readonly requestId: string
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

type Caller = Principal | null

/**
 * Returns the principal of a request. Returns null for rows with signed messages and for public rows. On a public row that counts anonymous callers, a
 * valid credential gives its principal. Throws 401, 403, 429, 503.
 */
export function authenticate({ auth, at, row }: Binding, request: IncomingMessage, response: ServerResponse, deps: EdgeDeps): Caller | Promise<Caller> {
  const { headers, method = '' } = request
  switch (auth) {
    case 'public':
      return countsStrangers(at) ? knownOrAnonymous(row, request, response, deps) : null
    case 'signature':
      return null
    case 'key':
      if (row.clients === 'oauth') return oauthClient(headers, deps)
      if (row.clients === 'gemini') return deps.authenticate(geminiCredential(headers, queryOf(request)))
      return deps.authenticate(row.clients === 'anthropic' ? ofMessagesCall(headers) : headers)
    case 'session':
      return deps.authenticateSession(method, headers)
    case 'key-or-session':
      return headers.authorization === undefined ? deps.authenticateSession(method, headers) : deps.authenticate(headers)
  }
}

/** Authenticates an OAuth client by a bearer credential, or by an API key as the password of HTTP Basic. A 401 names the scheme that the client used. */
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

/** Returns the gateway key among the credentials of a call of the messages API. Throws `invalid_api_key` when the call has only a provider key. */
function ofMessagesCall(headers: IncomingMessage['headers']): { authorization?: string } {
  const found = gatewayCredential(headers)
  if (found.authorization === undefined && providerCredential(headers) !== null)
    throw fail('invalid_api_key', { message: providerKeyAlone, headers: challenge })
  return found
}

const providerKeyAlone =
  'The credential is not one of this gateway. Send the gateway key in "x-br-api-key" beside it (Claude Code: ANTHROPIC_CUSTOM_HEADERS="x-br-api-key: br-…"), or in its place.'

/**
 * Returns the caller of a public row. With a valid credential the caller is known, and the rate limit of its key applies. Every other request counts as
 * anonymous.
 */
async function knownOrAnonymous({ clients }: AnyRow, request: IncomingMessage, response: ServerResponse, deps: EdgeDeps): Promise<Caller> {
  const headers = clients === 'gemini' ? geminiCredential(request.headers, queryOf(request)) : request.headers
  if (headers.authorization !== undefined) {
    try {
      return await (clients === 'oauth' ? oauthClient(headers, deps) : deps.authenticate(headers))
    } catch (thrown) {
      if (!(thrown instanceof GatewayError) || thrown.status !== 401) throw thrown
    }
  }
  deps.countAnonymous(request, response)
  return null
}

/**
 * Returns the refusal of a request whose caller is unknown. A wrong or missing credential counts against its sender. When the sender is over that limit,
 * the result is 429 instead of 401. A 403 because of the page that sent the request, or because the caller is an agent, is recorded in the audit trail. On a
 * row for operators it becomes the reply of an unknown path, unless an operator sent the request.
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
  const isForbidden = thrown instanceof GatewayError && thrown.status === 403
  if (isForbidden && (binding.access.operator === true || isAudited(binding.row))) {
    const reader = await whoReads(request, deps)
    // For a caller who is no operator, the row does not exist, whatever else is wrong with the request.
    if (binding.access.operator === true && (reader === null || !mayCall(reader, binding.access).ok)) return fail('not_found', { message: noSuchPath })
    if (reader !== null && isAudited(binding.row)) await recordForbidden(actOf(call, reader, deps), deps)
  }
  return thrown
}

/** Returns the query of a request. It may contain a key, so it is read here and kept nowhere. */
function queryOf({ url = '' }: IncomingMessage): string {
  const mark = url.indexOf('?')
  return mark < 0 ? '' : url.slice(mark + 1)
}

async function whoReads(request: IncomingMessage, deps: EdgeDeps): Promise<Principal | null> {
  try {
    return await deps.authenticateSession('GET', request.headers)
  } catch {
    return null
  }
}

/** Describes a request for the audit trail. */
export function actOf({ binding, params, requestId, request }: RowRequest, principal: Principal, deps: EdgeDeps): ActCall {
  return { name: binding.name, principal, params, requestId, isOfInstallation: binding.access.operator === true, clientIp: () => deps.clientIp(request) }
}

/** Returns the agents, key and tokens under which a running call is registered. When one of them is revoked, the call ends. */
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
