import type { IncomingMessage, ServerResponse } from 'node:http'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { isLegacyRequest } from '@modelcontextprotocol/server'
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import { Cancellations } from './cancellations.ts'
import type { McpIdentity } from './instructions.ts'
import { isListen } from './news/listen-body.ts'
import type { Listener } from './news/listen-stream.ts'
import { ListenStreams } from './news/listen-streams.ts'
import { type DiscoverEra, makeDiscoverEra } from './server-discover.ts'
import { serveInitializeEra } from './server-initialize.ts'
import type { Surface } from './surface.ts'

/** One admitted POST. */
export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The JSON value of the body. */
  readonly body: unknown
  readonly surface: Surface
  /** Whose running calls a cancel of the initialize era may mean. */
  readonly cancelOwner: string
  readonly listener: Listener
}

/** Answers every POST with the SDK of its era. */
export class Eras {
  readonly #identity: McpIdentity
  readonly #log: Log
  readonly #discover: DiscoverEra
  readonly #listens: ListenStreams
  readonly #cancellations = new Cancellations()

  constructor(identity: McpIdentity, bodyLimitBytes: number, { clock, log }: { readonly clock: Clock; readonly log: Log }) {
    this.#identity = identity
    this.#log = log
    this.#discover = makeDiscoverEra(identity, bodyLimitBytes)
    this.#listens = new ListenStreams(clock, identity)
  }

  /** Resolves when the reply is written. */
  serve(exchange: Exchange): Promise<void> {
    const { request, response, body } = exchange
    const onerror = (error: Error): void => this.#log.error('mcp request failed', { path: '/mcp', status: 500, error })
    const answer = toNodeHandler({ fetch: web => this.#answer(web, exchange) }, { onerror })
    return answer({ method: 'POST', url: '/mcp', headers: request.headers, [Symbol.asyncIterator]: () => request[Symbol.asyncIterator]() }, response, body)
  }

  /** Ends subscriptions in good order and takes no new ones. */
  endSubscriptions(): void {
    this.#listens.endAll()
  }

  async close(): Promise<void> {
    this.endSubscriptions()
    await this.#discover.close()
  }

  async #answer(web: Request, { body, surface, cancelOwner, listener }: Exchange): Promise<Response> {
    if (await isLegacyRequest(web, body))
      return serveInitializeEra(web, body, surface, this.#identity, { cancellations: this.#cancellations, owner: cancelOwner })
    return isListen(body) ? this.#listens.serve(web, body, surface, listener) : this.#discover.serve(web, body, surface)
  }
}
