/**
 * Writes one line to the audit trail for every call of an endpoint that changes something, over HTTP and over MCP. Decision 0111 says why.
 */
import { type AnyRow, Reply } from '../../../platform/endpoint.ts'
import { toGatewayError } from '../../../platform/errors.ts'
import type { Log } from '../../../platform/observe/log.ts'
import type { Principal } from '../../../platform/security/principal.ts'
import { ClientGoneError } from '../bodies/request-body.ts'
import { translate } from '../translate.ts'

interface ActLine {
  readonly orgId: number | null
  readonly actor: Principal
  readonly act: string
  readonly target: string | null
  readonly sourceIp: string | null
  readonly requestId: string | null
}

/** Writes the lines of the audit trail. The audit domain implements it. */
export interface ActTrail {
  /** Writes the line of an act that is about to begin. Throws `database_unavailable`. */
  begin(line: ActLine): Promise<bigint>
  end(line: bigint, outcome: string, target: string | null): Promise<void>
  record(line: ActLine, outcome: string): Promise<void>
}

export interface ActDeps {
  readonly acts: ActTrail
  readonly log: Log
  /** Is called after an act has succeeded. It must not throw. */
  readonly onAct?: ((act: ActCall) => void) | undefined
}

/** One act: the name of the row, its principal, and the parameters of the path. */
export interface ActCall {
  readonly name: string
  readonly principal: Principal
  readonly params: Readonly<Record<string, string>>
  readonly requestId: string
  /** True when the act concerns the installation. Its line then belongs to no organisation. */
  readonly isOfInstallation?: boolean
  clientIp(): string
}

/**
 * Returns true when every call of the row gets a line in the audit trail. Handlers of rows that do not authenticate their caller (sign-in, signed messages)
 * write their own lines.
 */
export function isAudited({ inference, audit, auth, at }: AnyRow): boolean {
  return inference !== true && audit === undefined && !at.startsWith('GET ') && auth !== 'public' && auth !== 'signature'
}

/**
 * Performs an act and writes its line in two steps. The first step comes before the act, so a crash leaves a trace. When this step fails, the act does not
 * happen. The second step adds 'ok' or the error code. When the second step fails, the failure is logged and the act remains.
 */
export async function runAudited(call: ActCall, { acts, log, onAct }: ActDeps, handle: () => unknown): Promise<unknown> {
  const line = await acts.begin(lineOf(call))
  const end = (outcome: string, target: string | null): Promise<void> =>
    acts.end(line, outcome, target).catch((error: unknown) => log.error('audit line not completed', { requestId: call.requestId, error }))
  try {
    const value = await handle()
    onAct?.(call)
    await end('ok', targetOf(call.params, isSafe, value))
    return value
  } catch (thrown) {
    await end(thrown instanceof ClientGoneError ? 'client_gone' : toGatewayError(translate(thrown)).code, null)
    throw thrown
  }
}

/** Writes a line about an act that the principal's role or scope does not allow. It never throws, because nothing has happened. */
export async function recordForbidden(call: ActCall, { acts, log }: ActDeps): Promise<void> {
  await acts.record(lineOf(call), 'forbidden').catch((error: unknown) => log.warn('refusal not in the audit trail', { requestId: call.requestId, error }))
}

function lineOf(call: ActCall): ActLine {
  return {
    orgId: call.isOfInstallation === true ? null : call.principal.orgId,
    actor: call.principal,
    act: call.name,
    target: targetOf(call.params, isCertainlyNoSecret, null),
    sourceIp: call.clientIp() || null,
    requestId: call.requestId,
  }
}

/** Parameters whose values are ids of the gateway or of the catalog. Names that people choose are content and are not written. */
const idParameters = ['id', 'did', 'uid', 'paymentId', 'provider', 'model', 'route']

/**
 * Returns the target as `key=12` pairs: ids in the path, and the id of the created thing. People sometimes paste API keys into paths. So before the act,
 * only values that do not look like a secret are written. When the act has succeeded, the values in the path are real ids.
 */
function targetOf(params: Readonly<Record<string, string>>, isAllowed: (value: string) => boolean, value: unknown): string | null {
  const pairs = idParameters.flatMap(name => {
    const id = params[name]
    return id === undefined ? [] : [`${name}=${isAllowed(id) ? id : '?'}`]
  })
  const made = params['id'] === undefined ? madeIn(value) : null
  if (made !== null) pairs.push(made)
  return pairs.length === 0 ? null : pairs.join(' ')
}

/** Returns the id in a reply, as `id=12`, from the reply itself or from a part of it. The id of a part that has a scope is written as `key=12`. */
function madeIn(value: unknown): string | null {
  const json = value instanceof Reply ? (value.body.kind === 'json' ? value.body.value : null) : value
  const own = safeField(json, 'id')
  if (own !== null) return `id=${own}`
  for (const part of typeof json === 'object' && json !== null ? Object.values(json) : []) {
    const id = safeField(part, 'id')
    if (id !== null) return `${safeField(part, 'scope') ?? 'id'}=${id}`
  }
  return null
}

function safeField(thing: unknown, name: string): string | null {
  const field: unknown = typeof thing === 'object' && thing !== null ? Reflect.get(thing, name) : null
  if (typeof field === 'number' || typeof field === 'bigint') return String(field)
  return typeof field === 'string' && isSafe(field) ? field : null
}

const isSafe = (value: string): boolean => /^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,99}$/.test(value)

/** Accepts numbers, UUIDs and catalog ids. Secrets have capitals or a long run of letters and digits. */
const isCertainlyNoSecret = (value: string): boolean => /^[a-z0-9][a-z0-9._:/@+-]{0,99}$/.test(value) && !/[a-z0-9]{20}/.test(value)
