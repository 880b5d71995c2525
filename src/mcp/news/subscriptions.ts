/** What one caller may subscribe to: keys and folders of memory, and the account resources. */
import type { Log } from '../../platform/observe/log.ts'
import type { RowReader } from '../row-reader.ts'
import type { ChangeParams, ChangeSink, ChangeSurface, Listening } from '../surface.ts'
import { SurfaceError } from '../surface.ts'
import { AccountNews, type AccountNewsDeps } from './account-news.ts'
import { MemoryNews, type MemoryWatch } from './memory-news.ts'

export interface SubscriptionDeps extends AccountNewsDeps {
  /** Reads with a count against the caller's rate. */
  readonly rated: RowReader
  readonly memory: MemoryWatch
  readonly log: Log
}

/** Maximum number of URIs of one stream. A folder counts as one, whatever the number of its keys. */
const urisMax = 100
/** Maximum length of a URI. No key of memory makes a longer one, and every notification repeats its URI. */
const uriCharsMax = 4_096

export class GatewayChanges implements ChangeSurface {
  /** Changes of lists are not reported. Tools, prompts and resources of a credential change only with its rights, which every call checks. */
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
    // The opening of a stream counts as a call. The gateway's later reads for it do not count.
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
