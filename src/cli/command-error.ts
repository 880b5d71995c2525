import { BrigadeError } from '../agents/toolkit/brigade-error.ts'

/** The exit codes of a command. Scripts branch on them, and docs/guides/cli.md lists them. */
export const exitCodes = { failed: 1, wrongUsage: 2, refused: 3, notFound: 4, overBudget: 5, conflict: 6 } as const

/** The failure of a command, for a person or a script. The message is one line and says what to do. It never contains a key. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly exitCode: number
  /** The gateway's error code, or a code of this program: usage, not_signed_in, unreachable, not_a_gateway, failed. */
  readonly code: string
  /** The status of the gateway's reply. Null when the failure does not come from a reply. */
  readonly status: number | null
  /** The other fields of the gateway's error, such as the current etag. */
  readonly evidence: Readonly<Record<string, unknown>>

  constructor(
    message: string,
    fields: { exitCode?: number; code?: string; status?: number | null; evidence?: Readonly<Record<string, unknown>>; cause?: unknown } = {},
  ) {
    super(message, fields.cause === undefined ? {} : { cause: fields.cause })
    this.exitCode = fields.exitCode ?? exitCodes.failed
    this.code = fields.code ?? 'failed'
    this.status = fields.status ?? null
    this.evidence = fields.evidence ?? {}
  }
}

/** Returns the error for a command with invalid arguments or flags. */
export function wrongUsage(message: string, cause?: unknown): CommandError {
  return new CommandError(message, { exitCode: exitCodes.wrongUsage, code: 'usage', cause })
}

const fileReasons: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder',
  EACCES: 'you may not',
  EROFS: 'the disk is read-only',
  ENOSPC: 'the disk is full',
}

/** Returns why a file cannot be read or written, in words. */
export function fileReason(thrown: unknown): string {
  const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : ''
  return fileReasons[code] ?? (code === '' ? 'the disk refuses it' : code)
}

/** The called gateway and the source of the credential, for messages. */
export interface Called {
  readonly baseUrl: string
  readonly credentialFrom: string
}

/** Returns the error of a call to a gateway as a CommandError with a message for people. Returns every other error unchanged. */
export function commandErrorOf(thrown: unknown, called: Called): unknown {
  // Only a reply that does not have the gateway's format causes these errors.
  if (thrown instanceof BrigadeError && thrown.code === 'wrong_address') return notAGateway(called.baseUrl, 'its reply has another shape', thrown)
  if (thrown instanceof BrigadeError) return ofReply(thrown, called)
  return thrown
}

/** Returns the error for an address where something other than a gateway replies. */
export function notAGateway(baseUrl: string, why: string, cause?: unknown): CommandError {
  return new CommandError(`what answers at ${baseUrl} is no Brigade gateway: ${why}. Set BRIGADE or --base-url to the address of yours.`, {
    code: 'not_a_gateway',
    cause,
  })
}

/** The longest wait that the message suggests. For a longer wait, the gateway's own message says when it ends. */
const soonS = 600

function ofReply(error: BrigadeError, called: Called): CommandError {
  if (error.code.startsWith('http_')) return notAGateway(called.baseUrl, `it answered with status ${error.status} and no error of a gateway`, error)
  const { status, code, requestId } = error
  const { error: _shown, ...said } = error.body
  // The operator can find a failure of the gateway by its request id.
  const evidence = {
    ...said,
    ...(status >= 500 && requestId !== null ? { request_id: requestId } : {}),
    ...(error.retryAfterS === null ? {} : { retry_after_s: error.retryAfterS }),
  }
  return new CommandError(messageOf(error, called), { exitCode: exitCodeOf(status), code, status, evidence, cause: error })
}

function messageOf(error: BrigadeError, { baseUrl, credentialFrom }: Called): string {
  if (error.status === 401) {
    if (error.body['reason'] === 'token_expired') return `the agent token of ${credentialFrom} has expired. Mint another one: brigade agent token <agent>.`
    if (error.body['reason'] === 'agent_revoked')
      return `the agent of the token of ${credentialFrom} was revoked permanently. Make another one: brigade agent create.`
    return `the gateway at ${baseUrl} does not accept the credential of ${credentialFrom}: it is of another gateway, expired or revoked. Run brigade login, or set BRIGADE_KEY.`
  }
  const etag = error.body['current_etag']
  if (error.code === 'memory_conflict' && typeof etag === 'string')
    return `${error.message} Its etag is now ${etag}, written at ${String(error.body['modified'])}.`
  const { retryAfterS } = error
  return retryAfterS !== null && retryAfterS > 0 && retryAfterS <= soonS ? `${error.message} Try again in ${retryAfterS} s.` : error.message
}

function exitCodeOf(status: number): number {
  switch (status) {
    case 401:
    case 403:
      return exitCodes.refused
    case 404:
      return exitCodes.notFound
    case 402:
    case 429:
      return exitCodes.overBudget
    case 409:
    case 412:
      return exitCodes.conflict
    default:
      return exitCodes.failed
  }
}
