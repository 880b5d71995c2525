/** Calls to a provider about files and batches, on the platform's key or on the organisation's own. */
import { Readable } from 'node:stream'
import { fail, GatewayError } from '../../../platform/errors.ts'
import type { CancelSignal } from '../../../platform/loop/cancellation.ts'
import type { Outbound, OutboundRequest } from '../../../platform/outbound/outbound.ts'
import type { OutboundReply } from '../../../platform/outbound/upstream-body.ts'
import type { Secret } from '../../../platform/security/secret.ts'
import { isObject } from '../../../platform/values/json.ts'
import { callHeaders } from '../../providers/call-headers.ts'
import type { Provider } from '../../providers/provider.ts'
import { publicMessage } from '../../providers/public-message.ts'
import { answerMaxBytes, askTimeoutMs } from '../batch-bounds.ts'

const anthropicVersion = '2023-06-01'

/** A provider answered with a status that is no success. */
export class ProviderRefusedError extends Error {
  override readonly name = 'ProviderRefusedError'
  readonly status: number
  /** True when the reply is Anthropic's own error object, so that no proxy between made it. */
  readonly #isAnthropicError: boolean

  constructor(status: number, message: string, isAnthropicError = false) {
    super(message)
    this.status = status
    this.#isAnthropicError = isAnthropicError
  }

  /** True when the provider certainly did nothing. Anthropic refuses with 529 or 503 when it is overloaded. */
  get isRefusal(): boolean {
    if (this.#isAnthropicError && (this.status === 529 || this.status === 503)) return true
    return this.status >= 400 && this.status < 500 && this.status !== 408
  }
}

/** An account at a provider. */
export class ProviderAccount {
  readonly provider: Provider
  readonly #credential: Secret | null
  readonly #outbound: Outbound

  constructor(provider: Provider, credential: Secret | null, outbound: Outbound) {
    this.provider = provider
    this.#credential = credential
    this.#outbound = outbound
  }

  /** Sends a request and returns the JSON object of its reply. Throws `ProviderRefusedError`, and the error of the connection. */
  async ask(
    method: OutboundRequest['method'],
    path: string,
    body?: object,
    signal?: CancelSignal,
    timeoutMs: number = askTimeoutMs,
  ): Promise<Record<string, unknown>> {
    const json = body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
    return this.#read(await this.#send({ method, path, signal, timeoutMs, ...json }))
  }

  /** Sends a body as it is made. An error of `pieces` ends the request, so that the provider gets no whole body, and is thrown. */
  async upload(path: string, contentType: string, pieces: AsyncGenerator<Buffer>, signal: CancelSignal): Promise<Record<string, unknown>> {
    const made: { error?: unknown } = {}
    async function* noted(): AsyncGenerator<Buffer> {
      try {
        yield* pieces
      } catch (error) {
        made.error = error
        throw error
      }
    }
    const body = Readable.from(noted(), { objectMode: false, highWaterMark: 64 * 1024 })
    // The error is thrown below. Without a listener it would end the process.
    body.on('error', () => {})
    try {
      return this.#read(await this.#send({ method: 'POST', path, signal, timeoutMs: askTimeoutMs, body, headers: { 'content-type': contentType } }))
    } catch (error) {
      throw made.error ?? error
    } finally {
      body.destroy()
    }
  }

  /** Asks for contents. The receiver reads or destroys the body. Throws `ProviderRefusedError`. */
  async download(path: string, signal?: CancelSignal): Promise<OutboundReply> {
    const reply = await this.#send({ method: 'GET', path, signal, timeoutMs: askTimeoutMs })
    if (reply.status < 200 || reply.status >= 300) await this.#refuse(reply)
    return reply
  }

  async #send(request: {
    readonly method: OutboundRequest['method']
    readonly path: string
    readonly signal: CancelSignal | undefined
    readonly timeoutMs: number
    readonly body?: string | Readable
    readonly headers?: Readonly<Record<string, string>>
  }): Promise<OutboundReply> {
    const { method, path, signal, timeoutMs, body, headers } = request
    const version = this.provider.dialect === 'anthropic' ? { 'anthropic-version': anthropicVersion } : {}
    return this.#outbound.toProvider({
      method,
      url: this.provider.baseUrl + path,
      headers: { ...callHeaders(this.provider, this.#credential), ...version, ...headers },
      headersTimeoutMs: timeoutMs,
      ...(body === undefined ? {} : { body }),
      ...(signal === undefined ? {} : { signal }),
    })
  }

  async #read(reply: OutboundReply): Promise<Record<string, unknown>> {
    if (reply.status < 200 || reply.status >= 300) await this.#refuse(reply)
    const value: unknown = JSON.parse((await reply.body.buffer(answerMaxBytes)).toString('utf8'))
    if (!isObject(value)) throw new Error(`${this.provider.id} answered with no JSON object`)
    return value
  }

  async #refuse(reply: OutboundReply): Promise<never> {
    const text = (await reply.body.buffer(answerMaxBytes)).toString('utf8')
    const isAnthropicError = this.provider.dialect === 'anthropic' && isErrorObject(text)
    throw new ProviderRefusedError(reply.status, publicMessage(text, this.#credential, {}), isAnthropicError)
  }
}

function isErrorObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) && value['type'] === 'error' && isObject(value['error'])
  } catch {
    return false
  }
}

/** Returns the error that a caller gets for a failed request to a provider. */
export function callerError(error: unknown, { id }: Provider): unknown {
  if (error instanceof GatewayError) return error
  if (!(error instanceof ProviderRefusedError)) return fail('all_routes_failed', { message: `${id} cannot be reached now. Try again shortly.`, cause: error })
  const message = `${id} refused it (${error.status}): ${error.message}`
  const isOfCaller = [400, 404, 409, 413, 422].includes(error.status)
  return isOfCaller ? fail('bad_request', { message, cause: error }) : fail('all_routes_failed', { message, cause: error })
}
