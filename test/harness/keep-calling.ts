/** A steady load of small calls. */
import { Agent, fetch as undiciFetch } from 'undici'

/** A call of the load: the status or the failure, its start on the clock of `performance.now()`, and how long it took. */
export interface CallSeen {
  readonly result: string
  readonly startedMs: number
  readonly tookMs: number
}

export interface Load {
  /** Number of calls that have ended. */
  answered(): number
  /** Ends the load, once, and returns the number of replies by status, and the failures. */
  stop(): Promise<Record<string, number>>
}

export interface LoadOptions {
  readonly clients: number
  readonly model?: string
  /** The pause of a client between two calls. Default: none. */
  readonly pauseMs?: number
  /** Is called after every call. */
  readonly onCall?: (call: CallSeen) => void
}

/** Starts clients that call repeatedly on persistent connections. */
export function keepCalling(gateway: { readonly baseUrl: string }, key: string, { clients, model = 'fixed-model', pauseMs = 0, onCall }: LoadOptions): Load {
  let isOver = false
  let answered = 0
  const results: Record<string, number> = {}
  const dispatcher = new Agent({ connections: clients, pipelining: 1 })
  const request = {
    dispatcher,
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, max_tokens: 1, messages: [{ role: 'user', content: 'Hello' }] }),
  }
  const client = async (): Promise<void> => {
    while (!isOver) {
      const startedMs = performance.now()
      const result = await undiciFetch(`${gateway.baseUrl}/v1/chat/completions`, request).then(
        async reply => {
          await reply.text()
          return String(reply.status)
        },
        (error: Error) => `${error.message}: ${String(error.cause)}`,
      )
      results[result] = (results[result] ?? 0) + 1
      answered++
      onCall?.({ result, startedMs, tookMs: performance.now() - startedMs })
      if (pauseMs > 0) await new Promise(resolve => setTimeout(resolve, pauseMs))
    }
  }
  const running = Promise.all(Array.from({ length: clients }, client))
  let stopping: Promise<Record<string, number>> | null = null
  const end = async (): Promise<Record<string, number>> => {
    isOver = true
    await running
    await dispatcher.close()
    return results
  }
  return {
    answered: () => answered,
    stop() {
      stopping ??= end()
      return stopping
    },
  }
}
