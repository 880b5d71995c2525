/** What one caller may subscribe to: keys and folders of memory, and the account resources. */
import type { Log } from '../../platform/observe/log.ts'
import type { RowReader } from '../row-reader.ts'
import type { ChangeParams, ChangeSink, ChangeSurface, Listening } from '../surface.ts'
import { SurfaceError } from '../surface.ts'
import { AccountNews, type AccountNewsDeps } from './account-news.ts'
import { MemoryNews, type MemoryWatch } from './memory-news.ts'

export interface SubscriptionDeps extends AccountNewsDeps {
  /** Reads rows and counts each read against the caller's rate. */
  readonly rated: RowReader
  readonly memory: MemoryWatch
  readonly log: Log
}

/** Maximum number of URIs of one stream. A folder counts as one URI, whatever the number of its keys. */
const urisMax = 100
/** Maximum length of a URI. Every notification repeats its URI. The URI of the longest memory key is shorter than this. */
const uriCharsMax = 4_096

export class GatewayChanges implements ChangeSurface {
  /** Changes of lists are not reported. A credential's tools, prompts and resources change only with its rights, and every call checks those. */
  readonly lists = [] as const
  readonly #deps: SubscriptionDeps

  constructor(deps: SubscriptionDeps) {
    this.#deps = deps
  }

  async listen({ uris }: ChangeParams, sink: ChangeSink): Promise<Listening> {
    if (uris.length > urisMax)
      throw new SurfaceError(
        'badParams',
        `One stream listens to at most ${urisMax} resources. Subscribe to a folder: memory://agents/ means all keys below it.`,
      )
    if (uris.some(uri => uri.length > uriCharsMax)) throw new SurfaceError('badParams', `The URI of a resource has at most ${uriCharsMax} characters.`)
    const { memory, reader, rated, rows, log } = this.#deps
    // Opening a stream counts as a call. The gateway's later reads for the stream do not count.
    await rated.value(rows.whoami, {}, new AbortController().signal)
    const wanted = [...new Set(uris)]
    const account = new AccountNews(this.#deps, sink)
    const ofMemory = new MemoryNews(memory, reader.call.principal, sink, log)
    const stops: (() => void)[] = []
    const stop = (): void => {
      for (const end of stops.splice(0)) end()
    }
    try {
      const accountUris = account.take(wanted)
      const memoryUris = reader.may(rows.memory.read) ? await ofMemory.take(wanted) : []
      if (memoryUris.length > 0) stops.push(await ofMemory.listen())
      stops.push(await account.listen())
      return { granted: { lists: [], uris: [...accountUris, ...memoryUris] }, stop }
    } catch (thrown) {
      stop()
      throw reader.failure(thrown, 'subscriptions/listen')
    }
  }
}
