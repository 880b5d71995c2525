import type { ServerEvent } from '@modelcontextprotocol/server'
import type { ChangeDetail, ChangeSink, SurfaceChange } from '../surface.ts'

/** Maximum number of details in one notification. When there are more changes, the notification contains the latest ones. */
const detailsMax = 20

interface Waiting {
  readonly change: SurfaceChange
  readonly details: ChangeDetail[]
  count: number
}

/**
 * The changes that a reader has not taken yet, with one entry for each changed thing. Changes of one thing are merged, so a slow reader gets fewer
 * notifications and the queue stays bounded.
 */
export class ChangeOutbox implements ChangeSink {
  readonly #waiting = new Map<string, Waiting>()
  readonly #onTell: () => void
  readonly #onEnd: () => void

  /** `onTell` is called when there is a change to take. `onEnd` is called when the source ends. */
  constructor(onTell: () => void, onEnd: () => void) {
    this.#onTell = onTell
    this.#onEnd = onEnd
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0
  }

  notify(change: SurfaceChange): void {
    const name = change.kind === 'resource' ? `resource ${change.uri}` : change.kind
    const waiting = this.#waiting.get(name) ?? { change, details: [], count: 0 }
    this.#waiting.set(name, waiting)
    waiting.count++
    if (change.kind === 'resource' && change.detail !== undefined) waiting.details.push(change.detail)
    if (waiting.details.length > detailsMax) waiting.details.shift()
    this.#onTell()
  }

  end(): void {
    this.#onEnd()
  }

  /** Returns the oldest change in the form of the SDK. Returns null when no change waits. */
  take(): ServerEvent | null {
    const [first] = this.#waiting
    if (!first) return null
    const [name, { change, details, count }] = first
    this.#waiting.delete(name)
    if (change.kind !== 'resource') return { kind: `${change.kind}_list_changed` }
    const meta = { 'brigade/changes': details, ...(count > details.length ? { 'brigade/more_changes': count - details.length } : {}) }
    return { kind: 'resource_updated', uri: change.uri, ...(details.length === 0 ? {} : { params: { _meta: meta } }) }
  }
}
