import type { IncomingMessage, ServerResponse } from 'node:http'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { isLegacyRequest } from '@modelcontextprotocol/server'
import type { Clock } from '../../platform/clock.ts'
import type { Log } from '../../platform/observe/log.ts'
import type { McpIdentity } from '../documents/instructions.ts'
import { type DiscoverEra, makeDiscoverEra } from '../documents/server-discover.ts'
import { isListen } from '../news/listen-body.ts'
import type { Listener } from '../news/listen-stream.ts'
import { ListenStreams } from '../news/listen-streams.ts'
import { serveInitializeEra } from '../server-initialize.ts'
import type { Surface } from '../surface.ts'
import { boundedAnswer } from './answer-bound.ts'
import { Cancellations } from './cancellations.ts'
import type { RefusedMessage } from './message-rate.ts'

/** One admitted POST. */
export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The JSON value of the body. */
  readonly body: unknown
  /** The answers to messages of the same batch that are refused and do not run. */
  readonly refused: readonly RefusedMessage[]
  readonly surface: Surface
  /** The owner of the running calls that a cancel of the initialize era may end. */
  readonly cancelOwner: string
  readonly listener: Listener
}

export interface ErasDeps {
  readonly clock: Clock
  readonly log: Log
  /** Reserves one of the streams that an organisation may have open. Returns null when all are open. */
  readonly holdStream: (orgId: number) => Promise<(() => void) | null>
  /** Maximum number of streams of changes of this process. */
  readonly changeStreamsMax: number
  /** Returns the founder of an organisation. When it is left out, each organisation is its own founder. */
  readonly founderOf?: ((orgId: number) => string) | undefined
}

/** Answers every POST with the SDK of its era. Decision 0070 says why. */
export class Eras {
  readonly #identity: McpIdentity
  readonly #log: Log
  readonly #discover: DiscoverEra
  readonly #listens: ListenStreams
  readonly #cancellations = new Cancellations()

  constructor(identity: McpIdentity, bodyLimitBytes: number, { clock, log, holdStream, changeStreamsMax, founderOf }: ErasDeps) {
    this.#identity = identity
    this.#log = log
    this.#discover = makeDiscoverEra(identity, bodyLimitBytes)
    this.#listens = new ListenStreams(clock, identity, { hold: holdStream, max: changeStreamsMax, founderOf })
  }

  /** Serves one POST. The promise resolves when the reply is written. */
  serve(exchange: Exchange): Promise<void> {
    const { request, response, body } = exchange
    const onerror = (error: Error): void => this.#log.error('mcp request failed', { path: '/mcp', status: 500, error })
    const answer = toNodeHandler({ fetch: web => this.#answer(web, exchange) }, { onerror })
    return answer({ method: 'POST', url: '/mcp', headers: request.headers, [Symbol.asyncIterator]: () => request[Symbol.asyncIterator]() }, response, body)
  }

  /** Ends subscriptions in good order and accepts no new ones. */
  endSubscriptions(): void {
    this.#listens.endAll()
  }

  async close(): Promise<void> {
    this.endSubscriptions()
    await this.#discover.close()
  }

  async #answer(web: Request, { body, refused, surface, cancelOwner, listener }: Exchange): Promise<Response> {
    const bounded = (answer: Response): Promise<Response> => boundedAnswer(answer, { body, refused, extraBytes: () => surface.tools.pictureBytes ?? 0 })
    if (await isLegacyRequest(web, body))
      return bounded(await serveInitializeEra(web, body, surface, this.#identity, { cancellations: this.#cancellations, owner: cancelOwner }))
    // A stream of changes has a bounded queue and lasts as long as its reader wants. The bound of one answer therefore does not apply to it.
    return isListen(body) ? this.#listens.serve(web, body, surface, listener) : bounded(await this.#discover.serve(web, body, surface))
  }
}
