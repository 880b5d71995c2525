/**
 * The step between a dialect and the wire for credentials that expire. The dialect writes a request without a credential, and this step adds the headers
 * that authorise it. Static keys do not come here: the dialect writes them. Decision 0864 gives the reasons.
 */
import type { CancelSignal } from '../../platform/loop/cancellation.ts'
import type { OutboundReply } from '../../platform/outbound/upstream-body.ts'

/** A request as it goes out, except for its credential. */
export interface UnauthorisedRequest {
  readonly method: 'GET' | 'POST'
  readonly url: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer | string | undefined
  /** Does one piece of work on a long body when other calls have had their turn. */
  readonly inTurn?: (<T>(work: () => T) => Promise<T>) | undefined
}

/** The headers with which a request goes out, and the credentials that they contain. */
export interface Authorised {
  readonly headers: Readonly<Record<string, string>>
  /** Names the credentials for `mayRetry`. */
  readonly used: object
}

/** Authorises requests with one identity. */
export interface Authoriser {
  /** Returns the headers of the request with those that authorise it. Rejects with CredentialsError when there are no credentials. */
  authorise(request: UnauthorisedRequest, nowMs: number): Promise<Authorised>
  /**
   * Returns true when a refused request should be sent once more: the reply says that the credentials have ended and there are others now, or that the
   * clocks differ. New credentials are fetched once for all callers. Returns false without a wait for every other reply. Never rejects.
   */
  mayRetry(reply: Pick<OutboundReply, 'status' | 'headers'>, used: object, nowMs: number): boolean | Promise<boolean>
  /** Returns what a person should know about the credentials, without any part of them. */
  describe(): CredentialState
}

/** What is known about credentials: where they came from and when they end. */
export interface CredentialState {
  /** Such as `Entra client secret`, or `AWS chain`. */
  readonly source: string
  /** Milliseconds since the Unix epoch. Null before the first use, and for what does not end. */
  readonly endMs: number | null
}

/** The credentials of an identity could not be had. The message is for callers and operators, and contains no secret. */
export class CredentialsError extends Error {
  override readonly name = 'CredentialsError'
  /** True when the token endpoint refused the credentials. False when it could not be asked. */
  readonly isRefusal: boolean

  constructor(message: string, options: { readonly cause?: unknown; readonly isRefusal?: boolean } = {}) {
    super(message, { cause: options.cause })
    this.isRefusal = options.isRefusal ?? false
  }
}

/** Sends a request with its headers. */
export type Dial = (headers: Readonly<Record<string, string>>) => Promise<OutboundReply>

/**
 * Authorises a request and sends it. When the reply says that the credentials have ended, they are renewed and the request is sent once more. Rejects with
 * CredentialsError, with the reason of the signal, or with the error of the dial.
 */
export async function sendAuthorised(
  authoriser: Authoriser,
  request: UnauthorisedRequest,
  { dial, signal, nowMs }: { readonly dial: Dial; readonly signal?: CancelSignal; nowMs(): number },
): Promise<OutboundReply> {
  const first = await authoriser.authorise(request, nowMs())
  signal?.throwIfAborted()
  const reply = await dial(first.headers)
  const again = authoriser.mayRetry(reply, first.used, nowMs())
  if (again === false || !(await again)) return reply
  reply.body.destroy()
  const second = await authoriser.authorise(request, nowMs())
  signal?.throwIfAborted()
  return dial(second.headers)
}
