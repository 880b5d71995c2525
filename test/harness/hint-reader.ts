import { until } from './until.ts'

/** An open stream of hints, as a browser reads it. */
export interface HintReader {
  readonly status: number
  readonly headers: Headers
  /** The topics that have arrived since the last `clear`, in their order. */
  readonly topics: readonly string[]
  /** Everything that has arrived, comments included. */
  text(): string
  /** True when the gateway has ended the stream. */
  isOver(): boolean
  clear(): void
  /** Resolves when the topic has arrived. */
  seen(topic: string, withinMs?: number): Promise<void>
  /** Resolves when the gateway has ended the stream. */
  ended(withinMs?: number): Promise<void>
  close(): Promise<void>
}

/** Opens a stream of hints with a session cookie. A refused request gives a reader that is over and whose text is the reply. */
export async function listenForHints(baseUrl: string, cookie: string): Promise<HintReader> {
  const controller = new AbortController()
  const response = await fetch(`${baseUrl}/me/events`, { headers: { cookie }, signal: controller.signal })
  let text = ''
  let isOver = false
  let topics: string[] = []
  let rest = ''
  const take = (bytes: Uint8Array): void => {
    const piece = Buffer.from(bytes).toString()
    text += piece
    const events = (rest + piece).split('\n\n')
    rest = events.pop() ?? ''
    for (const event of events) if (event.startsWith('data: ')) topics.push(JSON.parse(event.slice('data: '.length)).topic)
  }
  const reading = (async () => {
    for await (const bytes of response.body ?? []) take(bytes)
  })()
    .catch(() => undefined)
    .finally(() => {
      isOver = true
    })
  return {
    status: response.status,
    headers: response.headers,
    get topics() {
      return topics
    },
    text: () => text,
    isOver: () => isOver,
    clear() {
      topics = []
    },
    seen: (topic, withinMs = 5_000) => until(() => topics.includes(topic), `the hint ${topic} among ${topics.join(' ')}`, withinMs),
    ended: (withinMs = 5_000) => until(() => isOver, 'the end of the stream of hints', withinMs),
    async close() {
      controller.abort()
      await reading
    },
  }
}
