import { fail, GatewayError } from '../../../platform/errors.ts'
import { Cancellation, type CancelSignal } from '../../../platform/loop/cancellation.ts'
import { BodyTooLargeError, type OutboundReply } from '../../../platform/outbound/upstream-body.ts'
import { unknownTraits } from '../../providers/dialect.ts'
import { dialectOf } from '../../providers/dialects.ts'
import { publicMessage } from '../../providers/public-message.ts'
import type { Candidate, ComplianceDeps } from './compliance.ts'

/** The reply of a server to one request, or the reason why there is no reply. */
export type Answer =
  | { readonly kind: 'reply'; readonly status: number; readonly type: string; readonly text: string; readonly firstByteMs: number; readonly totalMs: number }
  | { readonly kind: 'none'; readonly why: string; readonly totalMs: number }

type Body = Readonly<Record<string, unknown>>

/** Maximum size of a reply. The replies that a test requests are a hundred times smaller. */
const replyMaxBytes = 256 * 1024
const excerptMaxChars = 160

/** Sends the requests of one test in the same way as calls. All requests share one time limit. */
export class ComplianceDial {
  readonly #candidate: Candidate
  readonly #deps: ComplianceDeps
  readonly #signal: CancelSignal
  readonly #cut = new Cancellation()
  readonly #stopTimer: () => void
  readonly #onAbort = (): void => this.#cut.abort(this.#signal.reason)
  #isLate = false
  /** The name of the field that limits output tokens. Newer models of some vendors use another name. */
  #limitName = 'max_tokens'

  constructor(candidate: Candidate, signal: CancelSignal, deps: ComplianceDeps) {
    this.#candidate = candidate
    this.#deps = deps
    this.#signal = signal
    if (signal.aborted) this.#onAbort()
    else signal.addEventListener('abort', this.#onAbort, { once: true })
    this.#stopTimer = deps.clock.after(deps.timeoutMs, () => {
      this.#isLate = true
      this.#cut.abort(new Error('the test took too long'))
    })
  }

  /** Call this after the last request. */
  end(): void {
    this.#stopTimer()
    this.#signal.removeEventListener('abort', this.#onAbort)
  }

  /** Sends a chat request with a limit of output tokens. Throws `bad_request` for an address that a user may not reach. */
  async chat(body: Body, maxTokens: number): Promise<Answer> {
    const answer = await this.send({ ...body, [this.#limitName]: maxTokens })
    if (this.#limitName !== 'max_tokens' || answer.kind === 'none' || answer.status !== 400 || !answer.text.includes('max_completion_tokens')) return answer
    this.#limitName = 'max_completion_tokens'
    return this.send({ ...body, [this.#limitName]: maxTokens })
  }

  /** Sends a body unchanged except for the model. Throws as `chat` does. */
  async send(body: Body): Promise<Answer> {
    const { provider, upstreamModel } = this.#candidate
    const stream = body['stream'] === true
    const request = dialectOf(provider.dialect).request(
      { operation: 'chat', body, bytes: null, stream, dropped: [] },
      { provider, upstreamModel, credential: provider.platformKey, forwarded: null, traits: unknownTraits },
    )
    const startedMs = this.#deps.clock.monotonicMs()
    const elapsedMs = (): number => Math.round(this.#deps.clock.monotonicMs() - startedMs)
    try {
      if (this.#isLate) throw new Error('late')
      const reply = await this.#deps.dial({ ...request, signal: this.#cut })
      const { text, firstByteMs } = await this.#read(reply, elapsedMs)
      return { kind: 'reply', status: reply.status, type: String(reply.headers['content-type'] ?? ''), text, firstByteMs, totalMs: elapsedMs() }
    } catch (error) {
      if (this.#signal.aborted) throw this.#signal.reason
      if (error instanceof GatewayError) throw error
      return { kind: 'none', why: this.#why(error), totalMs: elapsedMs() }
    }
  }

  /** Returns the server's own error message, without its key and without quotes of the request. Returns an empty text when the server sent no error in JSON. */
  excerpt(text: string): string {
    try {
      const value: unknown = JSON.parse(text)
      if (typeof value !== 'object' || value === null || !('error' in value || 'message' in value)) return ''
    } catch {
      return ''
    }
    const said = publicMessage(text, this.#candidate.provider.platformKey, {})
    return said.length > excerptMaxChars ? `${said.slice(0, excerptMaxChars)}…` : said
  }

  async #read(reply: OutboundReply, elapsedMs: () => number): Promise<{ text: string; firstByteMs: number }> {
    const parts: Uint8Array[] = []
    let bytes = 0
    let firstByteMs: number | null = null
    for await (const chunk of reply.body) {
      firstByteMs ??= elapsedMs()
      bytes += chunk.byteLength
      if (bytes > replyMaxBytes) throw new BodyTooLargeError('the reply is too large')
      parts.push(chunk)
    }
    return { text: Buffer.concat(parts).toString('utf8'), firstByteMs: firstByteMs ?? elapsedMs() }
  }

  #why(error: unknown): string {
    if (this.#isLate) return `no whole answer within the ${this.#deps.timeoutMs / 1000} s that the test may take`
    if (error instanceof BodyTooLargeError) return `its answer is larger than ${replyMaxBytes} bytes`
    const code = codeOf(error)
    if (code === 'BLOCKED_ADDRESS')
      throw fail('bad_request', {
        message:
          'base_url leads to a private, loopback or otherwise reserved address. Only the operator can permit it, by listing its host:port in OUTBOUND_ALLOW.',
      })
    const known = sentences[code]
    return known === undefined ? `it could not be reached (${code})` : `it could not be reached: ${known} (${code})`
  }
}

const sentences: Readonly<Record<string, string>> = {
  ENOTFOUND: 'its host name does not resolve',
  EAI_AGAIN: 'its host name could not be looked up',
  ECONNREFUSED: 'nothing listens on that port',
  ECONNRESET: 'it closed the connection',
  UND_ERR_SOCKET: 'it closed the connection',
  UND_ERR_CONNECT_TIMEOUT: 'it took no connection in time',
  UND_ERR_HEADERS_TIMEOUT: 'it took the request and answered nothing',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is signed by itself',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate comes from an authority that is not trusted here',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate comes from an authority that is not trusted here',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host name',
}

function codeOf(error: unknown): string {
  if (typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string') return error.code
  return error instanceof Error ? error.name : 'unknown error'
}
